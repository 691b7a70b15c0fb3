// One job: what was asked, why it waits, how far it is, what happened to it attempt by attempt, what it said and what came of it.

import { NOTHING, keepUpToDate, paced, request, statusInWords } from "./api.js";
import { isStale, jobActions, took } from "./jobs.js";
import { listen } from "./hub.js";
import { paint, paintAll, showActions, write } from "./rows.js";

const LINES_MAX = 1_000;
const LINES_PAGE = 200;
/** How often it is asked again why a job waits, while nothing is told. */
const ASK_WHY_MS = 4_000;

const DEEDS = {
  RETRY: ({ result }, attempt) => ["failed", `Attempt ${attempt} failed${because(result)}`],
  LOSE: () => ["lost", "Its node died; it was queued again"],
  RELEASE: () => ["", "Its node gave it back"],
  REQUEUE: ({ result }) => ["", `It was to run once more${result ? `. Before: ${because(result).slice(2) || "a result"}` : ""}`],
};

function because(result) {
  const why = result?.error ?? (result?.cancelled && `cancelled ${result.cancelled}`);
  return why ? `: ${why}` : "";
}

/** The page of one job, followed until the signal is aborted. */
export class JobPage {
  #root;
  #job;
  #lines = new Map();
  #asked = 0;
  #askWhy;

  /** `mayChange` says whether the user may press buttons; `gone(message)` is called when there is no such job any more. */
  constructor(root, { domain, id, signal, mayChange, cope, connected, gone }) {
    Object.assign(this, { domain, id, signal, mayChange, cope, connected, gone });
    this.#root = root;
    this.#root.dataset.status = "";
    this.#part("log").replaceChildren();
    this.#askWhy = paced(() => this.#loadWhy(), signal);
  }

  #part(name) {
    return this.#root.querySelector(`[data-part=${name}]`);
  }

  get #path() {
    return `/domains/${encodeURIComponent(this.domain)}/jobs/${encodeURIComponent(this.id)}`;
  }

  follow(streamPath) {
    keepUpToDate({
      signal: this.signal,
      path: streamPath,
      load: () => this.#load(),
      heard: { job: (job) => job.jobId === this.id && this.#show(job), node: () => this.#isWaiting() && this.#askWhy() },
      connected: this.connected,
      failed: (problem) => {
        if (problem?.status !== 404) return this.cope("job", problem);
        this.gone(problem.message);
        return false;
      },
    });
    this.#followLog();
  }

  async #load() {
    this.#show(await request("GET", this.#path, { signal: this.signal }));
  }

  /** Does `cancel`, `requeue` or `delete`, and shows what Rota answers. */
  async change(action) {
    const question = `Delete job ${this.#job.jobNumber}, ${this.#job.jobName}, with its record?`;
    if (action === "delete" && !confirm(question)) return;
    if (action !== "delete") {
      this.#show(await request("POST", `${this.#path}/${action}`, { signal: this.signal }));
      return;
    }
    await request("DELETE", this.#path, { signal: this.signal });
    this.gone();
  }

  tick() {
    if (!this.#job) return;
    this.#paintFacts();
    if (this.#isWaiting() && Date.now() - this.#asked > ASK_WHY_MS) this.#askWhy();
  }

  #isWaiting() {
    return this.#job?.status === "QUEUED";
  }

  #show(job) {
    if (this.signal.aborted || (this.#job && isStale(job, this.#job))) return;
    this.#job = job;
    this.#root.dataset.status = job.status;
    document.title = `${job.jobName || "Job"} · Rota`;
    this.#paintFacts();
    this.#paintProgress();
    this.#paintOutcome();
    this.#paintTimeline();
    write(this.#part("payload"), pretty(job.input.payload));
    showActions(this.#root, this.mayChange() ? jobActions(job) : []);
    this.#part("waiting").hidden = !this.#isWaiting() || this.#part("why").textContent === "";
    if (this.#isWaiting()) this.#askWhy();
    else write(this.#part("why"), "");
  }

  #paintFacts() {
    const job = this.#job;
    paintAll(this.#part("facts"), {
      name: job.jobName || "(no name)",
      status: statusInWords(job.status),
      number: String(job.jobNumber),
      type: job.input.type,
      id: job.jobId,
      node: job.ownerNode ?? NOTHING,
      attempt: `${job.attempt ?? 1} of ${job.attempts ?? 1}${job.lost ? `, lost ${job.lost}×` : ""}`,
      priority: String(job.priority ?? NOTHING),
      section: String(job.section ?? NOTHING),
      unique: job.unique ? `${job.unique.key} while ${job.unique.while}` : "",
      limitKey: job.limitKey ?? "",
      created: { at: job.metadata.createdAt },
      due: job.runAt ? { at: job.runAt } : NOTHING,
      took: job.status === "QUEUED" ? NOTHING : took(job),
    });
    this.#part("unique").hidden = !job.unique;
    this.#part("limit-key").hidden = !job.limitKey;
  }

  #paintProgress() {
    const { status, progress } = this.#job;
    const isShown = status === "STARTED" && progress !== undefined;
    this.#part("progress").hidden = !isShown;
    if (!isShown) return;
    this.#part("bar").value = progress.percent;
    write(this.#part("percent"), `${Math.round(progress.percent)} %${progress.message ? ` · ${progress.message}` : ""}`);
  }

  #paintOutcome() {
    const { result, status } = this.#job;
    const error = status === "SUCCESSFUL" ? undefined : because(result).slice(2);
    this.#part("error").hidden = !error;
    write(this.#part("error"), error ?? "");
    const isEmpty = Object.keys(result ?? {}).length === 0;
    const none = { QUEUED: "None yet", STARTED: "None yet" }[status] ?? "It left no result";
    write(this.#part("result"), isEmpty ? none : pretty(result));
  }

  /** What happened, oldest first; the list is made anew only where it differs. */
  #paintTimeline() {
    const list = this.#part("timeline");
    const entries = timeline(this.#job);
    while (list.children.length > entries.length) list.lastElementChild.remove();
    entries.forEach(([at, kind, words], nth) => {
      const item = list.children[nth] ?? list.appendChild(newItem());
      item.className = kind;
      paint(item.querySelector("time"), { at }, Date.now());
      write(item.querySelector("span"), words);
    });
  }

  async #loadWhy() {
    if (!this.#isWaiting()) return;
    this.#asked = Date.now();
    try {
      const why = await request("GET", `${this.#path}/waiting`, { signal: this.signal });
      if (!this.#isWaiting() || this.signal.aborted) return;
      const isShown = why.reason !== "NOT_WAITING";
      this.#part("waiting").hidden = !isShown;
      this.#part("waiting").dataset.reason = why.reason;
      const until = why.until === undefined ? "" : new Date(why.until).toLocaleString();
      const at = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
      const end = why.expiresAt ? ` It expires at ${new Date(why.expiresAt).toLocaleString()}.` : "";
      write(this.#part("why"), isShown ? (until ? why.detail.replace(at, until) : why.detail) + end : "");
    } catch (problem) {
      if (!this.signal.aborted && problem.status !== 404) this.cope("job", problem);
    }
  }

  #followLog() {
    const path = `/domains/${encodeURIComponent(this.domain)}/logs?job=${encodeURIComponent(this.id)}`;
    const load = paced(async () => {
      try {
        const page = await request("GET", `${path}&limit=${LINES_PAGE}`, { signal: this.signal });
        page.items.reverse().forEach((line) => this.#add(line));
        this.#part("log-more").hidden = page.next === undefined;
        this.#part("log-empty").hidden = this.#lines.size > 0;
      } catch (problem) {
        if (!this.signal.aborted && problem.status !== 404) this.cope("log", problem);
      }
    }, this.signal);
    // What is said between the list and the stream is in both, and known again by its id.
    listen(`${path}&follow=true`, this.signal, (name, data) => {
      if (name === "open") load();
      if (name === "log") this.#add(JSON.parse(data));
    });
    load();
  }

  #add(line) {
    if (this.signal.aborted || this.#lines.has(line.logId)) return;
    const log = this.#part("log");
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 24;
    const row = newLine(line);
    this.#lines.set(line.logId, row);
    let behind = log.lastElementChild;
    while (behind && position(behind.line) > position(line)) behind = behind.previousElementSibling;
    if (behind) behind.after(row);
    else log.prepend(row);
    this.#part("log-empty").hidden = true;
    if (this.#lines.size > LINES_MAX) {
      this.#lines.delete(log.firstElementChild.line.logId);
      log.firstElementChild.remove();
      this.#part("log-more").hidden = false;
    }
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  }
}

function position({ metadata, logId }) {
  return `${String(metadata.createdAt).padStart(16, "0")}${logId}`;
}

function newLine(line) {
  const row = document.createElement("li");
  row.line = line;
  row.dataset.level = line.level ?? "INFO";
  const time = row.appendChild(document.createElement("time"));
  const at = new Date(line.metadata.createdAt);
  time.dateTime = at.toISOString();
  time.title = at.toLocaleString();
  time.textContent = at.toLocaleTimeString([], { hour12: false });
  const level = row.appendChild(document.createElement("b"));
  level.textContent = line.level ?? "";
  const text = row.appendChild(document.createElement("span"));
  text.textContent = sentence(line);
  return row;
}

/** The message where it begins like the title, otherwise both. */
function sentence({ title, message }) {
  if (!message) return title;
  return message.startsWith(title.replace(/…$/, "")) ? message : `${title}: ${message}`;
}

function newItem() {
  const item = document.createElement("li");
  item.append(document.createElement("time"), " ", document.createElement("span"));
  return item;
}

function timeline(job) {
  const entries = [[job.metadata.createdAt, "", "It was submitted"]];
  const history = job.history ?? [];
  // Old entries may be gone: attempts are counted back from the present one.
  const failures = (from) => history.slice(from).filter(({ event }) => event === "RETRY").length;
  const begun = history.findLastIndex(({ event }) => event === "REQUEUE");
  history.forEach((entry, nth) => {
    const attempt = nth > begun ? (job.attempt ?? 1) - failures(nth) : failures(0) - failures(nth) + 1;
    const [kind, words] = DEEDS[entry.event]?.(entry, attempt) ?? ["", statusInWords(entry.event)];
    entries.push([entry.at, kind, words]);
  });
  if (job.startedAt) entries.push([job.startedAt, "running", `Attempt ${job.attempt ?? 1} began`]);
  if (job.finishedAt) entries.push([job.finishedAt, job.status.toLowerCase(), ended(job)]);
  return entries;
}

function ended({ status, result }) {
  if (status === "SUCCESSFUL") return "It succeeded";
  if (result?.cancelled) return `It was cancelled ${result.cancelled}`;
  return `${status === "ERROR" ? "It was given up" : "It failed"}${because(result)}`;
}

function pretty(document) {
  return Object.keys(document ?? {}).length === 0 ? "Empty" : JSON.stringify(document, null, 2);
}
