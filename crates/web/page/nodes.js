// The nodes: which are known, in which order they stand, and what each cell of a node's row says.

import { NOTHING, request, statusInWords } from "./api.js";

const LATE_AFTER_MS = 10_000;

export class NodeList {
  #nodes = new Map();
  #loadedAt = 0;

  async load(signal) {
    const { items } = await request("GET", "/nodes", { signal });
    this.#nodes = new Map(items.map((node) => [node.id, this.#younger(node)]));
    this.#loadedAt = Date.now();
  }

  apply(node) {
    this.#nodes.set(node.id, node);
  }

  /** Tells a node to `pause`, `resume` or `drain`, and takes over what Rota answers. */
  async tell(wish, { id }, signal) {
    this.apply(await request("POST", `/nodes/${id}/${wish}`, { signal }));
  }

  /** Those that live first, each group by name. */
  ordered() {
    return [...this.#nodes.values()].sort((a, b) => isGone(a) - isGone(b) || byName(a, b));
  }

  summary() {
    const live = [...this.#nodes.values()].filter((node) => !isGone(node));
    const total = (field) => live.reduce((sum, node) => sum + (node[field] ?? 0), 0);
    return `${live.length} live · ${total("running")} of ${total("capacity")} slots in use`;
  }

  /** Whether a node that should live was not heard of for this long, and nobody looked. */
  isSilentFor(ms, now) {
    const heardAt = (node) => Math.max(node.lastSeenAt, this.#loadedAt);
    return [...this.#nodes.values()].some((node) => !isGone(node) && now - heardAt(node) > ms);
  }

  /** The stream may have told of a node while the list was on its way. */
  #younger(node) {
    const held = this.#nodes.get(node.id);
    return held?.metadata.updatedAt > node.metadata.updatedAt ? held : node;
  }
}

export const nodeView = {
  key: (node) => node.id,
  status: (node) => node.status,
  /** What is worth a highlight when it changes; heartbeats and load are not. */
  mark: (node) => [node.status, node.wanted, node.version, node.sections?.length].join(),
  cells: (node) => ({
    name: node.name,
    status: statusInWords(node.status),
    wanted: wantedWord(node),
    running: load(node),
    rank: isGone(node) || node.wanted ? NOTHING : String(node.jobQueueSection),
    sections: isGone(node) ? NOTHING : sectionsInWords(node.sections ?? []),
    seen: isGone(node) ? { age: node.lastSeenAt } : { age: node.lastSeenAt, lateAfterMs: LATE_AFTER_MS },
    version: node.version ?? NOTHING,
  }),
  /** What can be wanted of it now. */
  actions: (node) => {
    if (isGone(node) || node.controllable === false) return [];
    if (!node.wanted) return ["pause", "drain"];
    return node.wanted === "PAUSE" ? ["resume", "drain"] : ["resume"];
  },
};

/** How many, and which, where they are few enough to be read. */
function sectionsInWords(sections) {
  if (sections.length === 0) return "none";
  const [first, last] = [sections[0], sections.at(-1)];
  if (sections.length <= 3) return sections.join(", ");
  const isRow = last - first + 1 === sections.length;
  return isRow ? `${first}–${last}` : `${sections.length}: ${first}, ${sections[1]} … ${last}`;
}

function wantedWord({ wanted, status, running = 0 }) {
  if (!wanted || status === "TERMINATED") return "";
  if (wanted === "PAUSE") return "paused";
  return running > 0 ? "draining" : "drained";
}

function load({ status, running = 0, capacity }) {
  if (status === "TERMINATED" || !capacity) return NOTHING;
  return { text: `${running} of ${capacity}`, share: Math.min(running / capacity, 1) };
}

function isGone(node) {
  return node.status === "TERMINATED";
}

function byName(a, b) {
  return a.name.localeCompare(b.name, undefined, { numeric: true });
}
