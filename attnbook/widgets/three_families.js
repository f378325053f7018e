// Three families: who sees whom, what is asked of each place, how many losses.

export const FAMILIES = ["encoder", "decoder", "pair"];
export const TEXTS = ["letters", "key", "rain"];
// Signs that a model is given where no token of the text stands.
export const MASK = -1;
export const START = -2;
const MOST = 12;
const LONG = 512;
const RATES = { min: 5, max: 50, step: 5 };
const SEEDS = 10000;

const range = (n, from = 0) => Array.from({ length: n }, (_, i) => from + i);
const grid = (T, S, rule) => range(T).map((t) => range(S).map((s) => rule(t, s)));

/**
 * The masks of a family for a text of n tokens, true = may look: "own" of the stack
 * that is asked; of the pair also "read", of its encoder, and "cross".
 */
export function masks(family, n) {
  if (family === "encoder") return { own: grid(n, n, () => true) };
  if (family === "decoder") return { own: grid(n - 1, n - 1, (t, s) => s <= t) };
  const S = Math.floor(n / 2);
  return {
    read: grid(S, S, () => true),
    own: grid(n - S, n - S, (t, s) => s <= t),
    cross: grid(n - S, S, () => true),
  };
}

/** The places of the encoder's holes: drawn, then turned over by hand. */
export function covered(seed, rate, flipped, n) {
  return range(n).filter((i) => uniform(seed, i) < rate / 100 !== flipped.includes(i));
}

/**
 * What a model is given and asked on a text whose tokens are 0 to n − 1: the source
 * that the pair reads, what each place is given (a token, MASK or START), and what it
 * is asked for, null where nothing is.
 */
export function lesson(family, n, holes) {
  const tokens = range(n);
  if (family === "encoder")
    return {
      source: [],
      given: tokens.map((i) => (holes.includes(i) ? MASK : i)),
      answers: tokens.map((i) => (holes.includes(i) ? i : null)),
    };
  if (family === "decoder")
    return { source: [], given: tokens.slice(0, -1), answers: tokens.slice(1) };
  const half = Math.floor(n / 2);
  const answers = tokens.slice(half);
  return { source: tokens.slice(0, half), given: [START, ...answers.slice(0, -1)], answers };
}

/** How many places are asked. */
export function losses(family, n, holes) {
  return lesson(family, n, holes).answers.filter((answer) => answer !== null).length;
}

/** How many places of a text of n tokens are asked, on average. */
export function expected(family, n, rate) {
  return family === "encoder" ? (n * rate) / 100 : losses(family, n, []);
}

/** The places that a place sees in its own stack, and those across. */
export function sees(family, n, place) {
  const allow = masks(family, n);
  const seen = (row, from) => row.flatMap((may, s) => (may ? [from + s] : []));
  if (family !== "pair") return { own: seen(allow.own[place], 0), across: [] };
  const S = allow.read.length;
  if (place < S) return { own: seen(allow.read[place], 0), across: [] };
  return { own: seen(allow.own[place - S], S), across: seen(allow.cross[place - S], 0) };
}

/** A share in whole percents, halves up. */
export function percent(part, whole) {
  return `${Math.floor((200 * part + whole) / (2 * whole))} %`;
}

function accepts(name, value) {
  if (name === "family") return FAMILIES.includes(value);
  if (name === "text") return TEXTS.includes(value);
  const within = (x, low, high) => Number.isInteger(x) && x >= low && x <= high;
  if (name === "rate")
    return within(value, RATES.min, RATES.max) && value % RATES.step === 0;
  if (name === "flipped")
    return (
      Array.isArray(value) &&
      new Set(value).size === value.length &&
      value.every((x) => within(x, 0, MOST - 1))
    );
  return within(value, 0, (name === "seed" ? SEEDS : MOST) - 1);
}

const mine = (thing, values) => say(`widget.three_families.${thing}`, values);
const wordsOf = (text) => mine(`text.${text}`).split(/\s+/);
/** Neighbouring places, as "3" or "1–3". */
const numbers = (places) =>
  [...new Set([...places.slice(0, 1), ...places.slice(-1)])].map((p) => p + 1).join("–");

/** All that is shown of a state. */
function sceneOf(model) {
  const family = model.get("family");
  const words = wordsOf(model.get("text"));
  const n = words.length;
  const [seed, rate, flipped] = ["seed", "rate", "flipped"].map((t) => model.get(t));
  const holes = covered(seed, rate, flipped, n);
  const { source, given, answers } = lesson(family, n, holes);
  const signs = { [MASK]: mine("mask"), [START]: mine("start") };
  const asked = [...source.map(() => null), ...answers];
  const rows = [...source, ...given].map((token, i) => ({
    place: i + 1,
    given: signs[token] ?? words[token],
    answer: asked[i] === null ? null : words[asked[i]],
    ...sees(family, n, i),
  }));
  const place = Math.min(model.get("place"), rows.length - 1);
  return { family, n, rate, seed, holes, rows, place, S: source.length };
}

function rowLabel({ place, given, answer, own, across }) {
  const values = {
    place,
    given,
    answer,
    seen: numbers(own),
    across: numbers(across),
  };
  if (across.length) return mine("row_asked_across", values);
  return answer === null ? mine("row_free", values) : mine("row_asked", values);
}

function summary({ family, n, rows, place, S, holes }) {
  const { given, answer, own, across } = rows[place];
  const [seen, source] = [numbers(own), numbers(across)];
  const values = { given, answer, n, place: place + 1, S, seen, source };
  const said =
    family === "encoder"
      ? mine(answer === null ? "encoder_open" : "encoder_hole", values)
      : family === "decoder"
        ? mine(place === 0 ? "decoder_first" : "decoder_later", values)
        : mine(place < S ? "pair_reads" : "pair_writes", values);
  const count = losses(family, n, holes);
  return `${said} ${mine("losses", { count, n, share: percent(count, n) })}`;
}

function build({ model, root, signal }) {
  const family = choice({
    legend: mine("family"),
    options: FAMILIES.map((value) => ({ value, content: [mine(`family.${value}`)] })),
    onChoose: (value) => change(model, { family: value }),
    signal,
  });
  const text = choice({
    legend: mine("text"),
    options: TEXTS.map((value) => ({ value, content: [wordsOf(value).join(" ")] })),
    onChoose: (value) => change(model, { text: value, flipped: [] }),
    signal,
  });
  const rate = slider({
    label: mine("rate"),
    ...RATES,
    onInput: (value) => change(model, { rate: value, flipped: [] }),
    signal,
  });
  const again = button(
    mine("draw"),
    () => change(model, { seed: (model.get("seed") + 1) % SEEDS, flipped: [] }),
    signal,
  );
  const seed = html("span", { class: "attn-hint" });
  const holes = html(
    "div",
    { class: "attn-settings" },
    rate.node,
    html("div", { class: "attn-row" }, again, seed),
  );
  const hint = html("p", { class: "attn-hint" });
  const grids = drawGrids({
    follow: (place) => {
      if (place !== model.get("place")) change(model, { place });
    },
    press(place) {
      if (model.get("family") !== "encoder") return;
      const flipped = model.get("flipped");
      const without = flipped.filter((p) => p !== place);
      const turned = without.length < flipped.length ? without : [...flipped, place];
      change(model, { flipped: turned.sort((a, b) => a - b) });
    },
    signal,
  });
  const arcs = drawArcs();
  const counts = drawCounts();
  root.append(
    family.node,
    text.node,
    holes,
    html(
      "div",
      { class: "attn-columns attn-halves" },
      html("div", {}, grids.node, hint),
      html("div", {}, arcs.node, counts.node),
    ),
  );
  return {
    draw() {
      const scene = sceneOf(model);
      family.show(scene.family);
      text.show(model.get("text"));
      holes.hidden = scene.family !== "encoder";
      rate.show(scene.rate, `${scene.rate} %`);
      seed.textContent = mine("seed", { seed: scene.seed });
      hint.textContent = mine(scene.family === "encoder" ? "hint_cover" : "hint_follow");
      grids.show(scene);
      arcs.show(scene);
      counts.show(scene);
      return summary(scene);
    },
  };
}

// ---- the matrices, with what each place is given and asked ----

function drawGrids({ follow, press, signal }) {
  const node = html("div", { class: "attn-grids" });
  const buttons = () => [...node.querySelectorAll("button")];
  const placeOf = (target) => {
    const row = target.closest?.("[data-place]");
    return row ? Number(row.dataset.place) : null;
  };
  const onRow = (type, act) =>
    node.addEventListener(
      type,
      (event) => {
        const place = placeOf(event.target);
        if (place !== null) act(place, event);
      },
      { signal },
    );
  // Not pointerover: a page that changes under a pointer at rest fires that, too.
  onRow("pointermove", follow);
  onRow("focusin", follow);
  onRow("click", (place, event) => {
    if (event.target.closest("button")) press(place);
  });
  onRow("keydown", (place, event) => {
    const all = buttons();
    const to = { ArrowUp: place - 1, ArrowDown: place + 1, Home: 0, End: all.length - 1 };
    if (!(event.key in to)) return;
    event.preventDefault();
    all[to[event.key]]?.focus();
  });

  let shape = "";
  return {
    node,
    show(scene) {
      const { family, n, rows, place, S } = scene;
      if (shape !== `${family} ${n}`) {
        shape = `${family} ${n}`;
        const allow = masks(family, n);
        node.replaceChildren(
          ...(allow.read
            ? [matrix({ family, name: "read", allow: allow.read, first: 0, from: 0 })]
            : []),
          matrix({ family, name: "own", allow: allow.own, first: S, from: S, asked: true }),
          ...(allow.cross
            ? [matrix({ family, name: "cross", allow: allow.cross, first: S, from: 0 })]
            : []),
        );
      }
      for (const tr of node.querySelectorAll("tbody tr")) {
        const i = Number(tr.dataset.place);
        const row = rows[i];
        tr.classList.toggle("attn-followed", i === place);
        const head = tr.querySelector("th").firstChild;
        head.textContent = `${row.place} ${row.given}`;
        if (head.tagName === "BUTTON") {
          head.tabIndex = i === place ? 0 : -1;
          head.setAttribute("aria-label", rowLabel(row));
          if (family === "encoder") head.setAttribute("aria-pressed", row.answer !== null);
        }
        const answer = tr.querySelector(".attn-answer");
        if (answer) answer.textContent = row.answer === null ? "" : `→ ${row.answer}`;
      }
    },
  };
}

/** A mask whose first row and first column are the places first and from. */
function matrix({ family, name, allow, first, from, asked = false }) {
  const title = mine(`matrix.${family}_${name}`);
  // The rows of the cross matrix are places that have their button already.
  const head = name === "cross" ? "span" : "button";
  const attributes = name === "cross" ? {} : { type: "button" };
  const look = name === "cross" ? "attn-sees attn-across" : "attn-sees";
  return html(
    "div",
    {},
    html("p", { class: "attn-panel-title" }, title),
    html(
      "table",
      { class: "attn-sight", "aria-label": title },
      html(
        "thead",
        {},
        html(
          "tr",
          {},
          html("td", {}, mine("given")),
          ...allow[0].map((_, s) => html("th", { scope: "col" }, String(from + s + 1))),
          html("td", {}, asked ? mine("asked") : ""),
        ),
      ),
      html(
        "tbody",
        {},
        ...allow.map((row, t) =>
          html(
            "tr",
            { "data-place": first + t },
            html(
              "th",
              { scope: "row" },
              html(head, { class: "attn-place", ...attributes }),
            ),
            ...row.map((may) =>
              html(
                "td",
                {},
                html("span", { class: may ? look : "attn-blind" }, may ? "●" : "×"),
              ),
            ),
            html("td", asked ? { class: "attn-answer" } : {}),
          ),
        ),
      ),
    ),
  );
}

// ---- what the followed place sees, as arcs ----

function drawArcs() {
  const W = 340;
  const picture = svg("svg", { role: "img", class: "attn-small" });
  return {
    node: html(
      "figure",
      { class: "attn-panel" },
      html("figcaption", {}, mine("arcs")),
      picture,
    ),
    show({ family, rows, place, S }) {
      const pair = family === "pair";
      const T = rows.length - S;
      const height = pair ? 204 : 160;
      const [readLine, askedLine] = pair ? [70, 132] : [0, 118];
      const reads = (i) => i < S;
      const x = (i) =>
        reads(i) ? (W * (i + 0.5)) / S : (W * (i - S + 0.5)) / T;
      const y = (i) => (reads(i) ? readLine : askedLine);
      // Arcs leave room for the looks across: below the pair's answer, else above.
      const up = (i) => (pair && !reads(i) ? 1 : -1);
      const arc = (i) => {
        const high = Math.min(pair ? 34 : 104, 16 + 0.36 * Math.abs(x(i) - x(place)));
        const middle = `${((x(i) + x(place)) / 2).toFixed(1)} ${(
          y(i) +
          2 * high * up(i) * 0.8
        ).toFixed(1)}`;
        return svg("path", {
          class: "attn-arc attn-stroke-weight",
          d: `M${x(place).toFixed(1)} ${y(i)}Q${middle} ${x(i).toFixed(1)} ${y(i)}`,
        });
      };
      const { own, across } = rows[place];
      const seen = new Set([...own, ...across]);
      const parts = across.map((i) =>
        svg("line", {
          class: "attn-arc attn-stroke-key",
          x1: x(place).toFixed(1),
          y1: y(place),
          x2: x(i).toFixed(1),
          y2: y(i),
        }),
      );
      parts.push(...own.filter((i) => i !== place).map(arc));
      rows.forEach((row, i) => {
        const above = pair && reads(i);
        const lower = (i - (reads(i) ? 0 : S)) % 2;
        const words = above ? 12 + 14 * lower : height - 20 + 14 * lower;
        const edge = x(i) < 40 ? "start" : x(i) > W - 40 ? "end" : "middle";
        parts.push(
          svg("circle", {
            class: seen.has(i) ? "attn-dot attn-seen" : "attn-dot attn-unseen",
            cx: x(i).toFixed(1),
            cy: y(i),
            r: i === place ? 8 : 5,
          }),
          svg(
            "text",
            {
              class: i === place ? "attn-name" : "attn-note",
              x: (edge === "start" ? 2 : edge === "end" ? W - 2 : x(i)).toFixed(1),
              y: words,
              "text-anchor": edge,
            },
            row.given,
          ),
        );
      });
      picture.setAttribute("viewBox", `0 0 ${W} ${height}`);
      picture.setAttribute("aria-label", rowLabel(rows[place]));
      picture.replaceChildren(...parts);
    },
  };
}

// ---- how many losses ----

function drawCounts() {
  const rows = FAMILIES.map((family) => ({
    family,
    name: html("span", {}, mine(`family.${family}`)),
    count: html("td"),
    share: html("span"),
    meter: html("span", { class: "attn-meter attn-losses" }),
    long: html("td"),
  }));
  const sheet = table(
    [mine("counts"), mine("here"), mine("share"), mine("long", { n: LONG })],
    rows.map((r) => [r.name, r.count, html("td", {}, r.share, r.meter), r.long]),
  );
  sheet.classList.add("attn-table");
  return {
    node: sheet,
    show({ family, n, holes, rate }) {
      for (const row of rows) {
        const count = losses(row.family, n, holes);
        row.name.classList.toggle("attn-chosen", row.family === family);
        row.count.textContent = mine("of", { part: count, whole: n });
        row.share.textContent = percent(count, n);
        row.meter.style.setProperty("--share", count / n);
        row.long.textContent = number(expected(row.family, LONG, rate), 0);
      }
    },
  };
}

export default {
  accepts,
  render: view({ title: say("widget.three_families.title"), build }),
};
