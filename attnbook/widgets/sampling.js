// Sampling: what temperature, top-k and top-p leave of a model's next letters.

export const SHOWN = 18; // the likeliest letters have bars
const HOTTEST = 2;

/** Logits divided by t; at t = 0 the first of the largest alone. */
export function temperature(logits, t) {
  if (t > 0) return logits.map((z) => z / t);
  const best = logits.indexOf(Math.max(...logits));
  return logits.map((z, i) => (i === best ? z : -Infinity));
}

/** Places from the largest logit to the smallest; equal ones as they stand. */
export function falling(logits) {
  return logits.map((_, i) => i).sort((a, b) => logits[b] - logits[a] || a - b);
}

/** The k largest logits; −∞ for the rest. */
export function topK(logits, k) {
  const kept = new Set(falling(logits).slice(0, k));
  return logits.map((z, i) => (kept.has(i) ? z : -Infinity));
}

/** The fewest likeliest logits that have p of the probability together; −∞ for the rest. */
export function topP(logits, p) {
  if (p >= 1) return [...logits];
  const order = falling(logits);
  const probabilities = softmax(order.map((i) => logits[i]));
  const kept = new Set();
  let reached = 0;
  for (let rank = 0; rank < order.length && reached < p; rank++) {
    kept.add(order[rank]);
    reached += probabilities[rank];
  }
  return logits.map((z, i) => (kept.has(i) ? z : -Infinity));
}

/** What is drawn from: temperature, then top-k, then top-p. */
export function drawnFrom(logits, t, k, p) {
  return softmax(topP(topK(temperature(logits, t), k), p));
}

/** How far the axis reaches: to one half, as long as every bar fits below. */
export function axisLimit(...shares) {
  return Math.max(...shares.flat()) <= 0.5 ? 0.5 : 1;
}

const ALL = DATA.letters.length;

function accepts(name, value) {
  if (typeof value !== "number") return false;
  if (name === "t") return value >= 0 && value <= HOTTEST;
  if (name === "p") return value > 0 && value <= 1;
  const [low, high] = name === "k" ? [1, ALL] : [0, DATA.beginnings.length - 1];
  return Number.isInteger(value) && value >= low && value <= high;
}

const mine = (thing, values) => say(`widget.sampling.${thing}`, values);
const shown = (letter) => ({ " ": "␣", "\n": "¶" })[letter] ?? letter;
const spoken = (letter) =>
  ({ " ": mine("space"), "\n": mine("paragraph") })[letter] ?? `“${letter}”`;
const ending = (text) => (text.length > 11 ? `…${text.slice(-9)}` : text);

function build({ model, root, signal }) {
  const beginning = choice({
    legend: mine("after"),
    options: DATA.beginnings.map(({ text }, value) => ({
      value,
      content: [`${ending(text).replace(/ $/, "␣")}`],
    })),
    onChoose: (value) => change(model, { beginning: Number(value) }),
    signal,
  });
  const knob = (name, min, max, step) =>
    slider({
      label: mine(name),
      min,
      max,
      step,
      onInput: (value) => change(model, { [name]: value }),
      signal,
    });
  const t = knob("t", 0, HOTTEST, 0.1);
  const k = knob("k", 1, ALL, 1);
  const p = knob("p", 0.05, 1, 0.05);
  const bars = drawBars();
  const facts = drawFacts(mine, ["kept", "best", "share", "unsure"]);
  root.append(
    html(
      "div",
      { class: "attn-columns" },
      html(
        "div",
        { class: "attn-controls" },
        beginning.node,
        t.node,
        k.node,
        p.node,
      ),
      bars.node,
    ),
    facts.node,
  );
  return {
    draw() {
      const at = model.get("beginning");
      const [hot, most, share] = [model.get("t"), model.get("k"), model.get("p")];
      const { logits, text } = DATA.beginnings[at];
      const own = softmax(logits);
      const drawn = drawnFrom(logits, hot, most, share);
      beginning.show(at);
      t.show(hot, number(hot, 1));
      k.show(most);
      p.show(share, number(share, 2));
      bars.show(falling(logits).slice(0, SHOWN), own, drawn, text);
      const kept = drawn.filter((x) => x > 0).length;
      const best = drawn.indexOf(Math.max(...drawn));
      facts.show({
        kept: `${kept} / ${ALL}`,
        best: `${shown(DATA.letters[best])} ${number(drawn[best], 2)}`,
        share: number(
          own.reduce((sum, x, i) => sum + (drawn[i] > 0 ? x : 0), 0),
          2,
        ),
        unsure: number(2 ** entropyBits(drawn), 1),
      });
      const values = {
        kept,
        letter: spoken(DATA.letters[best]),
        chance: number(drawn[best], 2),
      };
      return mine(kept === 1 ? "certain" : kept < ALL ? "cut" : "open", values);
    },
  };
}

function drawBars() {
  const [W, H, LEFT, FLOOR, TOP] = [400, 256, 38, 224, 10];
  const step = (W - LEFT) / SHOWN;
  const y = (part) => FLOOR - part * (FLOOR - TOP);
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
  const ticks = [0, 0.5, 1].map((part) => {
    const at = { x: LEFT - 5, y: y(part) + 4, "text-anchor": "end", class: "attn-note" };
    const tick = svg("text", at);
    const name = part ? "attn-grid" : "attn-axis";
    picture.append(
      svg("line", { x1: LEFT, x2: W, y1: y(part), y2: y(part), class: name }),
      tick,
    );
    return (limit) => (tick.textContent = String(part * limit));
  });
  const middle = (place) => LEFT + (place + 0.5) * step;
  const make = (inset, name, more = {}) =>
    Array.from({ length: SHOWN }, (_, place) =>
      svg("rect", {
        x: LEFT + place * step + inset,
        width: step - 2 * inset,
        class: name,
        ...more,
      }),
    );
  const fills = make(4, "attn-fill-output");
  const outlines = make(2, "attn-even", { fill: "none" });
  const names = Array.from({ length: SHOWN }, (_, place) =>
    svg("text", { x: middle(place), y: FLOOR + 18, "text-anchor": "middle" }),
  );
  picture.append(...fills, ...outlines, ...names);
  return {
    node: html(
      "figure",
      { class: "attn-panel" },
      html("figcaption", {}, mine("chart")),
      picture,
      html("p", { class: "attn-hint" }, mine("note", { rest: ALL - SHOWN })),
    ),
    show(order, own, drawn, text) {
      const limit = axisLimit(own, drawn);
      ticks.forEach((tick) => tick(limit));
      order.forEach((i, place) => {
        for (const [rect, share] of [
          [fills[place], drawn[i]],
          [outlines[place], own[i]],
        ]) {
          rect.setAttribute("y", y(share / limit).toFixed(2));
          rect.setAttribute("height", (FLOOR - y(share / limit)).toFixed(2));
        }
        const letter = shown(DATA.letters[i]);
        names[place].textContent = drawn[i] > 0 ? letter : `(${letter})`;
        names[place].setAttribute("class", drawn[i] > 0 ? "attn-name" : "attn-note");
      });
      const best = order
        .slice(0, 3)
        .map((i) => `${spoken(DATA.letters[i])} ${number(drawn[i], 2)}`)
        .join(", ");
      picture.setAttribute("aria-label", mine("chart_alt", { text, best }));
    },
  };
}

export default {
  accepts,
  render: view({ title: say("widget.sampling.title"), build }),
};
