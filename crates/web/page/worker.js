// The worker that all tabs of a browser share: it has the streams, so that there is one of each and not one per tab. A browser
// opens only six connections to one place.

import { Streams, Subscriber } from "./stream.js";

const streams = new Streams();

addEventListener("connect", ({ ports: [port] }) => {
  const subscriber = new Subscriber(streams, (message) => port.postMessage(message));
  port.addEventListener("message", ({ data: { paths, life } }) => {
    if (paths) subscriber.want(paths);
    // A tab holds this lock while it lives: whoever gets it knows that the tab is gone, also if it said nothing.
    if (life) navigator.locks?.request(life, () => subscriber.want([]));
  });
  port.start();
});
