// Where a tab gets its events from: the worker that all tabs share; where there is none, from the one tab among them that has
// the streams; and from streams of its own if tabs cannot agree on one.

import { Streams, Subscriber } from "./stream.js";

const LEADER = "rota-streams";
/** Tabs that were opened before Rota was replaced may still have their worker: one that speaks another way has another name. */
const WORKER = "rota-1";

/** Names this tab. Not a secret: it only has to differ from those of the other tabs. */
const NAME = `rota-tab-${Date.now()}-${Math.random()}`;

/** Until the lock of this tab is its own: before that, whoever asks for it would take the tab for gone. */
function held() {
  return new Promise((have) => {
    navigator.locks?.request(NAME, () => {
      have();
      return new Promise(() => {});
    });
  });
}

function byWorker(deliver, failed) {
  const worker = new SharedWorker("/worker.js", { type: "module", name: WORKER });
  worker.addEventListener("error", failed);
  worker.port.addEventListener("message", ({ data }) => deliver(data));
  worker.port.start();
  held().then(() => worker.port.postMessage({ life: NAME }));
  return (paths) => worker.port.postMessage({ paths });
}

/** The tab that holds the lock has the streams. Tabs say by a channel what they want; the next leader asks all of them again. */
function byLeader(deliver) {
  const channel = new BroadcastChannel(LEADER);
  let wanted = [];
  let own; // of the leader: what it listens to itself
  const others = new Map();
  const streams = new Streams();

  const alive = held();

  function say() {
    alive.then(() => channel.postMessage({ from: NAME, paths: wanted }));
  }

  function serve(tab, paths) {
    if (!others.has(tab)) {
      others.set(tab, new Subscriber(streams, (message) => channel.postMessage({ to: tab, message })));
      navigator.locks.request(tab, () => {
        others.get(tab)?.want([]);
        others.delete(tab);
      });
    }
    others.get(tab).want(paths);
  }

  channel.addEventListener("message", ({ data: { from, paths, to, message, asks } }) => {
    if (to === NAME) deliver(message);
    else if (asks) say();
    else if (from && own) serve(from, paths);
  });
  navigator.locks.request(LEADER, () => {
    own = new Subscriber(streams, deliver);
    own.want(wanted);
    channel.postMessage({ asks: true });
    return new Promise(() => {});
  });
  return (paths) => {
    wanted = paths;
    if (own) own.want(paths);
    else say();
  };
}

function byItself(deliver) {
  const subscriber = new Subscriber(new Streams(), deliver);
  return (paths) => subscriber.want(paths);
}

const heardBy = new Map();
let want;

function connect() {
  if (globalThis.SharedWorker) return byWorker(deliver, withoutWorker);
  return connectTabs();
}

function connectTabs() {
  return globalThis.BroadcastChannel && navigator.locks ? byLeader(deliver) : byItself(deliver);
}

/** A worker that cannot be started is as good as none. */
function withoutWorker() {
  want = connectTabs();
  want([...heardBy.keys()]);
}

function deliver({ path, name, data }) {
  for (const heard of heardBy.get(path) ?? []) heard(name, data);
}

/** Listens to a stream until the signal is aborted: `heard(name, data)`, where a connection is `open` or `lost` or `refused`. */
export function listen(path, signal, heard) {
  want ??= connect();
  heardBy.set(path, [...(heardBy.get(path) ?? []), heard]);
  want([...heardBy.keys()]);
  signal.addEventListener("abort", () => {
    const rest = heardBy.get(path).filter((other) => other !== heard);
    if (rest.length > 0) heardBy.set(path, rest);
    else heardBy.delete(path);
    want([...heardBy.keys()]);
  });
}

addEventListener("pagehide", () => want?.([]));
