// The code cells of a page: edited, run, stopped, reset, and what they show.
import { LIMIT, Python } from "./python.js";
import { Work, together } from "./work.js";

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

/** A sentence in which what stands in backticks is code. */
const sentence = (text) =>
  make("p", {}, ...text.split("`").map((part, i) => (i % 2 ? make("code", {}, part) : part)));

const MARKS = { "not started": "○", right: "✓", mistake: "✗", wrong: "✗", error: "!" };

/** What each kind of output becomes. Texts are texts: none of them is ever HTML here. */
const SHOWN = {
  value: ({ text }) => make("pre", {}, text),
  png: ({ data }, say) =>
    make("img", { src: `data:image/png;base64,${data}`, alt: say("plot") }),
  picture: ({ svg, alt }, say) => {
    // As an image, an SVG can neither run a script nor ask anybody for anything.
    const bytes = new TextEncoder().encode(svg);
    const data = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
    const src = `data:image/svg+xml;base64,${data}`;
    return make("img", { src, alt: alt ?? say("plot") });
  },
  error: ({ trace, last }) => make("pre", { className: "live-error" }, `${trace}${last}`),
  cut: (_, say) => make("p", { className: "live-note" }, say("cut")),
  html: ({ data }, say) => frame(data, say("html")),
  verdict: ({ exercise, status, sentences, example, closing }) => {
    const [first, ...rest] = sentences.map(sentence);
    const mark = make("span", { ariaHidden: "true" }, `${MARKS[status]} `);
    first.prepend(mark, make("strong", {}, exercise), ": ");
    const lines = example.map(([label, text]) =>
      text.includes("\n")
        ? [`  ${label}`, ...text.split("\n").map((line) => `    ${line}`)].join("\n")
        : text
          ? `  ${label} ${text}`
          : label,
    );
    const box = make("div", { className: "live-verdict" }, first, ...rest);
    if (lines.length) box.append(make("pre", {}, lines.join("\n")));
    box.append(...closing.map(sentence));
    box.dataset.status = status;
    return box;
  },
};

/**
 * HTML of the reader's code, in a frame in which no script runs: the sandbox allows
 * none, and the page's policy, which the frame inherits, allows none either. It keeps its
 * origin only so that the page can see how high it is.
 */
function frame(html, title) {
  const box = make("iframe", { className: "live-frame", title });
  box.setAttribute("sandbox", "allow-same-origin");
  box.srcdoc = `<!doctype html><meta charset="utf-8"><body>${html}`;
  box.onload = () => {
    // A link in it may have led to what the policy keeps out.
    if (!box.contentDocument?.body) return;
    const { body, documentElement } = box.contentDocument;
    const { color, fontFamily, fontSize } = getComputedStyle(box);
    Object.assign(body.style, { color, fontFamily, fontSize, margin: 0, overflowX: "auto" });
    documentElement.style.colorScheme = document.documentElement.dataset.theme;
    box.style.height = `${documentElement.scrollHeight + 4}px`;
  };
  return box;
}

const dress = new MutationObserver(() => {
  for (const box of document.querySelectorAll(".live-frame")) box.onload();
});

/** A widget of the book, alive: the loader of the page takes it from here. */
function widget({ name, state, svg, alt }, say) {
  const script = document.querySelector('script[src*="widgets/loader.js"]');
  const picture = SHOWN.picture({ svg, alt }, say);
  if (!script) return picture;
  const host = make("div", { className: "attn-widget" }, make("figure", {}, picture));
  Object.assign(host.dataset, { widget: name, state: JSON.stringify(state) });
  import(script.src).then(({ hydrate }) => hydrate(host));
  return host;
}

class Cell {
  #editor = null;
  #output = null;
  #last = null; // the element that more text is added to
  #taking = false; // whether a text comes from what is kept, and need not be kept

  constructor(page, about, element) {
    Object.assign(this, about); // id, source, needs, space
    this.page = page;
    this.element = element;
    this.#read(page.work.cell(this.key));
  }

  #read({ text, base = this.source, beside } = {}) {
    // If the book has another text now, it is shown, and the reader's is kept beside it.
    const old = text !== undefined && base !== this.source;
    this.own = old ? undefined : text;
    this.beside = old ? together(beside, text) : beside;
  }

  get key() {
    return `${this.page.name}#${this.id}`;
  }

  get text() {
    return this.own ?? this.source;
  }

  #keep() {
    const { own, beside } = this;
    const entry = { ...(own !== undefined && { text: own, base: this.source }) };
    if (beside !== undefined) entry.beside = beside;
    if (!this.page.work.keep(this.key, entry)) this.status = this.page.say("not_kept");
    this.#show();
  }

  // --- buttons and texts ---

  /** Put what belongs to an opened page beside the two buttons that are there. */
  attach() {
    this.bar = this.element?.querySelector(".live-bar");
    this.runButton = this.bar?.querySelector(".live-run");
    if (!this.runButton || this.stop) return; // It may not run in a page at all.
    const { say } = this.page;
    const button = (name, act, hidden = true) =>
      make("button", { type: "button", className: `live-${name}`, hidden, onclick: act }, say(name));
    this.stop = button("stop", () => this.page.stop());
    this.reset = button("reset", () => this.change(undefined));
    this.mine = button("mine", () => this.#swap());
    this.drop = button("drop", () => {
      this.beside = undefined;
      this.#keep();
      this.runButton.focus();
    });
    this.editButton = this.bar.querySelector(".live-edit");
    const status = this.bar.querySelector(".live-status");
    status.before(this.stop, this.reset);
    this.other = make("div", { className: "live-other", hidden: true });
    this.other.append(
      make("p", {}, say("beside")),
      make("pre", {}),
      make("p", {}, this.mine, " ", this.drop),
    );
    this.mine.hidden = this.drop.hidden = false;
    this.bar.after(this.other);
    if (this.own !== undefined) this.#open();
    this.#show();
  }

  /** Show the reader's text without being asked. */
  #open() {
    this.edit(false).catch(() => (this.status = this.page.say("not_loaded")));
  }

  set status(text) {
    const place = this.bar?.querySelector(".live-status");
    if (place) place.textContent = text;
  }

  set state(state) {
    const busy = state === "waiting" || state === "running";
    this.stop.hidden = !busy;
    this.bar.dataset.state = state;
  }

  #show() {
    if (!this.stop) return;
    this.reset.hidden = this.own === undefined;
    this.other.hidden = this.beside === undefined;
    this.other.querySelector("pre").textContent = this.beside ?? "";
  }

  async edit(focus = true) {
    if (!this.#editor) {
      const { say } = this.page;
      if (focus) this.status = say("loading_editor");
      const { edit } = await import(new URL("editor.js", this.page.here).href);
      if (!this.#editor) {
        const input = this.element.querySelector(".cell_input");
        const place = make("div", { className: "live-editor" });
        input.hidden = true;
        input.after(place);
        this.#editor = edit(place, this.text, {
          label: say("code", { id: this.id }),
          change: (text) => this.#typed(text),
          run: () => this.run(),
          leave: () => this.runButton.focus(),
        });
        this.editButton.hidden = true;
      }
      if (focus) this.status = say("keys");
    }
    if (focus) this.#editor.focus();
  }

  #typed(text) {
    if (this.#taking) return;
    this.own = text === this.source ? undefined : text;
    this.#keep();
  }

  /** Show another text; `undefined` is the book's. */
  change(text) {
    this.own = text === this.source ? undefined : text;
    if (this.#editor) this.#editor.replace(this.text);
    else if (this.own !== undefined) this.#open();
    this.#keep();
    if (text === undefined) {
      this.clear();
      this.status = this.page.say("reset_done");
      this.runButton.focus();
    }
  }

  #swap() {
    const mine = this.beside;
    this.beside = this.own;
    this.change(mine);
    this.runButton.focus();
  }

  /** Take in what a file or another tab brought. */
  take(entry) {
    const before = this.text;
    this.#read(entry);
    if (this.text !== before) {
      this.#taking = true;
      if (this.#editor) this.#editor.replace(this.text);
      else this.#open();
      this.#taking = false;
    }
    this.#show();
  }

  // --- output ---

  /** Take away what a run has shown; what the book shows comes back. */
  clear() {
    this.#output?.remove();
    this.#output = this.#last = null;
    for (const stored of this.element.querySelectorAll(".cell_output")) stored.hidden = false;
  }

  show({ kind, about }) {
    if (!this.#output) {
      for (const stored of this.element.querySelectorAll(".cell_output")) stored.hidden = true;
      this.#output = make("div", { className: "live-output", role: "group" });
      this.#output.setAttribute("aria-label", this.page.say("output", { id: this.id }));
      this.other.after(this.#output);
    }
    if (kind === "text") {
      if (this.#last?.dataset.stream !== about.stream) {
        this.#last = make("pre", {});
        this.#last.dataset.stream = about.stream;
        this.#output.append(this.#last);
      }
      this.#last.append(about.text);
      return;
    }
    this.#last = null;
    const { say } = this.page;
    const shown = kind === "widget" ? widget(about, say) : SHOWN[kind](about, say);
    this.#output.append(shown);
    if (shown.scrollWidth > shown.clientWidth) shown.tabIndex = 0;
  }

  note(text) {
    this.show({ kind: "error", about: { trace: "", last: text } });
  }

  run() {
    return this.page.run(this);
  }
}

class Page {
  #done = new Map(); // space/id -> the text that this Python has run
  #life = 0;
  #queue = Promise.resolve();
  #round = 0; // counts the stops, which end what is waiting, too

  constructor({ say, here, name, about }) {
    Object.assign(this, { say, here, name });
    this.sizes = about.sizes;
    this.work = new Work(new URL("../", here).pathname);
    this.python = new Python(here);
    this.cells = new Map();
    for (const one of about.cells) {
      const element = document.querySelector(`[data-cell="${CSS.escape(one.id)}"]`);
      this.cells.set(one.id, new Cell(this, one, element));
    }
  }

  /** Run a cell after those that it needs; one after the other, in the order asked for. */
  run(cell) {
    if (cell.waits) return this.#queue; // A key held down asks often.
    const round = this.#round;
    cell.waits = true;
    cell.state = "waiting";
    cell.status = this.say("waiting");
    const turn = this.#queue.then(async () => {
      cell.waits = false;
      if (round === this.#round) await this.#run(cell);
      else cell.status = this.say("ended_stop");
      cell.state = "idle";
    });
    this.#queue = turn.catch((error) => {
      cell.note(String(error));
      cell.state = "idle";
    });
    return this.#queue;
  }

  /** Show what a file or another tab has brought. */
  takeIn() {
    const { cells } = this.work.record;
    for (const cell of this.cells.values()) {
      if (!cell.element) continue;
      if (cells[cell.key]) this.addBar(cell.element);
      cell.attach();
      if (cell.stop) cell.take(cells[cell.key]);
    }
    this.work.changed();
  }

  stop() {
    this.#round++;
    this.python.end("stop");
  }

  /** The cells to run, in order: what is needed and new or changed, and what follows it. */
  #plan(cell) {
    if (this.#life !== this.python.life) this.#done.clear();
    this.#life = this.python.life;
    const needed = cell.needs.map((id) => this.cells.get(id));
    const first = needed.findIndex((one) => this.#ran(cell.space, one) !== one.text);
    return first < 0 ? [cell] : [...needed.slice(first), cell];
  }

  #ran(space, { id }) {
    return this.#done.get(`${space}/${id}`);
  }

  /** Remember that a cell ran; what came after it with another text is out of date. */
  #remember(space, cell, text) {
    const before = this.#ran(space, cell);
    if (before !== text) {
      let later = false;
      for (const id of this.cells.keys()) {
        if (later) this.#done.delete(`${space}/${id}`);
        later ||= id === cell.id;
      }
    }
    this.#done.set(`${space}/${cell.id}`, text);
  }

  async #run(cell) {
    const { say } = this;
    const start = performance.now();
    cell.state = "running";
    cell.clear();
    for (const one of this.#plan(cell)) {
      const quiet = one !== cell;
      const { text } = one;
      const task = { cell: one.id, source: text, space: cell.space, quiet };
      const result = await this.python.run(
        { ...task, work: this.work.answers() },
        ({ state, shown }) => {
          if (state) cell.status = say(`state_${state}`, { ...this.sizes, id: one.id });
          if (!shown) return;
          if (quiet) cell.note(say("needed", { id: one.id }));
          cell.show(shown);
        },
      );
      if (result.work) this.work.addAnswers(result.work);
      if (result.ok) this.#remember(cell.space, one, text);
      if (result.ended) {
        const line = say(`ended_${result.ended}`, { seconds: LIMIT, what: result.what });
        cell.status = line;
        if (result.ended !== "stop") cell.note(line);
        return;
      }
      if (!result.ok) {
        cell.status = say("failed");
        return;
      }
    }
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    cell.status = say("done", { seconds });
  }
}

/** What the reader has done, and its way into a file and out of one. */
function workPanel(page) {
  const { say, work } = page;
  const status = make("p", { role: "status" });
  const count = make("p", {});
  const tell = () => {
    const { exercises, cells } = work.record;
    const right = Object.values(exercises).filter((e) => e.status === "right").length;
    count.textContent = say("kept", { right, cells: Object.keys(cells).length });
  };
  const file = make("input", { type: "file", accept: ".json,application/json" });
  file.onchange = async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    try {
      work.add(await chosen.text());
      page.takeIn();
      status.textContent = say("loaded", { file: chosen.name });
    } catch (error) {
      const why = ["version", "full"].includes(error.message) ? error.message : "damaged";
      status.textContent = say(`file_${why}`, { file: chosen.name });
    }
    file.value = "";
  };
  work.changed = tell;
  const save = make("button", { type: "button" }, say("save"));
  save.onclick = () => {
    const address = URL.createObjectURL(new Blob([work.text()], { type: "application/json" }));
    make("a", { href: address, download: "work.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };
  const label = make("label", {}, `${say("load")} `, file);
  const panel = make("div", { className: "live-work-panel" }, count, save, " ", label, status);
  return { panel, tell };
}

/** Open the page: no Python yet, but its cells, with what the reader wrote before. */
export async function open({ say, here, page: path, addBar }) {
  const site = new URL("../", here).pathname;
  const name = path.slice(site.length).replace(/\.html$/, "");
  const style = make("link", { rel: "stylesheet", href: new URL("live.css", here).href });
  const [answer] = await Promise.all([
    fetch(new URL(`${name}.json`, here)),
    new Promise((done) => {
      style.onload = style.onerror = done;
      document.head.append(style);
    }),
  ]);
  if (!answer.ok) throw new Error(`${name}.json: ${answer.status}`);
  const page = new Page({ say, here, name, about: await answer.json() });
  page.addBar = addBar;
  // What is written in one tab stands in all of them, so that none overwrites another.
  addEventListener("storage", ({ key, newValue }) => {
    if (page.work.isKey(key) && newValue !== null) page.takeIn();
  });
  dress.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const attach = () => page.cells.forEach((cell) => cell.attach());
  attach();
  let panel;
  return {
    get: (id) => page.cells.get(id),
    attach,
    /** Show or hide the reader's work, after `place`. */
    work(place) {
      if (!panel) {
        panel = workPanel(page);
        place.after(panel.panel);
        panel.panel.hidden = true;
      }
      panel.panel.hidden = !panel.panel.hidden;
      panel.tell();
    },
    page,
  };
}
