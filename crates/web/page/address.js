// What the page shows stands in its address, behind the #, so that it can be kept as a bookmark and two windows can show two
// things: the domain, a filter of its jobs, or one job.

const PARTS = ["domain", "status", "type", "text", "job"];

/** What the address asks for; what it does not name is left out. */
export function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(PARTS.map((part) => [part, asked.get(part) || undefined]));
}

export function linkTo(place) {
  const parts = PARTS.filter((part) => place[part]).map((part) => [part, place[part]]);
  return `#${new URLSearchParams(parts)}`;
}
