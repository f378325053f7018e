// Mask painter: who may look at whom, how much they do, and what moves if one moves.

export const KINDS = [
  "bidirectional",
  "causal",
  "window",
  "prefix",
  "padding",
  "cross",
  "painted",
];
/** The example's vectors and matrices, as in mask_painter.py. */
export const EXAMPLE = {
  read: [
    [-0.1, -1.5, 0.2],
    [0.8, 1.0, -0.3],
    [0.9, 1.5, 0.5],
    [0.2, 1.0, 0.0],
    [-1.3, -0.9, 0.0],
  ],
  written: [
    [0.2, -1.4, -1.3],
    [-1.1, -1.5, 0.0],
    [0.7, -0.3, -1.2],
  ],
  query: [
    [-0.5, 0.0, -0.5],
    [0.0, -0.5, 0.0],
    [-0.5, -0.5, 0.0],
  ],
  key: [
    [0.5, 0.0, -0.5],
    [0.5, -0.5, -0.5],
    [-0.5, 0.0, 0.5],
  ],
  value: [
    [0.0, -1.0],
    [-1.0, 0.5],
    [1.0, -0.5],
  ],
  disturbance: [1.0, -1.0, 1.0],
};
const S = EXAMPLE.read.length;
const PLACES = [...EXAMPLE.read.keys()];

/** The mask of a state, rows of booleans, true = may look. */
export function allowed({ kind, window, prefix, length, cells }) {
  const square = (rule) => PLACES.map((t) => PLACES.map((s) => rule(t, s)));
  if (kind === "bidirectional") return square(() => true);
  if (kind === "causal") return square((t, s) => s <= t);
  if (kind === "window") return square((t, s) => s <= t && s > t - window);
  if (kind === "prefix") return square((t, s) => s <= t || s < prefix);
  if (kind === "padding") return square((t, s) => s < length);
  if (kind === "cross") return EXAMPLE.written.map(() => PLACES.map(() => true));
  return cells.map((row) => [...row].map((sign) => sign === "1"));
}

/** Scores, weights and outputs, with or without a disturbed token. */
export function look(allow, disturbed = null) {
  const read = EXAMPLE.read.map((row, s) =>
    s === disturbed ? row.map((x, i) => x + EXAMPLE.disturbance[i]) : row,
  );
  // As many queries as keys: the tokens look at themselves.
  const asking = allow.length === S ? read : EXAMPLE.written;
  const q = matmul(asking, EXAMPLE.query);
  const k = matmul(read, EXAMPLE.key);
  const v = matmul(read, EXAMPLE.value);
  const scores = q.map((row, t) =>
    k.map((key, s) => (allow[t][s] ? dot(row, key) / Math.sqrt(key.length) : -Infinity)),
  );
  const weights = scores.map(softmax);
  return { scores, weights, outputs: matmul(weights, v) };
}

/** How far each output moves when each token is disturbed; 0 is 0 to the last bit. */
export function influence(allow) {
  const before = look(allow).outputs;
  const after = PLACES.map((s) => look(allow, s).outputs);
  return before.map((row, t) =>
    PLACES.map((s) => Math.hypot(...row.map((x, i) => after[s][t][i] - x))),
  );
}

/** Softmax as it is often written: −∞ − −∞ is not a number. */
export function naiveSoftmax(scores) {
  const highest = Math.max(...scores);
  const exps = scores.map((score) => Math.exp(score - highest));
  const total = exps.reduce((sum, x) => sum + x, 0);
  return exps.map((x) => x / total);
}

/** Softmax of scores in which a finite number stands for −∞. */
export function finiteSoftmax(scores, low) {
  return softmax(scores.map((score) => (score === -Infinity ? low : score)));
}

/** A share or a length: a bare 0 for what is 0 exactly. */
export function share(x) {
  if (x === 0) return "0";
  return x < 0.005 ? "<0.01" : number(x, 2);
}

function accepts(name, value) {
  if (name === "kind") return KINDS.includes(value);
  if (name === "cells") {
    return (
      Array.isArray(value) &&
      [EXAMPLE.written.length, S].includes(value.length) &&
      value.every((row) => typeof row === "string" && /^[01]{5}$/.test(row))
    );
  }
  const low = name === "window" ? 1 : 0;
  const high = name === "disturbed" ? S - 1 : S;
  return Number.isInteger(value) && value >= low && value <= high;
}

const mine = (thing, values) => say(`widget.mask_painter.${thing}`, values);
const TRAITS = ["kind", "window", "prefix", "length", "cells"];
// What the slider sets, for the kinds that have something to set.
const AMOUNTS = { window: "window", prefix: "prefix", padding: "length" };

function wordsOf(rows, { kind, length }) {
  const keys = PLACES.map((s) =>
    kind === "padding" && s >= length ? mine("pad") : mine(`read.${s + 1}`),
  );
  const written = EXAMPLE.written.map((_, t) => mine(`written.${t + 1}`));
  return { keys, queries: rows === S ? keys : written };
}

/** "a", "a and b", "a, b and c". */
function listed(words) {
  const [last, ...others] = [...words].reverse();
  if (!others.length) return last;
  return say("widget.common.and", { a: others.reverse().join(", "), b: last });
}

function summary({ keys, queries }, moves, disturbed) {
  const token = keys[disturbed];
  const moved = queries.filter((_, t) => moves[t][disturbed] > 0);
  const still = queries.filter((_, t) => moves[t][disturbed] === 0);
  if (!moved.length) return mine("moves_none", { token });
  if (!still.length) return mine("moves_all", { token });
  return mine("moves_some", { token, moved: listed(moved), still: listed(still) });
}

function build({ model, root, signal }) {
  const stateNow = () => Object.fromEntries(TRAITS.map((n) => [n, model.get(n)]));
  const paint = (t, s, on) => {
    const mask = allowed(stateNow());
    mask[t][s] = on;
    const cells = mask.map((row) => row.map((seen) => (seen ? "1" : "0")).join(""));
    change(model, { kind: "painted", cells });
  };

  const kind = choice({
    legend: mine("kind"),
    options: KINDS.map((value) => ({ value, content: [mine(`kind.${value}`)] })),
    onChoose: (value) => change(model, { kind: value }),
    signal,
  });
  const about = html("p", { class: "attn-about" });
  const amounts = Object.entries(AMOUNTS).map(([forKind, trait]) => ({
    forKind,
    trait,
    slider: slider({
      label: mine(`amount.${trait}`),
      min: trait === "window" ? 1 : 0,
      max: S,
      step: 1,
      onInput: (value) => change(model, { [trait]: value }),
      signal,
    }),
  }));
  const weights = drawGrid({
    title: mine("weights"),
    corner: mine("weights_corner"),
    cell: (t, s) => paintedCell({ t, s, paint, signal }),
  });
  const effects = drawGrid({
    title: mine("influence"),
    corner: mine("influence_corner"),
    cell: () => html("span", { class: "attn-cell attn-moves" }),
  });
  moveWithArrows(weights, signal);
  const words = PLACES.map(() => html("b"));
  const disturbed = choice({
    legend: mine("disturb"),
    options: PLACES.map((s) => ({ value: s, content: [words[s]] })),
    onChoose: (value) => change(model, { disturbed: Number(value) }),
    signal,
    look: "attn-tokens",
  });
  const nobody = html("div", { class: "attn-nobody" });
  root.append(
    kind.node,
    html("div", { class: "attn-settings" }, about, ...amounts.map((a) => a.slider.node)),
    html(
      "div",
      { class: "attn-pair" },
      html("div", {}, weights.node, html("p", { class: "attn-hint" }, mine("paint"))),
      html(
        "div",
        {},
        effects.node,
        html("p", { class: "attn-hint" }, mine("influence_note")),
      ),
    ),
    disturbed.node,
    nobody,
  );

  return {
    draw() {
      const state = stateNow();
      const allow = allowed(state);
      const seen = look(allow);
      const moves = influence(allow);
      const chosen = model.get("disturbed");
      const names = wordsOf(allow.length, state);

      kind.show(state.kind);
      about.textContent = mine(`about.${state.kind}`);
      for (const { forKind, trait, slider } of amounts) {
        slider.node.hidden = forKind !== state.kind;
        slider.show(state[trait]);
      }
      disturbed.show(chosen);
      words.forEach((word, s) => (word.textContent = names.keys[s]));
      weights.show(names, null, (cell, t, s) => {
        const [query, key] = [names.queries[t], names.keys[s]];
        const weight = share(seen.weights[t][s]);
        cell.textContent = weight;
        cell.style.setProperty("--share", seen.weights[t][s]);
        cell.setAttribute("aria-pressed", String(allow[t][s]));
        cell.setAttribute("aria-label", mine("cell", { query, key, weight }));
      });
      const largest = Math.max(...moves.flat());
      effects.show(names, chosen, (cell, t, s) => {
        cell.textContent = share(moves[t][s]);
        cell.style.setProperty("--share", largest ? moves[t][s] / largest : 0);
      });
      nobody.replaceChildren(...nobodyToLookAt(names.queries, allow, seen));
      return summary(names, moves, chosen);
    },
  };
}

/** What a row with nothing allowed gives: the book's way and two others. */
function nobodyToLookAt(queries, allow, { scores, weights }) {
  const rows = [...allow.keys()].filter((t) => !allow[t].includes(true));
  if (!rows.length) return [];
  const [t] = rows;
  const row = (label, xs) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, label),
      ...xs.map((x) => html("td", {}, Number.isNaN(x) ? "NaN" : share(x))),
    );
  return [
    html(
      "p",
      { class: "attn-panel-title" },
      mine("nobody", { words: listed(rows.map((r) => queries[r])) }),
    ),
    html(
      "table",
      {},
      html(
        "tbody",
        {},
        row(mine("nobody_book"), weights[t]),
        row(mine("nobody_naive"), naiveSoftmax(scores[t])),
        row(mine("nobody_finite"), finiteSoftmax(scores[t], -1e9)),
      ),
    ),
  ];
}

// ---- two grids, one of which is painted ----

let stroke = null; // whether the stroke of the pointer allows or forbids

function paintedCell({ t, s, paint, signal }) {
  const cell = html("button", {
    type: "button",
    class: "attn-cell attn-looks",
    tabindex: t || s ? -1 : 0,
  });
  let pointer = null;
  const turn = () => cell.getAttribute("aria-pressed") !== "true";
  cell.addEventListener(
    "pointerdown",
    (event) => {
      pointer = event.pointerType;
      // A finger scrolls; its tap is a click.
      if (event.button !== 0 || pointer === "touch") return;
      stroke = turn();
      paint(t, s, stroke);
    },
    { signal },
  );
  cell.addEventListener(
    "pointerenter",
    (event) => {
      if (event.pointerType === "touch" || event.buttons !== 1 || stroke === null) return;
      paint(t, s, stroke);
    },
    { signal },
  );
  cell.addEventListener(
    "click",
    (event) => {
      // Keys, fingers and screen readers; the stroke has painted already.
      if (event.detail > 0 && pointer !== null && pointer !== "touch") return;
      paint(t, s, turn());
    },
    { signal },
  );
  return cell;
}

function drawGrid({ title, corner, cell }) {
  const heads = PLACES.map(() => html("th", { scope: "col" }));
  const rows = PLACES.map((t) => {
    const cells = PLACES.map((s) => cell(t, s));
    const head = html("th", { scope: "row" });
    const holders = cells.map((node) => html("td", {}, node));
    return { cells, head, holders, node: html("tr", {}, head, ...holders) };
  });
  const node = html(
    "div",
    {},
    html("p", { class: "attn-panel-title" }, title),
    html(
      "table",
      { class: "attn-matrix", "aria-label": title },
      html("thead", {}, html("tr", {}, html("td", {}, corner), ...heads)),
      html("tbody", {}, ...rows.map((row) => row.node)),
    ),
  );
  return {
    node,
    rows,
    /** Name rows and columns, mark a column, and fill each cell that is there. */
    show({ keys, queries }, marked, fill) {
      heads.forEach((head, s) => {
        head.textContent = keys[s];
        head.classList.toggle("attn-marked", s === marked);
      });
      rows.forEach((row, t) => {
        row.node.hidden = t >= queries.length;
        if (row.node.hidden) return;
        row.head.textContent = queries[t];
        row.cells.forEach((cell, s) => fill(cell, t, s));
        row.holders.forEach((td, s) => td.classList.toggle("attn-marked", s === marked));
      });
    },
  };
}

/** One stop of the Tab key for the whole grid; arrows move within. */
function moveWithArrows({ node, rows }, signal) {
  const all = rows.flatMap((row) => row.cells);
  const enter = (cell) => {
    for (const other of all) other.tabIndex = other === cell ? 0 : -1;
  };
  node.addEventListener("focusin", (event) => enter(event.target), { signal });
  node.addEventListener(
    "keydown",
    (event) => {
      const at = all.indexOf(event.target);
      const [down, right] =
        {
          ArrowLeft: [0, -1],
          ArrowRight: [0, 1],
          ArrowUp: [-1, 0],
          ArrowDown: [1, 0],
        }[event.key] ?? [];
      if (at < 0 || down === undefined) return;
      event.preventDefault();
      const t = Math.floor(at / S) + down;
      const next = rows[t] && !rows[t].node.hidden && rows[t].cells[(at % S) + right];
      if (next) next.focus();
    },
    { signal },
  );
}

export default {
  accepts,
  render: view({ title: say("widget.mask_painter.title"), build }),
};
