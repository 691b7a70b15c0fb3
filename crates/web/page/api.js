// How the page talks to Rota: requests, the session, lists kept up to date by a stream; problems and times in words.

const ROOT = "/api/v1";
const RELOAD_GAP_MS = 1_000;
const RELOAD_AFTER_FAILURE_MS = 3_000;
const REOPEN_MS_MIN = 1_000;
const REOPEN_MS_MAX = 15_000;

/** A request that did not succeed; the message is fit to be shown. Status 0: Rota gave no answer. */
export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Sends one request and gives the answer's document. Throws a `Problem`, or anything once the signal is aborted. */
export async function request(method, path, { body, signal } = {}) {
  const response = await send(method, path, body, signal);
  if (!response.ok) throw await problemOf(response);
  return response.status === 204 ? undefined : response.json();
}

async function send(method, path, body, signal) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(ROOT + path, { method, headers, signal, body: body && JSON.stringify(body), cache: "no-store" });
  } catch (cause) {
    signal?.throwIfAborted();
    throw new Problem(0, `Rota gave no answer (${cause.message}).`);
  }
}

async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  const words = problem.detail ?? problem.title ?? `Rota answered with status ${response.status}.`;
  return new Problem(response.status, sentence(words));
}

function sentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1) + (/[.!?]$/.test(words) ? "" : ".");
}

/** When a code is refused, the session that this browser may already have will do. */
export async function openSession(code) {
  try {
    if (code) return await request("POST", "/session", { body: { code } });
  } catch (problem) {
    if (problem.status === 0 || problem.status >= 500) throw problem;
  }
  return request("GET", "/session");
}

/**
 * Keeps a list up to date until the signal is aborted, and gives the function that reloads it.
 *
 * `load` reads the whole list: at the start, after every (re)connection, and when the stream says that it lost track.
 * `heard` takes one changed document. `connected` is told whether the stream is open, `failed` what went wrong, or
 * nothing after a success; it answers whether to try again.
 */
export function keepUpToDate({ path, event, load, heard, connected, failed, signal }) {
  const reload = paced(async () => {
    try {
      await load();
      if (!signal.aborted) failed(undefined);
    } catch (problem) {
      if (!signal.aborted && failed(problem)) setTimeout(reload, RELOAD_AFTER_FAILURE_MS);
    }
  }, signal);
  follow(path, signal, { [event]: heard, reload }, (isOpen) => {
    connected(isOpen);
    if (isOpen) reload();
  }, reload);
  reload();
  return reload;
}

/**
 * Follows server-sent events. After a broken connection the browser reconnects by itself; after a refusal it gives up,
 * and the stream is opened anew, ever more slowly.
 */
function follow(path, signal, events, connected, refused) {
  let source;
  let retry;
  let waitMs = REOPEN_MS_MIN;

  function open() {
    source = new EventSource(ROOT + path);
    source.addEventListener("open", () => {
      waitMs = REOPEN_MS_MIN;
      connected(true);
    });
    source.addEventListener("error", () => {
      connected(false);
      if (source.readyState === EventSource.CLOSED) reopenLater();
    });
    for (const [name, heard] of Object.entries(events)) {
      source.addEventListener(name, ({ data }) => heard(JSON.parse(data)));
    }
  }

  function reopenLater() {
    retry = setTimeout(open, waitMs);
    waitMs = Math.min(waitMs * 2, REOPEN_MS_MAX);
    refused();
  }

  signal.addEventListener("abort", () => {
    clearTimeout(retry);
    source.close();
  });
  open();
}

/** Calls of `task` that never overlap and keep a distance; however many ask meanwhile, it runs once more for them. */
function paced(task, signal) {
  let isRunning = false;
  let isWanted = false;
  return async function ask() {
    isWanted = true;
    if (isRunning) return;
    isRunning = true;
    while (isWanted && !signal.aborted) {
      isWanted = false;
      await task();
      await new Promise((resolve) => setTimeout(resolve, RELOAD_GAP_MS));
    }
    isRunning = false;
  };
}

const UNITS = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];

function roughly(ms) {
  const seconds = Math.max(Math.floor(ms / 1_000), 0);
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? UNITS.at(-1);
  return `${Math.floor(seconds / size)} ${unit}`;
}

function exactly(ms) {
  if (ms < 1_000) return `${Math.max(ms, 0)} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 60_000) return roughly(ms);
  const [, size] = UNITS.find(([, size]) => ms >= size * 1_000);
  return `${roughly(ms)} ${roughly(ms % (size * 1_000))}`;
}

/** An age, an instant, what is due, or a span that may still last; given in Unix milliseconds, as in the documents. */
export function momentInWords({ age, at, due, from, to, lateAfterMs }, now) {
  if (at !== undefined) return new Date(at).toLocaleString();
  if (due !== undefined) return due > now ? `due in ${roughly(due - now)}` : "–";
  if (to !== undefined) return exactly(to - from);
  if (from !== undefined) return `${roughly(now - from)} so far`;
  if (now - age < 2_000) return "just now";
  return `${roughly(now - age)} ago${now - age > lateAfterMs ? ", late" : ""}`;
}
