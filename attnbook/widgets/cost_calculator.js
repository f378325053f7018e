// The cost calculator: what attention costs in a model of given sizes, and where
// it overtakes the rest. Counts are BigInt, since many are beyond 2⁵³.

export const MOST_PLACES = 20; // the slider of tokens goes to 2²⁰
const MOST_TOKENS = 2 ** MOST_PLACES;
const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Lowest value, highest value and step of each size. */
export const LIMITS = {
  layers: [1, 128, 1],
  width: [64, 16384, 64],
  heads: [1, 128, 1],
  kv_heads: [1, 128, 1],
  head_width: [8, 512, 8],
  ffn_width: [128, 65536, 128],
};
const SIZES = [...Object.keys(LIMITS), "gated"];
const BYTES = [1, 2, 4];

/** Published configurations, as attnbook.cost has them. */
export const PRESETS = DATA;

/** The numbers of key/value heads that some query heads can share evenly. */
export function divisors(heads) {
  return Array.from({ length: heads }, (_, i) => i + 1).filter((n) => heads % n === 0);
}

/** The largest of these that is not above what is wanted. */
export function fit(heads, wanted) {
  return divisors(heads).filter((n) => n <= wanted).at(-1);
}

const product = (...factors) => factors.reduce((all, one) => all * BigInt(one), 1n);

/** The arithmetic of all layers when some queries look at some keys, in operations. */
export function arithmetic(sizes, queries, keys) {
  const { layers, width, heads, kv_heads, head_width, ffn_width, gated } = sizes;
  return {
    projections: product(2, queries, width, 2, heads + kv_heads, head_width, layers),
    scores: product(2, 2, queries, keys, heads, head_width, layers),
    feed_forward: product(2, queries, width, ffn_width, gated ? 3 : 2, layers),
  };
}

/** The bytes of written-out weights, of one layer and all, and of the cache. */
export function memory(sizes, tokens, bytes) {
  const { layers, heads, kv_heads, head_width } = sizes;
  return {
    weights_layer: product(heads, tokens, tokens, bytes),
    weights: product(heads, tokens, tokens, bytes, layers),
    cache_token: product(2, layers, kv_heads, head_width, bytes),
    cache: product(2, layers, kv_heads, tokens, head_width, bytes),
  };
}

/** From how many keys on scores and mixture cost more than the rest. */
export function levelKeys(sizes) {
  const { projections, scores, feed_forward } = arithmetic(sizes, 1, 1);
  return (projections + feed_forward) / scores + 1n;
}

/** A whole number with commas: "131,072". */
export function grouped(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A count in a few characters: "4,096", "6.9 · 10¹⁵". */
export function countText(count) {
  let exponent = String(count).length - 1;
  if (exponent < 6) return grouped(count);
  const unit = 10n ** BigInt(exponent - 1);
  let leading = (count + unit / 2n) / unit;
  if (leading === 100n) [leading, exponent] = [10n, exponent + 1];
  const raised = String(exponent).replace(/\d/g, (digit) => RAISED[digit]);
  const [one, two] = String(leading);
  return `${one}.${two}\u00a0·\u00a010${raised}`;
}

/** Bytes in the largest unit that leaves at least one of it: "56 KiB", "1.5 GiB". */
export function bytesText(count) {
  let place = 0;
  while (place < UNITS.length - 1 && count >= 1024n ** BigInt(place + 1)) place++;
  const unit = 1024n ** BigInt(place);
  const tenths = (20n * count + unit) / (2n * unit);
  const whole = count % unit === 0n;
  const text = whole ? grouped(count / unit) : `${grouped(tenths / 10n)}.${tenths % 10n}`;
  return `${text}\u00a0${UNITS[place]}`;
}

/** A part of a whole in percent: "81.3%". */
export function shareText(part, whole) {
  const tenths = (2000n * part + whole) / (2n * whole);
  if (tenths === 0n && part > 0n) return "<\u00a00.1%";
  return `${tenths / 10n}.${tenths % 10n}%`;
}

function accepts(name, value) {
  if (name === "gated") return typeof value === "boolean";
  if (name === "bytes_per_number") return BYTES.includes(value);
  const [low, high, step] = LIMITS[name] ?? [1, MOST_TOKENS, 1];
  return Number.isInteger(value) && value >= low && value <= high && value % step === 0;
}

const mine = (thing, values) => say(`widget.cost_calculator.${thing}`, values);

/** The model's state, whatever an address may have asked for. */
function stateOf(model) {
  const sizes = Object.fromEntries(SIZES.map((name) => [name, model.get(name)]));
  sizes.kv_heads = fit(sizes.heads, sizes.kv_heads);
  const preset = PRESETS.find((p) => SIZES.every((name) => p[name] === sizes[name]));
  return { sizes, preset, n: model.get("tokens"), bytes: model.get("bytes_per_number") };
}

function build({ model, root, signal }) {
  const set = (values) => {
    const heads = values.heads ?? model.get("heads");
    const kv_heads = fit(heads, values.kv_heads ?? model.get("kv_heads"));
    change(model, { ...values, heads, kv_heads });
  };
  const preset = choice({
    legend: mine("presets"),
    options: PRESETS.map(({ name }) => ({ value: name, content: [name] })),
    onChoose(chosen) {
      const found = PRESETS.find((p) => p.name === chosen);
      set(Object.fromEntries(SIZES.map((name) => [name, found[name]])));
    },
    signal,
    look: "attn-thirds",
  });
  const tokens = slider({
    label: mine("tokens"),
    min: 0,
    max: MOST_PLACES,
    step: 1,
    onInput: (place) => change(model, { tokens: 2 ** place }),
    signal,
  });
  const bytes = choice({
    legend: mine("bytes_per_number"),
    options: BYTES.map((value) => ({ value, content: [String(value)] })),
    onChoose: (value) => change(model, { bytes_per_number: Number(value) }),
    signal,
  });
  const sliders = Object.fromEntries(
    Object.entries(LIMITS).map(([name, [min, max, step]]) => {
      const places = name === "kv_heads";
      const onInput = (value) =>
        set({ [name]: places ? divisors(model.get("heads"))[value] : value });
      const range = places ? { min: 0, max: 0, step: 1 } : { min, max, step };
      return [name, slider({ label: mine(name), ...range, onInput, signal })];
    }),
  );
  const gated = toggle({
    label: mine("gated"),
    onChange: (on) => change(model, { gated: on }),
    signal,
  });
  const half = (...names) => html("div", {}, ...names.map((name) => sliders[name].node));
  const bills = drawBills();
  const facts = drawFacts(mine, ["crossing", "context"]);
  root.append(
    preset.node,
    html(
      "details",
      { class: "attn-own" },
      html("summary", {}, mine("own")),
      html(
        "div",
        { class: "attn-pair" },
        half("layers", "width", "ffn_width"),
        half("heads", "kv_heads", "head_width"),
      ),
      gated.node,
    ),
    html("div", { class: "attn-pair attn-controls" }, tokens.node, bytes.node),
    bills.node,
    html("p", { class: "attn-hint" }, mine("letters")),
    facts.node,
  );
  return {
    draw() {
      const now = stateOf(model);
      const { sizes, n } = now;
      preset.show(now.preset?.name);
      tokens.show(Math.round(Math.log2(n)), grouped(n));
      tokens.input.setAttribute("aria-valuetext", grouped(n));
      bytes.show(now.bytes);
      const choices = divisors(sizes.heads);
      sliders.kv_heads.input.max = choices.length - 1;
      for (const [name, one] of Object.entries(sliders)) {
        const value = sizes[name];
        one.show(name === "kv_heads" ? choices.indexOf(value) : value, grouped(value));
        one.input.setAttribute("aria-valuetext", grouped(value));
      }
      gated.show(sizes.gated);

      const whole = arithmetic(sizes, n, n);
      const one = arithmetic(sizes, 1, n);
      const held = memory(sizes, n, now.bytes);
      const level = levelKeys(sizes);
      bills.show(now, whole, one, held);
      facts.show({
        crossing: mine("keys", { count: grouped(level) }),
        context: now.preset ? mine("up_to", { count: grouped(now.preset.context) }) : "–",
      });
      const total = one.projections + one.scores + one.feed_forward;
      return mine(BigInt(n) < level ? "before" : "past", {
        name: now.preset?.name ?? mine("these"),
        tokens: grouped(n),
        level: grouped(level),
        share: shareText(one.scores, total),
        cache: bytesText(held.cache),
      });
    },
  };
}

/** A part of the bill: its name and share, a bar, its formula and two lines of numbers. */
function drawPart(name, hue, formula, lines) {
  const share = html("span", { class: "attn-part-share" });
  const bar = html("span", { class: `attn-meter ${hue}`, "aria-hidden": "true" });
  const sums = lines.map(() => html("span"));
  const values = lines.map((line) => html("b", { "data-value": line }));
  return {
    node: html(
      "div",
      { class: "attn-part" },
      html("p", { class: "attn-part-name" }, html("span", {}, mine(name)), share),
      bar,
      html("p", { class: "attn-hint" }, formula),
      ...lines.map((line, i) =>
        html("p", { class: "attn-hint" }, `${mine(line)}: `, sums[i], " = ", values[i]),
      ),
    ),
    show(text, portion, filled) {
      share.textContent = text;
      bar.style.setProperty("--share", portion);
      filled.forEach(([sum, value], i) => {
        sums[i].textContent = sum;
        values[i].textContent = value;
      });
    },
  };
}

/** Numbers and sums as a product in words: [2, "T"] gives "2 · T". */
const times = (...factors) =>
  factors.map((f) => (typeof f === "number" ? grouped(f) : f)).join(" · ");

/** All parts of the bill, arithmetic on one side and memory on the other. */
function drawBills() {
  const arithmeticOf = ["whole_text", "one_token"];
  const parts = {
    projections: drawPart(
      "projections",
      "attn-meter-query",
      "2 · T · D · 2 · (H\u00a0+\u00a0G) · d · N",
      arithmeticOf,
    ),
    scores: drawPart("scores", "", "2 · 2 · T · S · H · d · N", arithmeticOf),
    feed_forward: drawPart(
      "feed_forward",
      "attn-meter-output",
      "2 · T · D · F · M · N",
      arithmeticOf,
    ),
    weights: drawPart("weights", "", "H · S · S · b · N", ["one_layer", "all_layers"]),
    cache: drawPart("cache", "attn-meter-key", "2 · N · G · S · d · b", [
      "each_token",
      "all_tokens",
    ]),
  };
  const panel = (title, ...names) =>
    html(
      "div",
      { class: "attn-panel" },
      html("p", { class: "attn-panel-title" }, mine(title)),
      ...names.map((name) => parts[name].node),
    );
  const ratio = (part, whole) => Number((part * 1000000n) / whole) / 1000000;
  return {
    node: html(
      "div",
      { class: "attn-pair" },
      panel("arithmetic", "projections", "scores", "feed_forward"),
      panel("memory", "weights", "cache"),
    ),
    show({ sizes, n, bytes }, whole, one, held) {
      const { layers: N, width: D, heads: H, kv_heads: G, head_width: d } = sizes;
      const [F, M] = [sizes.ffn_width, sizes.gated ? 3 : 2];
      const sums = {
        projections: (T) => times(2, T, D, 2, `(${H}\u00a0+\u00a0${G})`, d, N),
        scores: (T) => times(2, 2, T, n, H, d, N),
        feed_forward: (T) => times(2, T, D, F, M, N),
      };
      const total = one.projections + one.scores + one.feed_forward;
      for (const [name, sum] of Object.entries(sums)) {
        parts[name].show(shareText(one[name], total), ratio(one[name], total), [
          [sum(n), countText(whole[name])],
          [sum(1), countText(one[name])],
        ]);
      }
      const most = held.weights > held.cache ? held.weights : held.cache;
      parts.weights.show(bytesText(held.weights), ratio(held.weights, most), [
        [times(H, n, n, bytes), bytesText(held.weights_layer)],
        [times(H, n, n, bytes, N), bytesText(held.weights)],
      ]);
      parts.cache.show(bytesText(held.cache), ratio(held.cache, most), [
        [times(2, N, G, d, bytes), bytesText(held.cache_token)],
        [times(2, N, G, n, d, bytes), bytesText(held.cache)],
      ]);
    },
  };
}

export default {
  accepts,
  render: view({ title: say("widget.cost_calculator.title"), build }),
};
