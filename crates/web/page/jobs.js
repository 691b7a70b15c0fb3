// The jobs of one domain: which are shown, in which order, and what each cell of a job's row says.
//
// Two sources tell of a job: the list, and the stream of changes. They overtake each other, so the younger document of
// a job wins, and a list never takes away what the stream told while the list was on its way.

import { request } from "./api.js";

export const PAGE_SIZE = 50;
const OLDER_MAX = 1_000;

export class JobList {
  /** The newest jobs, followed live. */
  #live = new Map();
  /** What "Load older" brought, and what left the newest since; not followed. */
  #older = new Map();
  /** What was deleted here: the stream may still be on its way with word of it. */
  #gone = new Set();
  /** When the stream last told of a job, counted in what it told. */
  #heardAt = new Map();
  #heardCount = 0;
  /** Where the older jobs begin that are not shown; empty if the list must be read again to know. */
  #next;
  #domain;
  #isOpen;

  /** When the first older page came, if it did. */
  olderSince;

  /** `isOpen` says whether somebody is reading the job with this id: it stays then. */
  constructor(domain, isOpen) {
    this.#domain = domain;
    this.#isOpen = isOpen;
  }

  get hasOlder() {
    return this.#next !== undefined;
  }

  async load(signal) {
    const askedAt = this.#heardCount;
    this.#replace(await this.#page(signal), askedAt);
  }

  async loadOlder(signal, now) {
    const askedAt = this.#heardCount;
    const newest = this.#next === "" ? await this.#page(signal) : undefined;
    this.olderSince ??= now; // from here on, what leaves the newest is kept among the older
    if (newest) {
      this.#replace(newest, askedAt);
      this.#next = newest.next;
    }
    if (!this.#next) return;
    const page = await this.#page(signal, { cursor: this.#next });
    this.#next = page.next;
    for (const job of page.items) {
      if (!this.#live.has(job.jobId)) this.#older.set(job.jobId, job);
    }
    this.#keepNewest();
  }

  /** Does `cancel`, `requeue` or `delete` to a job, and takes over what Rota answers. */
  async change(action, { jobId }, signal) {
    const path = `${this.#path()}/${jobId}`;
    try {
      if (action !== "delete") return this.apply(await request("POST", `${path}/${action}`, { signal }));
      await request("DELETE", path, { signal });
      this.#forget(jobId);
    } catch (problem) {
      if (problem.status === 404) this.#forget(jobId); // somebody else deleted it
      throw problem;
    }
  }

  apply(job) {
    if (this.#gone.has(job.jobId)) return;
    this.#heardAt.set(job.jobId, ++this.#heardCount);
    this.#put(job);
    this.#keepNewest();
  }

  hideOlder() {
    this.#older.clear();
    this.olderSince = undefined;
    this.#next = "";
  }

  newest() {
    return [...this.#live.values()].sort(newestFirst);
  }

  older() {
    return [...this.#older.values()].sort(newestFirst);
  }

  #path() {
    return `/domains/${encodeURIComponent(this.#domain)}/jobs`;
  }

  #page(signal, query) {
    const search = new URLSearchParams({ limit: PAGE_SIZE, ...query });
    return request("GET", `${this.#path()}?${search}`, { signal });
  }

  #forget(jobId) {
    this.#gone.add(jobId);
    for (const known of [this.#live, this.#older, this.#heardAt]) known.delete(jobId);
  }

  #replace(page, askedAt) {
    const before = this.#live;
    const last = page.next && page.items.at(-1);
    const stays = (job) =>
      this.#heardAt.get(job.jobId) > askedAt || (last && newestFirst(last, job) < 0 && this.#outlives(job));
    const there = page.items.filter((job) => !this.#gone.has(job.jobId));
    this.#live = new Map(there.map((job) => [job.jobId, job]));
    for (const job of before.values()) {
      if (this.#live.has(job.jobId) || stays(job)) this.#put(job);
    }
    if (this.olderSince === undefined) this.#next = page.next;
    this.#keepNewest();
  }

  #put(job) {
    const held = this.#live.get(job.jobId);
    if (!held || !isStale(job, held)) this.#live.set(job.jobId, job);
    this.#older.delete(job.jobId);
  }

  #outlives(job) {
    return this.olderSince !== undefined || this.#isOpen(job.jobId);
  }

  #keepNewest() {
    for (const job of this.newest().slice(PAGE_SIZE)) this.#retire(job);
    for (const job of this.older().slice(OLDER_MAX)) {
      this.#older.delete(job.jobId);
      this.#next = undefined;
    }
  }

  #retire(job) {
    if (this.#isOpen(job.jobId)) return;
    this.#live.delete(job.jobId);
    this.#heardAt.delete(job.jobId);
    if (this.olderSince === undefined) this.#next = "";
    else this.#older.set(job.jobId, job);
  }
}

export const jobView = {
  key: (job) => job.jobId,
  status: (job) => job.status,
  /** What is worth a highlight when it changes. */
  mark: (job) => [job.status, job.attempt, job.lost].join(),
  cells: (job) => ({
    number: String(job.jobNumber),
    name: job.jobName,
    type: job.input.type,
    status: job.status.charAt(0) + job.status.slice(1).toLowerCase(),
    tries: tries(job),
    created: { age: job.metadata.createdAt },
    took: took(job),
  }),
  details: (job) => ({
    id: job.jobId,
    node: job.ownerNode ?? "–",
    priority: String(job.priority ?? "–"),
    attempt: `${job.attempt ?? 1} of ${job.attempts ?? 1}`,
    section: String(job.section ?? "–"),
    unique: job.unique ? `${job.unique.key} while ${job.unique.while}` : "–",
    created: { at: job.metadata.createdAt },
    started: job.startedAt ? { at: job.startedAt } : "–",
    finished: job.finishedAt ? { at: job.finishedAt } : "–",
    payload: pretty(job.input.payload, "Empty"),
    result: pretty(job.result, "None yet"),
    history: pretty(job.history, "Nothing before its present state"),
  }),
  /** What can be done to it now. */
  actions: ({ status }) => {
    if (status === "STARTED") return ["cancel"];
    return status === "QUEUED" ? ["cancel", "delete"] : ["requeue", "delete"];
  },
};

function took({ status, startedAt, finishedAt, runAt }) {
  if (status === "QUEUED") return runAt ? { due: runAt } : "–";
  if (!startedAt) return "–";
  if (status === "STARTED") return { from: startedAt };
  return finishedAt ? { from: startedAt, to: finishedAt } : "–";
}

function tries({ attempt = 1, lost = 0 }) {
  const parts = [];
  if (attempt > 1) parts.push(`attempt ${attempt}`);
  if (lost > 0) parts.push(`lost ${lost}×`);
  return parts.join(" · ");
}

function pretty(document, emptyWords) {
  const isEmpty = document === undefined || document === null || Object.keys(document).length === 0;
  return isEmpty ? emptyWords : JSON.stringify(document, null, 2);
}

function newestFirst(a, b) {
  return b.metadata.createdAt - a.metadata.createdAt || b.jobNumber - a.jobNumber;
}

/** Whether the document is from before the one that is held. The epoch only rises; clocks of nodes may disagree. */
function isStale(job, held) {
  const byEpoch = (job.epoch ?? 0) - (held.epoch ?? 0);
  return byEpoch < 0 || (byEpoch === 0 && job.metadata.updatedAt < held.metadata.updatedAt);
}
