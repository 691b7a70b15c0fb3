// The page's entry: who is signed in, which domain is shown, whether it is live, and how documents become rows.

import { keepUpToDate, momentInWords, openSession, request } from "./api.js";
import { JobList, PAGE_SIZE, jobView } from "./jobs.js";
import { NodeList, nodeView } from "./nodes.js";

const TICK_MS = 1_000;
/** A pause between two ticks that means: the computer slept, and the streams may be dead without knowing. */
const SLEPT_MS = 15_000;
const RESTART_MS = 3_000;
/** Nodes that have been silent for this long are asked for, in case the stream does not carry heartbeats. */
const SILENT_MS = 5_000;

const element = (id) => document.getElementById(id);

// --- Rows -----------------------------------------------------------------------------------------------------------

/** Touches the page only if there is something new to say, and tells whether there was. */
function write(cell, text) {
  const isNew = cell.textContent !== text;
  if (isNew) cell.textContent = text;
  return isNew;
}

/** A cell says a text, a text with the share of something that is taken, or a moment. */
function paint(cell, value, now) {
  const isNew = write(cell, value.text ?? (typeof value === "string" ? value : momentInWords(value, now)));
  cell.classList.toggle("late", now - value.age > value.lateAfterMs);
  if (value.share !== undefined) cell.style.setProperty("--share", value.share);
  if (isNew && value.age !== undefined) {
    cell.title = new Date(value.age).toLocaleString();
    cell.dateTime = new Date(value.age).toISOString();
  }
}

function paintAll(unit, kind, values) {
  const now = Date.now();
  for (const cell of unit.querySelectorAll(`[data-${kind}]`)) paint(cell, values[cell.dataset[kind]], now);
}

/** A click that ends a selection of text in the row is not meant to open it. */
function isCopying(unit, { detail: mouseClicks }) {
  const selection = getSelection();
  return mouseClicks > 0 && !selection.isCollapsed && selection.containsNode(unit, true);
}

function highlight(unit) {
  unit.classList.remove("changed");
  void unit.offsetWidth; // lets the animation start anew
  unit.classList.add("changed");
}

/** The rows of one kind of document, behind an element of a table. A document keeps its row while it changes. */
class Rows {
  #units = new Map();
  #hasShown = false;

  /** `act` does what a button in a row says; `mayAct` tells whether there are buttons at all. */
  constructor(behind, template, view, mayAct, act) {
    Object.assign(this, { behind, template, view, mayAct, act });
  }

  show(docs) {
    const keys = new Set(docs.map(this.view.key));
    for (const key of this.#units.keys()) if (!keys.has(key)) this.#remove(key);
    let previous = this.behind;
    for (const doc of docs) {
      const unit = this.#update(doc);
      if (previous.nextElementSibling !== unit) previous.after(unit);
      previous = unit;
    }
    this.#hasShown = true;
  }

  /** Lets the ages in the rows move on. */
  tick() {
    for (const unit of this.#units.values()) paintAll(unit, "field", this.view.cells(unit.doc));
  }

  clear() {
    for (const key of this.#units.keys()) this.#remove(key);
    this.#hasShown = false;
  }

  isOpen(key) {
    return this.#units.get(key)?.classList.contains("open") ?? false;
  }

  #remove(key) {
    this.#units.get(key).remove();
    this.#units.delete(key);
  }

  #update(doc) {
    const key = this.view.key(doc);
    const unit = this.#units.get(key) ?? this.#create(key);
    if (unit.doc === doc) return unit;
    const mark = this.view.mark(doc);
    if (this.#hasShown && unit.mark !== mark) highlight(unit);
    Object.assign(unit, { doc, mark });
    unit.dataset.status = this.view.status(doc);
    paintAll(unit, "field", this.view.cells(doc));
    if (this.isOpen(key)) paintAll(unit, "detail", this.view.details(doc));
    const actions = this.mayAct() ? this.view.actions(doc) : [];
    for (const button of unit.querySelectorAll("[data-action]")) button.hidden = !actions.includes(button.dataset.action);
    return unit;
  }

  #create(key) {
    const unit = this.template.content.firstElementChild.cloneNode(true);
    unit.addEventListener("animationend", () => unit.classList.remove("changed"));
    const toggle = unit.querySelector(".toggle");
    if (toggle) {
      unit.querySelector(".detail").id = `detail-${key}`;
      toggle.setAttribute("aria-controls", `detail-${key}`);
      unit.querySelector(".summary").addEventListener("click", (event) => {
        if (!isCopying(unit, event)) this.#toggle(unit, toggle);
      });
    }
    for (const button of unit.querySelectorAll("[data-action]")) {
      button.addEventListener("click", () => this.#press(button, unit));
    }
    this.#units.set(key, unit);
    return unit;
  }

  /** A button that was pressed is pressed no second time while its answer is on its way. */
  async #press(button, unit) {
    button.disabled = true;
    await this.act(button.dataset.action, unit.doc);
    button.disabled = false;
  }

  #toggle(unit, toggle) {
    const isOpen = unit.classList.toggle("open");
    toggle.setAttribute("aria-expanded", isOpen);
    unit.querySelector(".detail").hidden = !isOpen;
    if (isOpen) paintAll(unit, "detail", this.view.details(unit.doc));
  }
}

// --- The board: nodes and jobs, followed while somebody looks -------------------------------------------------------

const divider = element("older-row").content.firstElementChild;
const nodeRows = new Rows(document.querySelector(".nodes thead"), element("node-row"), nodeView, () => true, tellNode);
const jobRows = new Rows(document.querySelector(".jobs thead"), element("job-row"), jobView, mayChangeJobs, changeJob);
const olderView = { ...jobView, mark: () => undefined };
const olderRows = new Rows(divider, element("job-row"), olderView, mayChangeJobs, changeJob);

let session; // what the sign-in answered
let domain; // the name of the one that is shown
let nodes = new NodeList();
let jobs;
let watch; // its signal ends what follows the lists of this session and domain
let reloadNodes;
const isConnected = new Map();
const complaints = new Map();

function watchBoard() {
  watch?.abort();
  reloadNodes = undefined;
  isConnected.clear();
  if (!session || document.hidden) return;
  watch = new AbortController();
  if (session.installation_admin) {
    reloadNodes = keep("nodes", "/events", "node", loadNodes, (node) => nodes.apply(node), showNodes);
  }
  if (domain) {
    const path = `/domains/${encodeURIComponent(domain)}/events`;
    keep("jobs", path, "job", (signal) => jobs.load(signal), (job) => jobs.apply(job), showJobs);
  }
}

function keep(what, path, event, load, apply, show) {
  const { signal } = watch;
  const draw = oncePerFrame(() => signal.aborted || show());
  isConnected.set(what, false);
  return keepUpToDate({
    signal, path, event,
    load: () => load(signal).then(draw),
    heard: (doc) => { apply(doc); draw(); },
    connected: (isOpen) => { isConnected.set(what, isOpen); showConnection(isOpen); },
    failed: (problem) => cope(what, problem),
  });
}

function oncePerFrame(draw) {
  let frame;
  return () => {
    frame ??= requestAnimationFrame(() => { frame = undefined; draw(); });
  };
}

/** Takes note of a failure, or that there is none any more; answers whether trying again makes sense. */
function cope(what, problem) {
  if (problem?.status === 401) {
    showSignIn("Your session has ended. Sign in again.");
    return false;
  }
  showConnection(problem?.status !== 0);
  complain(what, problem?.status === 0 ? "" : problem?.message);
  return problem !== undefined;
}

function complain(what, message) {
  if (message) complaints.set(what, message);
  else complaints.delete(what);
  const text = [...complaints.values()].join(" ");
  element("notice").hidden = text === "";
  write(element("notice"), text);
}

async function loadNodes(signal) {
  try {
    await nodes.load(signal);
  } catch (problem) {
    if (problem.status !== 403) throw problem;
    session.installation_admin = false; // no longer; the jobs go on without the nodes
    element("nodes").hidden = true;
    watchBoard();
  }
}

async function loadOlder() {
  const { signal } = watch;
  try {
    await jobs.loadOlder(signal, Date.now());
    complain("older");
    showJobs();
  } catch (problem) {
    if (!signal.aborted) cope("older", problem);
  }
}

/** Only administrators of the installation see nodes at all; so who sees one may tell it what to do. */
async function tellNode(wish, node) {
  const question = `Drain ${node.name}? It begins nothing new and gives back what it does not finish.`;
  if (wish === "drain" && !confirm(question)) return;
  await attempt((signal) => nodes.tell(wish, node, signal), showNodes);
}

function mayChangeJobs() {
  const role = session?.domains.find(({ name }) => name === domain)?.role;
  return role === "operator" || role === "admin";
}

async function changeJob(action, job) {
  if (action === "delete" && !confirm(`Delete job ${job.jobNumber}, ${job.jobName}, with its record?`)) return;
  await attempt((signal) => jobs.change(action, job, signal), showJobs);
}

/** Does what a person asked for, shows what came of it, and says what went wrong. */
async function attempt(task, show) {
  const { signal } = watch;
  try {
    await task(signal);
    complain("action");
  } catch (problem) {
    if (!signal.aborted) cope("action", problem);
  }
  if (!signal.aborted) show();
}

function showNodes() {
  const ordered = nodes.ordered();
  nodeRows.show(ordered);
  element("nodes-empty").hidden = ordered.length > 0;
  write(element("nodes-summary"), nodes.summary());
}

function showJobs() {
  const newest = jobs.newest();
  jobRows.show(newest);
  if (jobs.olderSince === undefined) divider.remove();
  else showDivider();
  olderRows.show(jobs.older());
  element("jobs-empty").hidden = newest.length > 0;
  write(element("jobs-summary"), newest.length < PAGE_SIZE ? "" : `the newest ${PAGE_SIZE}`);
  element("more").hidden = !jobs.hasOlder;
}

function showDivider() {
  if (!divider.isConnected) element("jobs").querySelector("table").append(divider);
  const since = new Date(jobs.olderSince).toLocaleTimeString();
  write(divider.querySelector("span"), `Older jobs, as they were at ${since}.`);
}

function hideOlder() {
  jobs.hideOlder();
  showJobs();
  element("load-older").focus();
}

function showConnection(isOpen) {
  const isLive = isOpen && [...isConnected.values()].every(Boolean);
  if (isOpen && !isLive) return; // another stream is about to say
  element("connection").dataset.state = isLive ? "live" : "lost";
  write(element("connection"), isLive ? "Live" : "Reconnecting…");
}

// --- The session ----------------------------------------------------------------------------------------------------

const REFUSED_CODE = "This sign-in address works once, and it was used before or has expired. "
  + "Start Rota again for a new one, or sign in with an API key.";

/** Takes the sign-in code out of the address, so that it stays neither in sight nor in the history. */
function takeCode() {
  const code = /^#signin=([^&]+)/.exec(location.hash)?.[1];
  if (code) history.replaceState(null, "", location.pathname);
  return code;
}

async function start(code = takeCode()) {
  try {
    enter(await openSession(code));
  } catch (problem) {
    if (problem.status === 401) return showSignIn(code && REFUSED_CODE);
    write(element("starting"), `${problem.message} Trying again…`);
    setTimeout(start, RESTART_MS, code);
  }
}

async function signIn(event) {
  event.preventDefault();
  const field = element("api-key");
  write(element("sign-in-problem"), "");
  try {
    const answer = await request("POST", "/session", { body: { api_key: field.value.trim() } });
    field.value = "";
    enter(answer);
    element("main").focus();
  } catch (problem) {
    write(element("sign-in-problem"), problem.message);
    field.select();
  }
}

async function signOut() {
  try {
    await request("DELETE", "/session");
    showSignIn();
  } catch (problem) {
    cope("sign-out", problem);
  }
}

function showSignIn(reason = "") {
  leave();
  showOnly("sign-in");
  element("sign-in-reason").hidden = reason === "";
  write(element("sign-in-reason"), reason);
  element("api-key").focus();
}

function enter(answer) {
  leave();
  session = answer;
  showOnly("board");
  write(element("user"), session.user);
  write(element("connection"), "Connecting…");
  element("nodes").hidden = !session.installation_admin;
  element("no-domain").hidden = session.domains.length > 0;
  element("jobs").hidden = session.domains.length === 0;
  element("domain-picker").replaceChildren(...session.domains.map(({ name }) => new Option(name)));
  showDomain();
}

/** Forgets, on the screen too, what the session showed. */
function leave() {
  session = domain = undefined;
  watchBoard();
  nodes = new NodeList();
  complaints.clear();
  complain();
  nodeRows.clear();
  clearJobs();
  for (const id of ["nodes", "nodes-empty"]) element(id).hidden = true;
  document.title = "Rota";
}

function clearJobs() {
  jobRows.clear();
  olderRows.clear();
  divider.remove();
  for (const id of ["jobs-empty", "more"]) element(id).hidden = true;
}

function showOnly(view) {
  for (const id of ["starting", "sign-in", "board"]) element(id).hidden = id !== view;
  for (const id of ["domain", "connection", "who"]) element(id).hidden = view !== "board";
}

/** The domain is part of the address, so that it can be kept as a bookmark and two windows can show two. */
function showDomain() {
  const names = session.domains.map(({ name }) => name);
  const asked = new URLSearchParams(location.hash.slice(1)).get("domain");
  domain = [asked, "default"].find((name) => names.includes(name)) ?? names[0];
  jobs = new JobList(domain, (id) => jobRows.isOpen(id));
  clearJobs();
  element("domain").hidden = names.length === 0;
  element("domain-picker").hidden = names.length < 2;
  element("domain-picker").value = domain;
  write(element("domain-name"), names.length < 2 ? domain ?? "" : "");
  write(element("jobs-empty-domain"), domain === "default" ? "" : ` --domain ${domain}`);
  if (domain) document.title = `${domain} · Rota`;
  watchBoard();
}

function addressChanged() {
  const code = takeCode();
  if (code) start(code);
  else if (session) showDomain();
}

let tickedAt = Date.now();
function tick() {
  const now = Date.now();
  const slept = now - tickedAt > SLEPT_MS;
  tickedAt = now;
  for (const rows of [nodeRows, jobRows, olderRows]) rows.tick();
  if (slept) watchBoard();
  else if (nodes.isSilentFor(SILENT_MS, now)) reloadNodes?.();
}

element("sign-in").addEventListener("submit", signIn);
element("sign-out").addEventListener("click", signOut);
element("load-older").addEventListener("click", loadOlder);
divider.querySelector("button").addEventListener("click", hideOlder);
element("domain-picker").addEventListener("change", ({ target }) => {
  location.hash = new URLSearchParams({ domain: target.value });
});
addEventListener("hashchange", addressChanged);
document.addEventListener("visibilitychange", watchBoard);
setInterval(tick, TICK_MS);
start();
