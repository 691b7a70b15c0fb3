// How the page talks to Rota: requests, the session, lists kept up to date by a stream; problems and times in words.

import { listen } from "./hub.js";

const ROOT = "/api/v1";
/** Between two reads of the same: at first, and at most while there is always a reason for another. */
const RELOAD_MS_MIN = 1_000;
const RELOAD_MS_MAX = 8_000;
const RELOAD_AFTER_FAILURE_MS = 3_000;

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
 * Keeps something up to date until the signal is aborted, and gives the function that reads it again.
 *
 * `load` reads it: at the start, after every (re)connection, and when the stream says that it lost track. `heard` has a
 * function for each kind of event, which takes its document. `connected` is told whether the stream is open, `failed` what
 * went wrong, or nothing after a success; it answers whether to try again.
 */
export function keepUpToDate({ path, load, heard, connected, failed, signal }) {
  const reload = paced(async () => {
    try {
      await load();
      if (!signal.aborted) failed(undefined);
    } catch (problem) {
      if (!signal.aborted && failed(problem)) setTimeout(reload, RELOAD_AFTER_FAILURE_MS);
    }
  }, signal);
  listen(path, signal, (name, data) => {
    if (signal.aborted) return;
    if (name === "open" || name === "lost") connected(name === "open");
    if (["open", "refused", "reload"].includes(name)) reload();
    else heard[name]?.(JSON.parse(data));
  });
  reload();
  return reload;
}

/**
 * Calls of `task` that never overlap and keep a distance, which grows while there is always somebody who asks; however many
 * ask meanwhile, it runs once more for them.
 */
export function paced(task, signal) {
  let isRunning = false;
  let isWanted = false;
  return async function ask() {
    isWanted = true;
    if (isRunning) return;
    isRunning = true;
    let gapMs = RELOAD_MS_MIN;
    while (isWanted && !signal.aborted) {
      isWanted = false;
      await task();
      await new Promise((resolve) => setTimeout(resolve, gapMs));
      gapMs = Math.min(gapMs * 1.5, RELOAD_MS_MAX);
    }
    isRunning = false;
  };
}

/** What a cell says that has nothing to say. */
export const NOTHING = "–";

const UNITS = [["y", 31_557_600], ["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];

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
  if (due !== undefined) return due > now ? `due in ${roughly(due - now)}` : NOTHING;
  if (to !== undefined) return exactly(to - from);
  if (from !== undefined) return `${roughly(now - from)} so far`;
  if (now - age < 2_000) return "just now";
  return `${roughly(now - age)} ago${now - age > lateAfterMs ? ", late" : ""}`;
}

/** A status as people read it. */
export function statusInWords(status) {
  return status.charAt(0) + status.slice(1).toLowerCase();
}
