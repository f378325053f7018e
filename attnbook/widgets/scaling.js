// Scaling and saturation: what the width of the vectors does to dot products and weights.

export const LARGEST = 1024; // the slider's widest vectors
export const KEYS = 16; // keys behind the weight bars
export const PAIRS = 4096; // dot products in the histogram
const BINS = 64;
const EAGER = 4; // milliseconds of drawing samples between two frames
// The stream of a seed begins with the query and its keys, then come the pairs.
const FIRST_PAIR = LARGEST * (KEYS + 1);

/**
 * Dot products of one query with sixteen keys, for every width up to LARGEST:
 * row d (of KEYS numbers) uses the first d dimensions. Row 0 is zeros.
 */
export function keyProducts(seed) {
  const sums = new Float64Array((LARGEST + 1) * KEYS);
  for (let i = 0; i < LARGEST; i++) {
    const first = i * (KEYS + 1);
    const q = normal(seed, first);
    for (let j = 0; j < KEYS; j++) {
      sums[(i + 1) * KEYS + j] = sums[i * KEYS + j] + q * normal(seed, first + 1 + j);
    }
  }
  return sums;
}

/**
 * Dot products of PAIRS independent pairs, for every width: sums over dimensions
 * are kept, so that a step of the slider adds nothing up. They are drawn in pieces,
 * when needed or when there is time.
 */
export class PairProducts {
  constructor(seed) {
    this.seed = seed;
    this.width = 0; // how many dimensions have been drawn
    this.sums = new Float64Array(PAIRS);
    this.rows = new Float32Array(LARGEST * PAIRS);
  }

  /** Draw up to this width, but no longer than the time given; true if it is there. */
  extend(width, milliseconds = Infinity) {
    const end = performance.now() + milliseconds;
    while (this.width < width && performance.now() < end) {
      const first = FIRST_PAIR + this.width * PAIRS;
      for (let p = 0; p < PAIRS; p++) this.sums[p] += normalProduct(this.seed, first + p);
      this.rows.set(this.sums, this.width * PAIRS);
      this.width++;
    }
    return this.width >= width;
  }

  /** The dot products at a width that has been drawn. */
  at(width) {
    return this.rows.subarray((width - 1) * PAIRS, width * PAIRS);
  }
}

/** How many values (times scale) fall into each bin of [-limit, limit); others into none. */
export function histogram(values, scale, limit, bins) {
  const counts = new Uint32Array(bins);
  const factor = (scale * bins) / (2 * limit);
  for (const x of values) {
    const bin = Math.floor(x * factor + bins / 2);
    if (bin >= 0 && bin < bins) counts[bin]++;
  }
  return counts;
}

/** Half the width of the histogram's axis: it holds still while the spread grows fourfold. */
export function axisLimit(variance) {
  return variance <= 4 ? 8 : variance <= 64 ? 32 : 128;
}

function accepts(name, value) {
  if (name === "scaled") return typeof value === "boolean";
  const [low, high] = name === "d" ? [1, LARGEST] : [0, 2 ** 32 - 1];
  return Number.isInteger(value) && value >= low && value <= high;
}

const mine = (thing, values) => say(`widget.scaling.${thing}`, values);

function build({ model, root, signal }) {
  const width = slider({
    label: mine("width"),
    min: 1,
    max: LARGEST,
    step: 1,
    onInput: (d) => change(model, { d }),
    signal,
  });
  const powers = Array.from({ length: 11 }, (_, i) => 2 ** i).map((d) =>
    button(String(d), () => change(model, { d }), signal, {
      "aria-label": mine("set_width", { d }),
    }),
  );
  const scaled = toggle({
    label: mine("scaled"),
    onChange: (on) => change(model, { scaled: on }),
    signal,
  });
  const again = button(
    mine("new_sample"),
    () => change(model, { seed: (model.get("seed") + 1) % 2 ** 32 }),
    signal,
  );
  const bars = drawBars();
  const spread = drawSpread();
  const facts = drawFacts(mine, ["largest", "entropy", "measured", "theory"]);
  root.append(
    html(
      "div",
      { class: "attn-controls" },
      width.node,
      html(
        "div",
        { class: "attn-row", role: "group", "aria-label": mine("widths") },
        ...powers,
      ),
      html("div", { class: "attn-row" }, scaled.node, again),
    ),
    html("div", { class: "attn-columns attn-halves" }, bars.node, spread.node),
    facts.node,
  );

  let products = null;
  let pairs = null;
  let timer = 0;
  let frame = 0;
  function drawMore() {
    timer = pairs.extend(LARGEST, EAGER) ? 0 : setTimeout(drawMore, 30);
  }
  function showPairs() {
    frame = 0;
    const [d, isScaled] = [model.get("d"), model.get("scaled")];
    // A far jump before all is drawn: a frame's share now, the rest in the next frames.
    if (!pairs.extend(d, EAGER)) {
      facts.show({ measured: "…" });
      frame = requestAnimationFrame(showPairs);
      return;
    }
    const scale = isScaled ? 1 / Math.sqrt(d) : 1;
    const measured = variance(pairs.at(d)) * scale * scale;
    spread.show(pairs.at(d), scale, isScaled ? 1 : d);
    facts.show({ measured: number(measured, measured < 10 ? 3 : 1) });
  }

  return {
    draw() {
      const [d, isScaled, seed] = [model.get("d"), model.get("scaled"), model.get("seed")];
      if (pairs?.seed !== seed) {
        clearTimeout(timer);
        products = keyProducts(seed);
        pairs = new PairProducts(seed);
        timer = setTimeout(drawMore, 100);
      }
      width.show(d);
      scaled.show(isScaled);
      powers.forEach((power) =>
        power.setAttribute("aria-pressed", String(Number(power.textContent) === d)),
      );
      const scale = isScaled ? 1 / Math.sqrt(d) : 1;
      const scores = Array.from(
        products.subarray(d * KEYS, (d + 1) * KEYS),
        (x) => x * scale,
      );
      const weights = softmax(scores);
      const largest = Math.max(...weights);
      const bits = entropyBits(weights);
      bars.show(weights);
      facts.show({
        largest: number(largest, 3),
        entropy: mine("bits", { bits: number(bits, 2), all: number(Math.log2(KEYS), 0) }),
        theory: isScaled ? mine("theory_scaled") : mine("theory_plain", { d }),
      });
      cancelAnimationFrame(frame);
      showPairs();
      const state = largest > 0.8 ? "saturated" : largest > 0.5 ? "sharp" : "mixed";
      return mine(state, { largest: number(largest, 2), d });
    },
    clear() {
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    },
  };
}

function panel(title, picture, ...notes) {
  return html(
    "figure",
    { class: "attn-panel" },
    html("figcaption", {}, title),
    picture,
    ...notes,
  );
}

function drawBars() {
  const [W, H, FLOOR, TOP] = [340, 220, 196, 12];
  const step = (W - 34) / KEYS;
  const y = (w) => FLOOR - w * (FLOOR - TOP);
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
  for (const w of [0, 0.5, 1]) {
    picture.append(
      svg("line", {
        x1: 30,
        x2: W,
        y1: y(w),
        y2: y(w),
        class: w ? "attn-grid" : "attn-axis",
      }),
      svg(
        "text",
        { x: 25, y: y(w) + 4, "text-anchor": "end", class: "attn-note" },
        String(w),
      ),
    );
  }
  const rects = Array.from({ length: KEYS }, (_, j) =>
    svg("rect", { x: 32 + j * step, width: step - 3, rx: 2, class: "attn-fill-weight" }),
  );
  const even = svg("line", {
    x1: 30,
    x2: W,
    y1: y(1 / KEYS),
    y2: y(1 / KEYS),
    class: "attn-even",
  });
  const top = svg("text", { "text-anchor": "middle", class: "attn-name attn-fill-weight" });
  picture.append(
    ...rects,
    even,
    top,
    ...rects.map((_, j) =>
      svg(
        "text",
        {
          x: 32 + j * step + (step - 3) / 2,
          y: FLOOR + 15,
          "text-anchor": "middle",
          class: "attn-note",
        },
        String(j + 1),
      ),
    ),
  );
  return {
    node: panel(
      mine("bars"),
      picture,
      html("p", { class: "attn-hint" }, mine("bars_note", { even: number(1 / KEYS, 4) })),
    ),
    show(weights) {
      const best = weights.indexOf(Math.max(...weights));
      weights.forEach((w, j) => {
        rects[j].setAttribute("y", y(w));
        rects[j].setAttribute("height", FLOOR - y(w));
        rects[j].setAttribute(
          "class",
          j === best ? "attn-fill-weight" : "attn-fill-weight attn-lesser",
        );
      });
      top.setAttribute(
        "x",
        Math.min(W - 16, Math.max(46, 32 + best * step + (step - 3) / 2)),
      );
      top.setAttribute("y", Math.max(TOP + 12, y(weights[best]) - 5));
      top.textContent = number(weights[best], 2);
      // A bar as high as the panel leaves no room above: write beside it.
      if (y(weights[best]) < TOP + 14) {
        const right = best < KEYS / 2;
        top.setAttribute("x", 32 + best * step + (right ? step + 16 : -20));
      }
      picture.setAttribute(
        "aria-label",
        mine("bars_alt", { best: best + 1, largest: number(weights[best], 2) }),
      );
    },
  };
}

function drawSpread() {
  const [W, H, FLOOR, TOP] = [340, 248, 196, 8];
  const FIXED = 80; // the lower axis never changes: at 1024, 2 · √1024 = 64 fits
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
  const bars = svg("path", { class: "attn-bins" });
  const curve = svg("path", { class: "attn-curve" });
  const ticks = svg("g");
  // The upper axis changes with the spread; this band shows how the spread itself grows.
  const band = svg("line", { y1: 238, y2: 238, class: "attn-band" });
  picture.append(
    svg("line", { x1: 8, x2: W - 8, y1: 238, y2: 238, class: "attn-axis" }),
    band,
  );
  picture.append(
    bars,
    curve,
    svg("line", { x1: 0, x2: W, y1: FLOOR, y2: FLOOR, class: "attn-axis" }),
    ticks,
  );
  const note = html("p", { class: "attn-hint" });
  let shownLimit = 0;
  const heading = html("span");
  return {
    node: panel(heading, picture, note),
    show(values, scale, theory) {
      heading.textContent = mine(scale === 1 ? "histogram" : "histogram_scaled", {
        pairs: PAIRS,
      });
      const limit = axisLimit(theory);
      const x = (value) => W / 2 + (value * (W / 2 - 8)) / limit;
      if (limit !== shownLimit) {
        shownLimit = limit;
        ticks.replaceChildren(
          ...[-1, -0.5, 0, 0.5, 1].flatMap((part) => [
            svg("line", {
              x1: x(part * limit),
              x2: x(part * limit),
              y1: FLOOR,
              y2: FLOOR + 4,
              class: "attn-axis",
            }),
            svg(
              "text",
              {
                x: x(part * limit),
                y: FLOOR + 17,
                "text-anchor": Math.abs(part) < 1 ? "middle" : part < 0 ? "start" : "end",
                class: "attn-note",
              },
              number(part * limit, 0),
            ),
          ]),
        );
      }
      const reach = ((2 * Math.sqrt(variance(values)) * scale) / FIXED) * (W / 2 - 8);
      band.setAttribute("x1", (W / 2 - reach).toFixed(2));
      band.setAttribute("x2", (W / 2 + reach).toFixed(2));
      const counts = histogram(values, scale, limit, BINS);
      const binWidth = (2 * limit) / BINS;
      const peak = normalDensity(0, theory);
      const highest = Math.max(
        1.15 * peak,
        (1.05 * Math.max(...counts)) / (PAIRS * binWidth),
      );
      const y = (density) => FLOOR - (density / highest) * (FLOOR - TOP);
      let outline = `M${x(-limit).toFixed(1)} ${FLOOR}`;
      counts.forEach((count, b) => {
        const right = x(-limit + (b + 1) * binWidth);
        outline += `V${y(count / (PAIRS * binWidth)).toFixed(1)}H${right.toFixed(1)}`;
      });
      bars.setAttribute("d", `${outline}V${FLOOR}Z`);
      const points = [];
      for (let i = 0; i <= 120; i++) {
        const value = limit * (i / 60 - 1);
        points.push(`${x(value).toFixed(1)} ${y(normalDensity(value, theory)).toFixed(1)}`);
      }
      curve.setAttribute("d", `M${points.join("L")}`);
      note.textContent = mine("curve", { variance: theory, fixed: FIXED });
      picture.setAttribute(
        "aria-label",
        mine("histogram_alt", { variance: theory, limit }),
      );
    },
  };
}

export default {
  accepts,
  render: view({ title: say("widget.scaling.title"), build }),
};
