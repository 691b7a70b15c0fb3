// The jobs of one domain: which are shown, in which order, and what each cell of a job's row says.
//
// Two sources tell of a job: the list, and the stream of changes. They overtake each other, so the younger document of
// a job wins, and a list never takes away what the stream told while the list was on its way. With a filter, what the stream
// tells is only taken in where it is known to match; words are searched by Rota alone, so a list by words is read again instead.

import { linkTo } from "./address.js";
import { NOTHING, request, statusInWords } from "./api.js";

export const PAGE_SIZE = 50;
const OLDER_MAX = 1_000;

export class JobList {
  /** The newest jobs, followed live. */
  #live = new Map();
  /** What "Load older" brought, and what left the newest since; not followed. */
  #older = new Map();
  /** When the stream last told of a job, counted in what it told. */
  #heardAt = new Map();
  #heardCount = 0;
  /** Where the older jobs begin that are not shown; empty if the list must be read again to know. */
  #next;
  #domain;
  #filter;

  /** When the first older page came, if it did. */
  olderSince;

  /** The filter may name a `status`, a `type` and words of the name or error as `text`. */
  constructor(domain, filter) {
    this.#domain = domain;
    this.#filter = Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
  }

  /** Whether only Rota can say which jobs belong here. */
  get isByWords() {
    return this.#filter.text !== undefined;
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

  apply(job) {
    this.#heardAt.set(job.jobId, ++this.#heardCount);
    const isKnown = this.#live.has(job.jobId) || this.#older.has(job.jobId);
    if (!this.#matches(job)) this.#forget(job.jobId);
    else if (isKnown || !this.isByWords) this.#put(job);
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
    const search = new URLSearchParams({ limit: PAGE_SIZE, ...this.#filter, ...query });
    return request("GET", `${this.#path()}?${search}`, { signal });
  }

  /** As far as a tab can tell. */
  #matches({ status, input }) {
    const { status: wanted = status, type = input.type } = this.#filter;
    return wanted === status && type === input.type;
  }

  #forget(jobId) {
    for (const known of [this.#live, this.#older]) known.delete(jobId);
  }

  #replace(page, askedAt) {
    const before = this.#live;
    const last = page.next && page.items.at(-1);
    const stays = (job) => this.#heardAt.get(job.jobId) > askedAt
      || (last && newestFirst(last, job) < 0 && this.olderSince !== undefined);
    // What the stream told since may have made it one that does not belong here.
    const overtaken = (job) => this.#heardAt.get(job.jobId) > askedAt && !before.has(job.jobId);
    this.#live = new Map(page.items.filter((job) => !overtaken(job)).map((job) => [job.jobId, job]));
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

  #keepNewest() {
    for (const job of this.newest().slice(PAGE_SIZE)) this.#retire(job);
    for (const job of this.older().slice(OLDER_MAX)) {
      this.#older.delete(job.jobId);
      this.#next = undefined;
    }
  }

  #retire(job) {
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
    name: { text: job.jobName || "(no name)", href: linkTo({ domain: job.domain, job: job.jobId }) },
    type: job.input.type,
    status: statusInWords(job.status),
    tries: tries(job),
    created: { age: job.metadata.createdAt },
    took: took(job),
  }),
};

/** What can be done to a job now. */
export function jobActions({ status }) {
  if (status === "STARTED") return ["cancel"];
  return status === "QUEUED" ? ["cancel", "delete"] : ["requeue", "delete"];
}

export function took({ status, startedAt, finishedAt, runAt }) {
  if (status === "QUEUED") return runAt ? { due: runAt } : NOTHING;
  if (!startedAt) return NOTHING;
  if (status === "STARTED") return { from: startedAt };
  return finishedAt ? { from: startedAt, to: finishedAt } : NOTHING;
}

function tries({ attempt = 1, lost = 0 }) {
  const parts = [];
  if (attempt > 1) parts.push(`attempt ${attempt}`);
  if (lost > 0) parts.push(`lost ${lost}×`);
  return parts.join(" · ");
}

function newestFirst(a, b) {
  return b.metadata.createdAt - a.metadata.createdAt || b.jobNumber - a.jobNumber;
}

/** Whether the document is from before the one that is held. The epoch only rises; clocks of nodes may disagree. */
export function isStale(job, held) {
  const byEpoch = (job.epoch ?? 0) - (held.epoch ?? 0);
  return byEpoch < 0 || (byEpoch === 0 && job.metadata.updatedAt < held.metadata.updatedAt);
}
