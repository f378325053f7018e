// Heads and groups: which query head reads which keys and values, and what that costs.

export const MOST_HEADS = 64;
export const WIDEST = 256;
const WIDTH_STEP = 8;

/** Published configurations; a test holds them to attnbook.cost.CONFIGS. */
export const PRESETS = [
  { name: "Qwen2-7B", heads: 28, kv_heads: 4, head_width: 128, layers: 28 },
  { name: "SmolLM2-135M", heads: 9, kv_heads: 3, head_width: 64, layers: 30 },
  { name: "Llama 2 7B", heads: 32, kv_heads: 32, head_width: 128, layers: 32 },
  { name: "Llama 2 70B", heads: 64, kv_heads: 8, head_width: 128, layers: 80 },
  { name: "Gemma 2B", heads: 8, kv_heads: 1, head_width: 256, layers: 18 },
  { name: "Gemma 7B", heads: 16, kv_heads: 16, head_width: 256, layers: 28 },
];

/** The numbers of key/value heads that some query heads can share evenly. */
export function divisors(heads) {
  return Array.from({ length: heads }, (_, i) => i + 1).filter((n) => heads % n === 0);
}

/** The largest of these that is not above what is wanted. */
export function fit(heads, wanted) {
  return divisors(heads).filter((n) => n <= wanted).at(-1);
}

/** Which key/value head each query head reads: 0, 0, 0, 1, 1, 1. */
export function readers(heads, kvHeads) {
  const group = heads / kvHeads;
  return Array.from({ length: heads }, (_, h) => Math.floor(h / group));
}

/**
 * What one layer does and keeps: multiply–adds (scores and mixing) and exponentials
 * for a pair of tokens, numbers and bytes (2 for each) that are kept for a token.
 */
export function costs(heads, kvHeads, width) {
  const kept = 2 * kvHeads * width;
  return { products: 2 * heads * width, exponentials: heads, kept, bytes: 2 * kept };
}

function accepts(name, value) {
  if (!Number.isInteger(value)) return false;
  if (name === "asker") return value >= 0 && value < MOST_HEADS;
  if (name === "head_width")
    return value >= WIDTH_STEP && value <= WIDEST && value % WIDTH_STEP === 0;
  return value >= 1 && value <= MOST_HEADS;
}

const mine = (thing, values) => say(`widget.heads.${thing}`, values);
const kibibytes = (bytes) => {
  const kib = bytes / 1024;
  return `${number(kib, Number.isInteger(kib) ? 0 : 1)} KiB`;
};

/** The model's state, whatever an address may have asked for. */
function stateOf(model) {
  const heads = model.get("heads");
  const kvHeads = fit(heads, model.get("kv_heads"));
  const asker = Math.min(model.get("asker"), heads - 1);
  return { heads, kvHeads, asker, width: model.get("head_width") };
}

function presetOf({ heads, kvHeads, width }) {
  return PRESETS.find(
    (p) => p.heads === heads && p.kv_heads === kvHeads && p.head_width === width,
  );
}

/** One sentence that says what is seen. */
function summary(state) {
  const { heads, kvHeads, asker } = state;
  const group = heads / kvHeads;
  const read = readers(heads, kvHeads)[asker];
  const kind =
    heads === 1 ? "single" : group === 1 ? "full" : kvHeads === 1 ? "multi" : "grouped";
  const values = { heads, asker, read, group };
  const said = mine(kind, { ...values, first: read * group, last: read * group + group - 1 });
  const preset = presetOf(state);
  if (!preset) return said;
  const cache = (count) =>
    kibibytes(preset.layers * costs(heads, count, state.width).bytes);
  return `${said} ${mine(group === 1 ? "layers_full" : "layers", {
    name: preset.name,
    layers: preset.layers,
    bytes: cache(kvHeads),
    full: cache(heads),
  })}`;
}

function build({ model, root, signal }) {
  const set = (values) => {
    const heads = values.heads ?? model.get("heads");
    const kv_heads = fit(heads, values.kv_heads ?? model.get("kv_heads"));
    const asker = Math.min(values.asker ?? model.get("asker"), heads - 1);
    change(model, { ...values, heads, kv_heads, asker });
  };
  const preset = choice({
    legend: mine("presets"),
    options: PRESETS.map(({ name }) => ({ value: name, content: [name] })),
    onChoose(chosen) {
      const { heads, kv_heads, head_width } = PRESETS.find((p) => p.name === chosen);
      set({ heads, kv_heads, head_width });
    },
    signal,
    look: "attn-thirds",
  });
  const heads = slider({
    label: mine("query_heads"),
    min: 1,
    max: MOST_HEADS,
    step: 1,
    onInput: (value) => set({ heads: value }),
    signal,
  });
  const kvHeads = slider({
    label: mine("kv_heads"),
    min: 0,
    max: 0,
    step: 1,
    onInput: (place) => set({ kv_heads: divisors(model.get("heads"))[place] }),
    signal,
  });
  const width = slider({
    label: mine("width"),
    min: WIDTH_STEP,
    max: WIDEST,
    step: WIDTH_STEP,
    onInput: (value) => set({ head_width: value }),
    signal,
  });
  const asker = slider({
    label: mine("asker"),
    min: 0,
    max: 0,
    step: 1,
    onInput: (value) => set({ asker: value }),
    signal,
  });
  const picture = drawHeads();
  const table = drawTable();
  root.append(
    preset.node,
    html(
      "div",
      { class: "attn-columns attn-halves attn-controls" },
      html("div", {}, heads.node, kvHeads.node),
      html("div", {}, width.node, asker.node),
    ),
    html("div", { class: "attn-columns attn-halves" }, picture.node, table.node),
  );
  return {
    draw() {
      const now = stateOf(model);
      const choices = divisors(now.heads);
      preset.show(presetOf(now)?.name);
      heads.show(now.heads);
      // The browser would hold a value back at the limit that was.
      kvHeads.input.max = choices.length - 1;
      kvHeads.show(choices.indexOf(now.kvHeads), String(now.kvHeads));
      kvHeads.input.setAttribute("aria-valuetext", now.kvHeads);
      width.show(now.width);
      asker.input.max = now.heads - 1;
      asker.show(now.asker);
      picture.show(now);
      table.show(now);
      return summary(now);
    },
  };
}

/** Query heads above, key/value heads of the same size below, and who reads whom. */
function drawHeads() {
  const [W, H] = [340, 178];
  const picture = svg("svg", {
    viewBox: `0 0 ${W} ${H}`,
    role: "img",
    class: "attn-small",
  });
  const caption = (words, y) => svg("text", { x: 0, y, class: "attn-note" }, words);
  return {
    node: html(
      "figure",
      { class: "attn-panel" },
      html("figcaption", {}, mine("picture")),
      picture,
    ),
    show({ heads, kvHeads, asker }) {
      const pitch = W / heads;
      const wide = Math.min(40, pitch - Math.min(4, pitch / 4));
      const group = heads / kvHeads;
      const owner = readers(heads, kvHeads);
      const read = owner[asker];
      const x = (place) => (place + 0.5) * pitch;
      const home = (g) => x(g * group + (group - 1) / 2);
      const box = (middle, y, height, hue, fully) =>
        svg("rect", {
          x: (middle - wide / 2).toFixed(2),
          y,
          width: wide.toFixed(2),
          height,
          rx: Math.min(3, wide / 4),
          class: fully ? hue : `${hue} attn-faint`,
        });
      const way = (h, attributes) =>
        svg("line", {
          x1: x(h).toFixed(2),
          y1: 57,
          x2: home(owner[h]).toFixed(2),
          y2: 105,
          ...attributes,
        });
      const tag = (words, middle, y, hue, half) =>
        svg(
          "text",
          {
            x: Math.min(W - half, Math.max(half, middle)).toFixed(2),
            y,
            "text-anchor": "middle",
            class: `attn-name ${hue}`,
          },
          words,
        );
      picture.replaceChildren(
        caption(mine("queries_above", { heads }), 12),
        ...owner.map((_, h) => way(h, { class: "attn-way" })),
        way(asker, { class: "attn-stroke-query", "stroke-width": 3 }),
        ...owner.map((g, h) => box(x(h), 36, 20, "attn-fill-query", g === read)),
        ...Array.from({ length: kvHeads }, (_, g) => [
          box(home(g), 106, 14, "attn-fill-key", g === read),
          box(home(g), 122, 14, "attn-fill-value", g === read),
        ]).flat(),
        tag(`Q${asker}`, x(asker), 31, "attn-fill-query", 16),
        tag(`K${read} V${read}`, home(read), 152, "", 32),
        caption(mine("keys_below", { kv_heads: kvHeads }), 172),
      );
      picture.setAttribute(
        "aria-label",
        mine("picture_alt", { heads, kv_heads: kvHeads, asker, read }),
      );
    },
  };
}

/** Arithmetic and cache: these heads, full multi-head, one head as wide as all. */
function drawTable() {
  const ROWS = ["products", "exponentials", "kept", "bytes"];
  const heads = ["these", "full_column", "one_column"].map((thing) =>
    html("th", { scope: "col" }, mine(thing)),
  );
  const cells = ROWS.map(() => heads.map(() => html("td")));
  const table = html(
    "table",
    { class: "attn-table" },
    html("thead", {}, html("tr", {}, html("th", { scope: "col" }, mine("count")), ...heads)),
    html(
      "tbody",
      {},
      ...ROWS.map((row, i) =>
        html("tr", {}, html("th", { scope: "row" }, mine(`row.${row}`)), ...cells[i]),
      ),
    ),
  );
  const share = html("dd", { "data-fact": "share" });
  const served = html("dd", { "data-fact": "served" });
  return {
    node: html(
      "div",
      { class: "attn-panel" },
      table,
      html(
        "dl",
        { class: "attn-facts" },
        html("div", {}, html("dt", {}, mine("share")), share),
        html("div", {}, html("dt", {}, mine("served")), served),
      ),
    ),
    show({ heads, kvHeads, width }) {
      const columns = [
        costs(heads, kvHeads, width),
        costs(heads, heads, width),
        costs(1, 1, heads * width),
      ];
      ROWS.forEach((row, i) =>
        columns.forEach((column, j) => (cells[i][j].textContent = column[row])),
      );
      const group = heads / kvHeads;
      share.textContent = group === 1 ? "1" : `1/${group}`;
      served.textContent = group;
    },
  };
}

export default {
  accepts,
  render: view({ title: say("widget.heads.title"), build }),
};
