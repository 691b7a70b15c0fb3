// Streams of events from Rota, each opened once however many listen to it. It runs in the worker that all tabs share, or in
// a tab where there is no such worker.

const ROOT = "/api/v1";
const KINDS = ["job", "counts", "node", "reload", "log"];
const REOPEN_MS_MIN = 500;
const REOPEN_MS_MAX = 10_000;
/** How often it is looked whether the computer slept, and after which pause it did: streams may be dead then without knowing. */
const LOOK_MS = 5_000;
const SLEPT_MS = 20_000;
/** Who listens again within this time finds the stream still open. */
const LINGER_MS = 1_000;

/**
 * One stream. Listeners are told of `open` and `lost` connections, of `refused` ones, and of each event by its name and text.
 * A broken connection is opened again soon, a refused one ever more slowly.
 */
class Stream {
  #path;
  #listeners = new Set();
  #source;
  #retry;
  #waitMs = REOPEN_MS_MIN;

  constructor(path) {
    this.#path = path;
    this.#open();
  }

  get isUnheard() {
    return this.#listeners.size === 0;
  }

  add(listener) {
    this.#listeners.add(listener);
    if (this.#source.readyState === EventSource.OPEN) listener("open");
  }

  remove(listener) {
    this.#listeners.delete(listener);
  }

  close() {
    clearTimeout(this.#retry);
    this.#source.close();
  }

  reopen() {
    this.close();
    this.#open();
  }

  #open() {
    const source = new EventSource(ROOT + this.#path);
    this.#source = source;
    source.addEventListener("open", () => {
      this.#waitMs = REOPEN_MS_MIN;
      this.#tell("open");
    });
    source.addEventListener("error", () => {
      const isRefused = source.readyState === EventSource.CLOSED;
      source.close();
      this.#tell("lost");
      if (isRefused) this.#tell("refused");
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.#open(), this.#waitMs);
      this.#waitMs = Math.min(this.#waitMs * 2, REOPEN_MS_MAX);
    });
    for (const kind of KINDS) source.addEventListener(kind, ({ data }) => this.#tell(kind, data));
  }

  #tell(name, data) {
    for (const listener of this.#listeners) listener(name, data);
  }
}

export class Streams {
  #byPath = new Map();
  #lookedAt = Date.now();

  constructor() {
    setInterval(() => this.#look(), LOOK_MS);
  }

  /** Calls `listener(name, data)` for what comes, and gives the function that ends it. */
  listen(path, listener) {
    if (!this.#byPath.has(path)) this.#byPath.set(path, new Stream(path));
    const stream = this.#byPath.get(path);
    stream.add(listener);
    return () => {
      stream.remove(listener);
      setTimeout(() => this.#closeUnheard(path), LINGER_MS);
    };
  }

  #look() {
    const slept = Date.now() - this.#lookedAt > SLEPT_MS;
    this.#lookedAt = Date.now();
    if (slept) for (const stream of this.#byPath.values()) stream.reopen();
  }

  #closeUnheard(path) {
    const stream = this.#byPath.get(path);
    if (!stream?.isUnheard) return;
    stream.close();
    this.#byPath.delete(path);
  }
}

/** What one tab listens to, on behalf of whoever has the streams. `send({ path, name, data })` reaches that tab. */
export class Subscriber {
  #stops = new Map();

  constructor(streams, send) {
    Object.assign(this, { streams, send });
  }

  /** Listens to these paths, and to no others any more. */
  want(paths) {
    for (const [path, stop] of this.#stops) {
      if (paths.includes(path)) continue;
      stop();
      this.#stops.delete(path);
    }
    for (const path of paths) {
      if (this.#stops.has(path)) continue;
      const tell = (name, data) => this.send({ path, name, data });
      this.#stops.set(path, this.streams.listen(path, tell));
    }
  }
}
