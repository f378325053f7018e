// Depth: what a stack of layers does to the size of the signal and of its gradient.

export const LAYERS = 128;
export const TOKENS = 4;
export const D = 32; // numbers in a token
export const F = 128; // numbers in the middle of a layer
const EPS = 1e-5;
const ROOT = Math.sqrt(2 / Math.PI);
const NORMS = ["none", "pre", "post"];
const KINDS = ["layer", "rms"];
const GAINS = [0.5, 1, 2];
const DECADES = [1, 3, 12, 48, 96]; // the axis holds still until a curve leaves it

/** `count` uniform numbers of mean 0 and variance 1 / fan of a stream, from `first` on. */
export function uniforms(seed, first, count, fan) {
  const reach = Math.sqrt(3 / fan);
  const out = new Float64Array(count);
  for (let i = 0; i < count; i++) out[i] = (2 * uniform(seed, first + i) - 1) * reach;
  return out;
}

/** The input of a seed, the gradient at the output, and its layers, drawn when needed. */
export class Network {
  constructor(seed) {
    this.seed = seed;
    this.input = uniforms(seed, 0, TOKENS * D, 1);
    this.grad = uniforms(seed, TOKENS * D, TOKENS * D, 1);
    this.layers = [];
  }

  layer(l) {
    while (this.layers.length <= l) {
      const first = 2 * TOKENS * D + this.layers.length * 2 * D * F;
      this.layers.push([
        uniforms(this.seed, first, D * F, D), // into the middle, (D, F)
        uniforms(this.seed, first + D * F, F * D, F), // and back, (F, D)
      ]);
    }
    return this.layers[l];
  }
}

/** Rows of x times w, (TOKENS, n) times (n, m). */
function times(x, w, n, m) {
  const out = new Float64Array(TOKENS * m);
  for (let t = 0; t < TOKENS; t++) {
    for (let i = 0; i < n; i++) {
      const number = x[t * n + i];
      for (let j = 0; j < m; j++) out[t * m + j] += number * w[i * m + j];
    }
  }
  return out;
}

/** Rows of x times w turned over its diagonal, (TOKENS, m) times (n, m) transposed. */
function timesTurned(x, w, n, m) {
  const out = new Float64Array(TOKENS * n);
  for (let t = 0; t < TOKENS; t++) {
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let j = 0; j < m; j++) sum += x[t * m + j] * w[i * m + j];
      out[t * n + i] = sum;
    }
  }
  return out;
}

/** Each token normalised, and what each was divided by. */
export function normalise(x, kind) {
  const unit = Float64Array.from(x);
  const sizes = new Float64Array(TOKENS);
  for (let t = 0; t < TOKENS; t++) {
    const row = unit.subarray(t * D, (t + 1) * D);
    if (kind === "layer") centre(row);
    let sum = 0;
    for (let i = 0; i < D; i++) sum += row[i] * row[i];
    sizes[t] = Math.sqrt(sum / D + EPS);
    for (let i = 0; i < D; i++) row[i] /= sizes[t];
  }
  return { unit, sizes };
}

function centre(row) {
  let mean = 0;
  for (let i = 0; i < D; i++) mean += row[i];
  mean /= D;
  for (let i = 0; i < D; i++) row[i] -= mean;
}

/** The gradient before a norm, from that behind it and what the norm gave. */
function normaliseBackward({ unit, sizes }, grad, kind) {
  const out = new Float64Array(grad.length);
  for (let t = 0; t < TOKENS; t++) {
    let along = 0;
    for (let i = t * D; i < (t + 1) * D; i++) along += unit[i] * grad[i];
    along /= D;
    for (let i = t * D; i < (t + 1) * D; i++) {
      out[i] = (grad[i] - unit[i] * along) / sizes[t];
    }
    if (kind === "layer") centre(out.subarray(t * D, (t + 1) * D));
  }
  return out;
}

/** Root mean square of all numbers. */
function rootMeanSquare(x) {
  let sum = 0;
  for (const number of x) sum += number * number;
  return Math.sqrt(sum / x.length);
}

/** Mean cosine between two different tokens. */
function likeness(x) {
  const rows = Array.from({ length: TOKENS }, (_, t) => x.subarray(t * D, (t + 1) * D));
  let sum = 0;
  for (let s = 0; s < TOKENS; s++) {
    for (let t = 0; t < s; t++) {
      const lengths = Math.sqrt(dot(rows[s], rows[s])) * Math.sqrt(dot(rows[t], rows[t]));
      sum += dot(rows[s], rows[t]) / lengths;
    }
  }
  return sum / ((TOKENS * (TOKENS - 1)) / 2);
}

/** One network in one arrangement: forward is kept, so more layers cost only the new ones. */
export class Stack {
  constructor(network, { residual, norm, kind, gain }) {
    Object.assign(this, { network, residual, norm, kind, gain });
    this.tape = [];
    this.signals = [network.input];
    this.signal = [rootMeanSquare(network.input)];
  }

  forward(layers) {
    while (this.tape.length < layers) {
      const x = this.signals.at(-1);
      const [wIn, wOut] = this.network.layer(this.tape.length);
      const before = this.norm === "pre" ? normalise(x, this.kind) : null;
      const middle = times(before ? before.unit : x, wIn, D, F);
      const slopes = new Float64Array(middle.length);
      for (let i = 0; i < middle.length; i++) {
        const z = middle[i];
        const t = Math.tanh(ROOT * z * (1 + 0.044715 * z * z));
        const inner = ROOT * (1 + 3 * 0.044715 * z * z);
        slopes[i] = 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * inner;
        middle[i] = 0.5 * z * (1 + t);
      }
      const total = times(middle, wOut, F, D);
      for (let i = 0; i < total.length; i++) {
        total[i] = (this.residual ? x[i] : 0) + this.gain * total[i];
      }
      const after = this.norm === "post" ? normalise(total, this.kind) : null;
      this.tape.push({ before, slopes, after });
      this.signals.push(after ? after.unit : total);
      this.signal.push(rootMeanSquare(this.signals.at(-1)));
    }
  }

  /** Sizes of the gradient at the input and after each layer, as multiples of the last. */
  backward(layers) {
    let grad = this.network.grad;
    const sizes = [rootMeanSquare(grad)];
    for (let l = layers - 1; l >= 0; l--) {
      const { before, slopes, after } = this.tape[l];
      const [wIn, wOut] = this.network.layer(l);
      if (after) grad = normaliseBackward(after, grad, this.kind);
      const middle = timesTurned(grad, wOut, F, D);
      for (let i = 0; i < middle.length; i++) middle[i] *= this.gain * slopes[i];
      let through = timesTurned(middle, wIn, D, F);
      if (before) through = normaliseBackward(before, through, this.kind);
      if (this.residual) for (let i = 0; i < grad.length; i++) through[i] += grad[i];
      grad = through;
      sizes.push(rootMeanSquare(grad));
    }
    return sizes.map((size) => size / sizes[0]).reverse();
  }

  /** What is shown: sizes of signal and gradient, and how alike the tokens have become. */
  sizes(layers) {
    this.forward(layers);
    return {
      signal: this.signal.slice(0, layers + 1),
      gradient: this.backward(layers),
      likeness: [likeness(this.signals[0]), likeness(this.signals[layers])],
    };
  }
}

/** The same in one call, for whoever compares. */
export function stackSizes(seed, layers, arrangement) {
  return new Stack(new Network(seed), arrangement).sizes(layers);
}

/** How many decades the axis reaches to either side of 1. */
export function axisDecades(sizes) {
  const reach = Math.max(...sizes.map((size) => Math.abs(Math.log10(size))));
  return DECADES.find((decades) => reach <= decades) ?? DECADES.at(-1);
}

/** What became of a size: "vanished", "exploded" or "kept" within a factor of a hundred. */
export function fate(size) {
  return size < 1e-2 ? "vanished" : size > 1e2 ? "exploded" : "kept";
}

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A whole power of ten in superscript digits: "10⁻¹²". */
export function powerOfTen(exponent) {
  const digits = String(Math.abs(exponent)).replace(/\d/g, (digit) => RAISED[digit]);
  return `10${exponent < 0 ? "⁻" : ""}${digits}`;
}

/** A size in a few characters: "0.52", "23.4", "1.6 · 10¹¹". */
export function sizeText(size) {
  let exponent = Math.floor(Math.log10(size));
  if (exponent >= -2 && exponent < 4) return number(size, exponent < 1 ? 2 : 1);
  let leading = (size / 10 ** exponent).toFixed(1);
  if (leading === "10.0") [leading, exponent] = ["1.0", exponent + 1];
  return `${leading}\u00a0·\u00a0${powerOfTen(exponent)}`;
}

function accepts(name, value) {
  if (name === "residual") return typeof value === "boolean";
  if (name === "norm") return NORMS.includes(value);
  if (name === "kind") return KINDS.includes(value);
  if (name === "gain") return GAINS.includes(value);
  const [low, high] = name === "layers" ? [1, LAYERS] : [0, 2 ** 32 - 1];
  return Number.isInteger(value) && value >= low && value <= high;
}

const mine = (thing, values) => say(`widget.depth.${thing}`, values);

function build({ model, root, signal }) {
  const layers = slider({
    label: mine("layers"),
    min: 1,
    max: LAYERS,
    step: 1,
    onInput: (value) => change(model, { layers: value }),
    signal,
  });
  const residual = toggle({
    label: mine("residual"),
    onChange: (on) => change(model, { residual: on }),
    signal,
  });
  const norm = choice({
    legend: mine("norm"),
    options: NORMS.map((value) => ({ value, content: [mine(`norm.${value}`)] })),
    onChoose: (value) => change(model, { norm: value }),
    signal,
  });
  const kind = choice({
    legend: mine("kind"),
    options: KINDS.map((value) => ({ value, content: [mine(`kind.${value}`)] })),
    onChoose: (value) => change(model, { kind: value }),
    signal,
  });
  const gain = choice({
    legend: mine("gain"),
    options: GAINS.map((value) => ({ value, content: [mine(`gain.${10 * value}`)] })),
    onChoose: (value) => change(model, { gain: Number(value) }),
    signal,
  });
  const again = button(
    mine("new_weights"),
    () => change(model, { seed: (model.get("seed") + 1) % 2 ** 32 }),
    signal,
  );
  const chart = drawChart();
  const facts = drawFacts(mine, ["signal", "gradient", "likeness"]);
  root.append(
    html(
      "div",
      { class: "attn-columns" },
      html(
        "div",
        { class: "attn-controls" },
        layers.node,
        residual.node,
        norm.node,
        kind.node,
        gain.node,
        html("div", { class: "attn-row" }, again),
      ),
      chart.node,
    ),
    facts.node,
  );

  let network = null;
  let stack = null;
  let built = "";
  return {
    draw() {
      const seed = model.get("seed");
      const arrangement = Object.fromEntries(
        ["residual", "norm", "kind", "gain"].map((name) => [name, model.get(name)]),
      );
      if (network?.seed !== seed) {
        network = new Network(seed);
        built = "";
      }
      if (built !== JSON.stringify(arrangement)) {
        stack = new Stack(network, arrangement);
        built = JSON.stringify(arrangement);
      }
      const N = model.get("layers");
      const sizes = stack.sizes(N);
      layers.show(N);
      residual.show(arrangement.residual);
      norm.show(arrangement.norm);
      kind.show(arrangement.kind);
      for (const input of kind.node.querySelectorAll("input")) {
        input.disabled = arrangement.norm === "none"; // there is no norm to be of a kind
      }
      gain.show(arrangement.gain);
      const [last, first] = [sizes.signal.at(-1), sizes.gradient[0]];
      chart.show(sizes, N);
      facts.show({
        signal: sizeText(last),
        gradient: sizeText(first),
        likeness: number(sizes.likeness[1], 2),
      });
      const fates = [fate(last / sizes.signal[0]), fate(first)];
      const both = fates[0] === fates[1] ? fates[0] : "mixed";
      return mine(both, { layers: N, signal: sizeText(last), gradient: sizeText(first) });
    },
  };
}

function drawChart() {
  const [W, H, LEFT, RIGHT, TOP, FLOOR] = [360, 270, 46, 354, 10, 226];
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
  const lines = [-1, -0.5, 0, 0.5, 1];
  const grid = lines.map(() => svg("line", { x1: LEFT, x2: RIGHT, class: "attn-grid" }));
  const powers = lines.map(() =>
    svg("text", { x: LEFT - 8, "text-anchor": "end", class: "attn-note" }),
  );
  const ticks = ["start", "middle", "end"].map((anchor) =>
    svg("text", { y: FLOOR + 17, "text-anchor": anchor, class: "attn-note" }),
  );
  const signal = svg("path", { class: "attn-stroke-output attn-thick" });
  const gradient = svg("path", { class: "attn-stroke-query attn-thick attn-dashed" });
  const names = {
    signal: svg("text", { class: "attn-name attn-fill-output" }, mine("curve.signal")),
    gradient: svg("text", { class: "attn-name attn-fill-query" }, mine("curve.gradient")),
  };
  picture.append(
    ...grid,
    ...powers,
    ...ticks,
    svg(
      "text",
      { x: (LEFT + RIGHT) / 2, y: FLOOR + 34, "text-anchor": "middle", class: "attn-note" },
      mine("axis"),
    ),
    signal,
    gradient,
    names.signal,
    names.gradient,
  );
  return {
    node: html(
      "figure",
      { class: "attn-panel" },
      html("figcaption", {}, mine("chart")),
      picture,
      html("p", { class: "attn-hint" }, mine("note")),
    ),
    show(sizes, N) {
      const decades = axisDecades([...sizes.signal, ...sizes.gradient]);
      const x = (l) => LEFT + (l / N) * (RIGHT - LEFT);
      const y = (size) =>
        (TOP + FLOOR) / 2 - (Math.log10(size) / decades) * ((FLOOR - TOP) / 2);
      lines.forEach((part, i) => {
        const at = (TOP + FLOOR) / 2 - part * ((FLOOR - TOP) / 2);
        grid[i].setAttribute("y1", at);
        grid[i].setAttribute("y2", at);
        powers[i].setAttribute("y", at + 4);
        const exponent = part * decades;
        powers[i].textContent =
          exponent === 0 ? "1" : Number.isInteger(exponent) ? powerOfTen(exponent) : "";
      });
      [0, Math.round(N / 2), N].forEach((l, i) => {
        ticks[i].setAttribute("x", x(l).toFixed(1));
        ticks[i].textContent = i === 1 && (l === 0 || l === N) ? "" : l;
      });
      const path = (values) =>
        `M${values.map((size, l) => `${x(l).toFixed(1)} ${y(size).toFixed(1)}`).join("L")}`;
      signal.setAttribute("d", path(sizes.signal));
      gradient.setAttribute("d", path(sizes.gradient));
      // Each name at its curve's own far end; side by side they never meet.
      place(names.signal, RIGHT - 4, "end", y(sizes.signal.at(-1)));
      place(names.gradient, LEFT + 4, "start", y(sizes.gradient[0]));
      picture.setAttribute(
        "aria-label",
        mine("chart_alt", {
          layers: N,
          signal: sizeText(sizes.signal.at(-1)),
          gradient: sizeText(sizes.gradient[0]),
        }),
      );
    },
  };

  function place(node, x, anchor, y) {
    node.setAttribute("x", x);
    node.setAttribute("text-anchor", anchor);
    // Towards the middle of the picture, so that no curve's end hides it.
    node.setAttribute("y", y > (TOP + FLOOR) / 2 + 20 ? y - 12 : y < TOP + 30 ? y + 24 : y - 12);
  }
}

export default {
  accepts,
  render: view({ title: say("widget.depth.title"), build }),
};
