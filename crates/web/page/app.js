// The page's entry: who is signed in, which domain and what of it is shown, and whether it is live.

import { linkTo, readAddress } from "./address.js";
import { keepUpToDate, openSession, request } from "./api.js";
import { JobPage } from "./job.js";
import { JobList, PAGE_SIZE, jobView } from "./jobs.js";
import { NodeList, nodeView } from "./nodes.js";
import { showCounts } from "./queue.js";
import { Rows, wireActions, write } from "./rows.js";

const TICK_MS = 1_000;
/** A pause between two ticks that means: the computer slept, and the streams may be dead without knowing. */
const SLEPT_MS = 15_000;
const RESTART_MS = 3_000;
/** Nodes that have been silent for this long are asked for, in case the stream does not carry heartbeats. */
const SILENT_MS = 6_000;
/** How long somebody types before the words are searched. */
const TYPING_MS = 400;

const element = (id) => document.getElementById(id);

// --- The board: nodes, queue and jobs, followed while somebody looks ------------------------------------------------

const divider = element("older-row").content.firstElementChild;
const nodeRows = new Rows(document.querySelector(".nodes thead"), element("node-row"), nodeView, tellNode);
const jobRows = new Rows(document.querySelector(".jobs thead"), element("job-row"), jobView);
const olderRows = new Rows(divider, element("job-row"), { ...jobView, mark: () => undefined });

let session; // what the sign-in answered
let place = {}; // what is shown: a domain, a filter of its jobs or one job
let nodes = new NodeList();
let jobs;
let jobPage;
let watch; // its signal ends what follows the things of this session and place
let reloadBoard;
let parting; // what is left to say of a place that was left
let isStreamOpen; // not known at first
let isAnswering = true;
const complaints = new Map();

function watchPlace() {
  watch?.abort();
  reloadBoard = jobPage = isStreamOpen = undefined;
  if (!session || document.hidden) return;
  watch = new AbortController();
  const { signal } = watch;
  if (place.job) watchJob(signal);
  else if (place.domain) watchDomain(signal);
  else if (session.installation_admin) watchNodes(signal);
}

/** One stream for everything: a browser opens few connections to one place. */
function streamPath() {
  return `/domains/${encodeURIComponent(place.domain)}/events${session.installation_admin ? "?nodes=true" : ""}`;
}

function watchDomain(signal) {
  const drawNodes = drawer(signal, showNodes);
  const drawJobs = drawer(signal, showJobs);
  const reload = keepUpToDate({
    signal,
    path: streamPath(),
    load: () => Promise.all([loadNodes(signal).then(drawNodes), loadCounts(signal), jobs.load(signal).then(drawJobs)]),
    heard: {
      node: (node) => { nodes.apply(node); drawNodes(); },
      job: (job) => {
        jobs.apply(job);
        drawJobs();
        if (jobs.isByWords) reload();
      },
      counts: (counts) => takeCounts(counts),
    },
    connected: streamChanged,
    failed: (problem) => cope("board", problem),
  });
  reloadBoard = reload;
}

function watchNodes(signal) {
  const draw = drawer(signal, showNodes);
  reloadBoard = keepUpToDate({
    signal,
    path: "/events",
    load: () => loadNodes(signal).then(draw),
    heard: { node: (node) => { nodes.apply(node); draw(); } },
    connected: streamChanged,
    failed: (problem) => cope("board", problem),
  });
}

function watchJob(signal) {
  jobPage = new JobPage(element("job"), {
    domain: place.domain,
    id: place.job,
    signal,
    mayChange: mayChangeJobs,
    cope,
    connected: streamChanged,
    gone: (message) => {
      parting = message;
      location.hash = linkTo({ domain: place.domain });
    },
  });
  jobPage.follow(streamPath());
}

function drawer(signal, show) {
  let frame;
  return () => {
    frame ??= requestAnimationFrame(() => {
      frame = undefined;
      if (!signal.aborted) show();
    });
  };
}

/** Takes note of a failure, or that there is none any more; answers whether trying again makes sense. */
function cope(what, problem) {
  if (problem?.status === 401) {
    showSignIn("Your session has ended. Sign in again.");
    return false;
  }
  isAnswering = problem?.status !== 0;
  showConnection();
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
  if (!session.installation_admin) return;
  try {
    await nodes.load(signal);
  } catch (problem) {
    if (problem.status !== 403) throw problem;
    session.installation_admin = false; // no longer; the jobs go on without the nodes
    element("nodes").hidden = true;
    watchPlace();
  }
}

async function loadCounts(signal) {
  takeCounts(await request("GET", `/domains/${encodeURIComponent(place.domain)}/jobs/counts`, { signal }));
}

function takeCounts(counts) {
  if (place.job) return;
  element("queue").hidden = counts.total === 0;
  showCounts(document.querySelector(".queue"), place.domain, counts);
  write(element("queue-summary"), `${counts.total.toLocaleString("en")} ${counts.total === 1 ? "job" : "jobs"}`);
  const types = Object.keys(counts.byType).sort();
  const known = [...element("filter-type").options].slice(1).map(({ value }) => value);
  if (place.type && !types.includes(place.type)) types.push(place.type);
  if (known.join("\n") === types.join("\n")) return;
  element("filter-type").replaceChildren(new Option("Any type", ""), ...types.map((type) => new Option(type)));
  element("filter-type").value = place.type ?? "";
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
  await attempt((signal) => nodes.tell(wish, node, signal));
  showNodes();
}

function mayChangeJobs() {
  const role = session?.domains.find(({ name }) => name === place.domain)?.role;
  return role === "operator" || role === "admin";
}

/** Does what a person asked for, and says what went wrong. */
async function attempt(task) {
  const { signal } = watch;
  try {
    await task(signal);
    complain("action");
  } catch (problem) {
    if (!signal.aborted) cope("action", problem);
  }
}

function showNodes() {
  const ordered = nodes.ordered();
  nodeRows.show(ordered);
  element("nodes-empty").hidden = ordered.length > 0;
  write(element("nodes-summary"), nodes.summary());
}

function showJobs() {
  const newest = jobs.newest();
  const isNarrowed = Boolean(place.status || place.type || place.text);
  jobRows.show(newest);
  if (jobs.olderSince === undefined) divider.remove();
  else showDivider();
  olderRows.show(jobs.older());
  element("jobs-empty").hidden = newest.length > 0 || isNarrowed;
  element("jobs-none").hidden = newest.length > 0 || !isNarrowed;
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

function streamChanged(isOpen) {
  isStreamOpen = isOpen;
  showConnection();
}

/** It is live while the stream is open and what is asked is answered. */
function showConnection() {
  if (isStreamOpen === undefined && isAnswering) return;
  const isOpen = Boolean(isStreamOpen && isAnswering);
  element("connection").dataset.state = isOpen ? "live" : "lost";
  write(element("connection"), isOpen ? "Live" : "Connection lost, trying again…");
  element("main").classList.toggle("stale", !isOpen);
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
  write(element("user"), session.user);
  write(element("connection"), "Connecting…");
  element("nodes").hidden = !session.installation_admin;
  element("no-domain").hidden = session.domains.length > 0;
  element("jobs").hidden = session.domains.length === 0;
  element("domain-picker").replaceChildren(...session.domains.map(({ name }) => new Option(name)));
  showPlace();
}

/** Forgets, on the screen too, what the session showed. */
function leave() {
  session = undefined;
  place = {};
  watchPlace();
  nodes = new NodeList();
  complaints.clear();
  complain();
  nodeRows.clear();
  clearJobs();
  for (const id of ["nodes", "nodes-empty", "queue"]) element(id).hidden = true;
  element("main").classList.remove("stale");
  document.title = "Rota";
}

function clearJobs() {
  jobRows.clear();
  olderRows.clear();
  divider.remove();
  for (const id of ["jobs-empty", "jobs-none", "more"]) element(id).hidden = true;
}

const VIEWS = ["starting", "sign-in", "board", "job"];

function showOnly(view) {
  for (const id of VIEWS) element(id).hidden = id !== view;
  const isInside = view === "board" || view === "job";
  for (const id of ["domain", "connection", "who"]) element(id).hidden = !isInside;
}

/** Shows what the address asks for. */
function showPlace() {
  const names = session.domains.map(({ name }) => name);
  const asked = readAddress();
  const domain = [asked.domain, "default"].find((name) => names.includes(name)) ?? names[0];
  if (domain !== place.domain) element("queue").hidden = true;
  place = { ...asked, domain, job: domain && asked.job };
  complaints.clear();
  complain("parting", parting);
  parting = undefined;
  jobs = new JobList(domain, { status: place.status, type: place.type, text: place.text });
  clearJobs();
  showOnly(place.job ? "job" : "board");
  showFilter();
  element("domain").hidden = names.length === 0;
  element("domain-picker").hidden = names.length < 2;
  element("domain-picker").value = domain;
  for (const link of document.querySelectorAll("[data-link=board]")) link.href = linkTo({ domain });
  write(element("domain-name"), names.length < 2 ? domain ?? "" : "");
  write(element("jobs-empty-domain"), domain === "default" ? "" : ` --domain ${domain}`);
  document.title = domain ? `${domain} · Rota` : "Rota";
  watchPlace();
}

function showFilter() {
  element("filter-status").value = place.status ?? "";
  element("filter-type").value = place.type ?? "";
  if (document.activeElement !== element("filter-text")) element("filter-text").value = place.text ?? "";
  element("filter-clear").hidden = !(place.status || place.type || place.text);
}

/** Whoever narrows the list by one more thing does not want to go back through each letter. */
function filterChanged() {
  const [status, type, text] = ["status", "type", "text"].map((name) => element(`filter-${name}`).value.trim());
  const address = linkTo({ domain: place.domain, status, type, text });
  if (address === location.hash) return;
  history.replaceState(null, "", address);
  showPlace();
}

function addressChanged() {
  const code = takeCode();
  if (code) start(code);
  else if (session) {
    showPlace();
    scrollTo(0, 0);
    if (place.job) element("job-name").focus({ preventScroll: true });
  }
}

let tickedAt = Date.now();
function tick() {
  const now = Date.now();
  const slept = now - tickedAt > SLEPT_MS;
  tickedAt = now;
  for (const rows of [nodeRows, jobRows, olderRows]) rows.tick();
  jobPage?.tick();
  if (slept) watchPlace();
  else if (session?.installation_admin && nodes.isSilentFor(SILENT_MS, now)) reloadBoard?.();
}

let typing;
element("filter-text").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(filterChanged, TYPING_MS);
});
element("filter").addEventListener("change", filterChanged);
element("filter").addEventListener("submit", (event) => {
  event.preventDefault();
  filterChanged();
});
element("sign-in").addEventListener("submit", signIn);
element("sign-out").addEventListener("click", signOut);
element("load-older").addEventListener("click", loadOlder);
divider.querySelector("button").addEventListener("click", hideOlder);
wireActions(element("job"), (action) => attempt(() => jobPage.change(action)));
element("domain-picker").addEventListener("change", ({ target }) => {
  location.hash = linkTo({ domain: target.value });
});
addEventListener("hashchange", addressChanged);
addEventListener("pageshow", ({ persisted }) => persisted && watchPlace());
document.addEventListener("visibilitychange", watchPlace);
setInterval(tick, TICK_MS);
start();
