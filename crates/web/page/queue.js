// The queue in numbers: a row for each type, a column for each status. A number leads to the jobs it counts.

import { write } from "./rows.js";
import { linkTo } from "./address.js";

export const STATUSES = ["QUEUED", "STARTED", "SUCCESSFUL", "FAILED", "ERROR"];
/** More types than this are not shown one by one; the busiest are. */
const TYPES_MAX = 30;

export function showCounts(table, domain, counts) {
  const body = table.tBodies[0];
  const types = Object.entries(counts.byType).sort(byWork).slice(0, TYPES_MAX);
  const rows = types.map(([type, byStatus]) => ({ type, byStatus })).sort((a, b) => a.type.localeCompare(b.type));
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  rows.forEach((row, nth) => showRow(body.rows[nth] ?? addRow(body, "th"), row, domain));
  const total = table.tFoot.rows[0] ?? addRow(table.tFoot, "th");
  showRow(total, { byStatus: counts.byStatus }, domain);
  table.tFoot.hidden = rows.length < 2;
}

/** Those with something to do first, then those with most jobs. */
function byWork([, a], [, b]) {
  const open = (counts) => (counts.QUEUED ?? 0) + (counts.STARTED ?? 0);
  const all = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);
  return open(b) - open(a) || all(b) - all(a);
}

function addRow(section, headTag) {
  const row = section.insertRow();
  row.setAttribute("role", "row");
  const head = row.appendChild(document.createElement(headTag));
  head.scope = "row";
  head.setAttribute("role", "rowheader");
  head.className = "c-type";
  head.append(document.createElement("a"));
  for (const status of STATUSES) {
    const cell = row.insertCell();
    cell.setAttribute("role", "cell");
    cell.className = "c-count";
    cell.dataset.status = status;
    cell.append(document.createElement("a"));
  }
  return row;
}

function showRow(row, { type, byStatus }, domain) {
  row.dataset.type = type ?? "";
  link(row.querySelector("th a"), type ?? "All", linkTo({ domain, type }));
  for (const cell of row.querySelectorAll("td")) {
    const { status } = cell.dataset;
    const count = byStatus[status] ?? 0;
    cell.classList.toggle("none", count === 0);
    link(cell.firstElementChild, count.toLocaleString("en"), linkTo({ domain, type, status }));
  }
}

function link(anchor, text, href) {
  write(anchor, text);
  if (anchor.getAttribute("href") !== href) anchor.setAttribute("href", href);
}
