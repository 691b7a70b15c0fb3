// How documents become rows of a table: a document keeps its row while it changes, and only what is new is touched. Everything
// is written as text, never as markup.

import { NOTHING, momentInWords } from "./api.js";

/** Touches the page only if there is something new to say, and tells whether there was. */
export function write(cell, text) {
  const isNew = cell.textContent !== text;
  if (isNew) cell.textContent = text;
  return isNew;
}

/** A cell says a text, a text with the share of something that is taken or with a link, or a moment. */
export function paint(cell, value, now) {
  const text = value.text ?? (typeof value === "string" ? value : momentInWords(value, now));
  const isNew = write(cell, text);
  cell.classList.toggle("none", text === NOTHING);
  cell.classList.toggle("late", now - value.age > value.lateAfterMs);
  if (value.share !== undefined) cell.style.setProperty("--share", value.share);
  if (value.href !== undefined) cell.href = value.href;
  if (isNew && value.age !== undefined) {
    cell.title = new Date(value.age).toLocaleString();
    cell.dateTime = new Date(value.age).toISOString();
  }
}

/** Fills the cells below an element; each says by `data-field` what it shows. */
export function paintAll(unit, values) {
  const now = Date.now();
  for (const cell of unit.querySelectorAll("[data-field]")) paint(cell, values[cell.dataset.field] ?? "", now);
}

function highlight(unit) {
  unit.classList.remove("changed");
  void unit.offsetWidth; // lets the animation start anew
  unit.classList.add("changed");
}

/** Buttons with `data-action` call `act(action)`; one that was pressed is pressed no second time while its answer is on its way. */
export function wireActions(unit, act) {
  for (const button of unit.querySelectorAll("[data-action]")) {
    button.addEventListener("click", async () => {
      button.disabled = true;
      await act(button.dataset.action);
      button.disabled = false;
    });
  }
}

export function showActions(unit, actions) {
  for (const button of unit.querySelectorAll("[data-action]")) button.hidden = !actions.includes(button.dataset.action);
}

/** The rows of one kind of document, behind an element of a table. */
export class Rows {
  #units = new Map();
  #hasShown = false;

  /** `act` does what a button in a row says. */
  constructor(behind, template, view, act) {
    Object.assign(this, { behind, template, view, act });
  }

  show(docs) {
    const keys = new Set(docs.map(this.view.key));
    for (const key of this.#units.keys()) if (!keys.has(key)) this.#remove(key);
    let previous = this.behind;
    for (const doc of docs) {
      const unit = this.#update(doc);
      if (previous.nextElementSibling !== unit) previous.after(unit);
      previous = unit;
    }
    this.#hasShown = true;
  }

  /** Lets the ages in the rows move on. */
  tick() {
    for (const unit of this.#units.values()) paintAll(unit, this.view.cells(unit.doc));
  }

  clear() {
    for (const key of this.#units.keys()) this.#remove(key);
    this.#hasShown = false;
  }

  #remove(key) {
    this.#units.get(key).remove();
    this.#units.delete(key);
  }

  #update(doc) {
    const key = this.view.key(doc);
    const unit = this.#units.get(key) ?? this.#create(key);
    if (unit.doc === doc) return unit;
    const mark = this.view.mark(doc);
    if (this.#hasShown && unit.mark !== mark) highlight(unit);
    Object.assign(unit, { doc, mark });
    unit.dataset.status = this.view.status(doc);
    paintAll(unit, this.view.cells(doc));
    if (this.view.actions) showActions(unit, this.view.actions(doc));
    return unit;
  }

  #create(key) {
    const unit = this.template.content.firstElementChild.cloneNode(true);
    unit.addEventListener("animationend", () => unit.classList.remove("changed"));
    wireActions(unit, (action) => this.act(action, unit.doc));
    this.#units.set(key, unit);
    return unit;
  }
}
