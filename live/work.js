// What the reader wrote, kept in this browser: right answers as a notebook keeps them in
// work.json, and the texts of cells. The file that is saved and loaded is the same record:
//
//   {"version": 1, "exercises": {name: {"source": …, "status": "right"}},
//    "cells": {"en/01_qkv#softmax-stub": {"text": …, "base": …, "beside": …}}}
//
// `base` is what the book had when the reader began; `beside` is a text of the reader's
// that is kept, but not shown, because the book or a file brought another one.

const VERSION = 1;
const isObject = (thing) => typeof thing === "object" && thing !== null && !Array.isArray(thing);
const isEntry = (thing, ...names) =>
  isObject(thing) && names.every((name) => ["string", "undefined"].includes(typeof thing[name]));

/** Read a record from a text; throws "damaged" or "version". */
export function parse(text) {
  let record;
  try {
    record = JSON.parse(text);
  } catch {
    throw new Error("damaged");
  }
  if (!isObject(record)) throw new Error("damaged");
  if (Number.isInteger(record.version) && record.version !== VERSION)
    throw new Error("version");
  const { exercises, cells = {} } = record;
  const whole =
    record.version === VERSION &&
    isObject(exercises) &&
    isObject(cells) &&
    Object.values(exercises).every((e) => isObject(e) && typeof e.source === "string") &&
    Object.values(cells).every((c) => isEntry(c, "text", "base", "beside"));
  if (!whole) throw new Error("damaged");
  return { ...record, cells };
}

const LINE = "\n\n# ----------\n\n";

/** Several texts of the reader's in the place of one, so that none is lost. */
export function together(...texts) {
  const parts = texts.flatMap((text) => text?.split(LINE) ?? []);
  return parts.length ? [...new Set(parts)].join(LINE) : undefined;
}

export class Work {
  #key;
  #held = null; // the record, while the browser keeps none or has no more room

  /** Called after each change. */
  changed() {}

  /** `site` tells apart what several sites of one host keep. */
  constructor(site) {
    this.#key = `attnbook.work:${site}`;
  }

  /** Whether a key of the browser's storage is that of this record. */
  isKey(key) {
    return key === this.#key;
  }

  get record() {
    if (this.#held) return structuredClone(this.#held);
    let text = null;
    try {
      text = localStorage.getItem(this.#key);
      if (text !== null) return parse(text);
    } catch {
      // A new record begins.
      if (text !== null) this.#putAside(text);
    }
    return { version: VERSION, exercises: {}, cells: {} };
  }

  /** Keep a record that cannot be read, for whoever can. */
  #putAside(text) {
    const keep = (key) => {
      try {
        localStorage.setItem(key, text);
        return true;
      } catch {
        return false;
      }
    };
    const place = `${this.#key}.broken`;
    if (keep(place)) return;
    localStorage.removeItem(this.#key); // There is no room for it twice.
    if (!keep(place)) keep(this.#key);
  }

  /**
   * Change the record; says whether the browser kept it. If not, the page holds it, so
   * that it can still be saved to a file; unless `hold` is false. Other tabs write too.
   */
  #change(how, hold = true) {
    const record = this.record;
    how(record);
    let kept = true;
    try {
      localStorage.setItem(this.#key, JSON.stringify(record));
      this.#held = null;
    } catch {
      kept = false;
      if (hold) this.#held = record;
    }
    this.changed();
    return kept;
  }

  cell(name) {
    return this.record.cells[name];
  }

  /** Keep what belongs to a cell; nothing if `entry` holds no text of the reader's. */
  keep(name, entry) {
    return this.#change(({ cells }) => {
      if (entry.text === undefined && entry.beside === undefined) delete cells[name];
      else cells[name] = entry;
    });
  }

  /** The right answers, in the form of work.json. */
  answers() {
    const { version, exercises } = this.record;
    return JSON.stringify({ version, exercises });
  }

  /** Keep the right answers of a record that Python wrote. */
  addAnswers(text) {
    let found;
    try {
      found = parse(text);
    } catch {
      return;
    }
    if (JSON.stringify(found.exercises) !== JSON.stringify(this.record.exercises))
      this.#change((record) => Object.assign(record.exercises, found.exercises));
  }

  /** The whole record, as the text of a file. */
  text() {
    return `${JSON.stringify(this.record, null, 1)}\n`;
  }

  /**
   * Add what a file holds; throws "damaged", "version" or "full". A cell that has another
   * text already keeps it, and the file's is kept beside it; no text takes another's place.
   */
  add(text) {
    const found = parse(text);
    const kept = this.#change((record) => {
      Object.assign(record.exercises, found.exercises);
      for (const [name, entry] of Object.entries(found.cells)) {
        const own = record.cells[name] ?? {};
        const { text, base } = own.text === undefined ? entry : own;
        const other = entry.text === text ? undefined : entry.text;
        const beside = together(own.beside, entry.beside, other);
        if (text !== undefined || beside !== undefined)
          record.cells[name] = { text, base, beside };
      }
    }, false);
    if (!kept) throw new Error("full");
  }
}
