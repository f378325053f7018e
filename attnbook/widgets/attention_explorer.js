// Attention explorer: recorded attention of two real models, every layer and head.

const NETWORKS = Object.keys(DATA.networks);
const TEXTS = Object.keys(DATA.sentences);
const STATE = ["network", "text", "layer", "head", "token", "target"];

/** Bytes of what was deflated and written in base64. */
export async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * The steps of 1/255 of one row of a head, T whole numbers.
 * With a causal mask only the places up to its own are kept.
 */
export function rowOf(bytes, { heads, causal, T }, layer, head, t) {
  const [size, before] = causal ? [(T * (T + 1)) / 2, (t * (t + 1)) / 2] : [T * T, t * T];
  const at = (layer * heads + head) * size + before;
  const row = Array(T).fill(0);
  for (let s = 0; s < (causal ? t + 1 : T); s++) row[s] = bytes[at + s];
  return row;
}

/** The steps of all rows of a head. */
export function stepsOf(bytes, shape, layer, head) {
  return Array.from({ length: shape.T }, (_, t) => rowOf(bytes, shape, layer, head, t));
}

/** Weights from steps: each row adds up to 1 again. */
export function weightsOf(steps) {
  return steps.map((row) => {
    const total = row.reduce((sum, x) => sum + x, 0);
    return row.map((x) => x / total);
  });
}

/** The weight of one token on another in every head, rows of layers. */
export function everyHead(bytes, shape, token, target) {
  return Array.from({ length: shape.layers }, (_, layer) =>
    Array.from(
      { length: shape.heads },
      (_, head) => weightsOf([rowOf(bytes, shape, layer, head, token)])[0][target],
    ),
  );
}

/** A state as far as it exists: a sentence that was recorded, a head that is there. */
export function within(state, tokens = Infinity) {
  const { layers, heads } = DATA.networks[state.network];
  const there = DATA.order[state.network];
  return {
    network: state.network,
    text: there.includes(state.text) ? state.text : there[0],
    layer: Math.min(state.layer, layers - 1),
    head: Math.min(state.head, heads - 1),
    token: Math.min(state.token, tokens - 1),
    target: Math.min(state.target, tokens - 1),
  };
}

function accepts(name, value) {
  if (name === "network") return NETWORKS.includes(value);
  if (name === "text") return TEXTS.includes(value);
  const most = {
    layer: Math.max(...NETWORKS.map((n) => DATA.networks[n].layers)),
    head: Math.max(...NETWORKS.map((n) => DATA.networks[n].heads)),
  };
  return Number.isInteger(value) && value >= 0 && value < (most[name] ?? DATA.longest);
}

const mine = (thing, values) => say(`widget.attention_explorer.${thing}`, values);
/** No weight is 0 exactly: what was recorded as 0 is less than half a step. */
const two = (x) => (x < 0.005 ? "<0.01" : number(x, 2));

// ---- a sentence's weights, from the page's own host or from the kernel ----

const kept = new Map(); // key -> { tokens, bytes, … } | "failed", for all views

async function unpack({ tokens, weights }, network) {
  const bytes = await inflate(weights);
  return { tokens, bytes, ...DATA.networks[network], T: tokens.length };
}

/** What is recorded of a sentence, or undefined while it is on its way. */
function recorded(model, { network, text }, whenThere) {
  const key = `${network}.${text}`;
  if (kept.has(key)) return kept.get(key);
  const sent = model.get("_recorded");
  // A page has no kernel; a kernel sends what it has been asked for.
  if (model.send && sent?.key !== key) return undefined;
  kept.set(key, undefined);
  const file = `attention_explorer.${key}.js`;
  const coming = model.send
    ? Promise.resolve(sent)
    : import(new URL(file, import.meta.url).href).then((module) => module.default);
  coming
    .then((found) => unpack(found, network))
    .catch((error) => {
      console.error(`${file} is missing:`, error);
      return "failed";
    })
    .then((found) => {
      kept.set(key, found);
      for (const tell of waiting.get(key) ?? []) tell();
      waiting.delete(key);
    });
  return undefined;
}

const waiting = new Map(); // key -> functions to call when it is there

function wait(key, tell) {
  if (!waiting.has(key)) waiting.set(key, new Set());
  waiting.get(key).add(tell);
}

// ---- the view ----

function summary({ state, tokens, weights }) {
  const row = weights[state.token];
  const order = [...row.keys()].sort((a, b) => row[b] - row[a]);
  const values = {
    network: mine(`network.${state.network}`),
    layer: state.layer,
    head: state.head,
    token: tokens[state.token],
    first: tokens[order[0]],
    most: two(row[order[0]]),
    target: tokens[state.target],
    weight: two(row[state.target]),
  };
  return mine(order[0] === state.target ? "says_most" : "says", values);
}

function build({ model, root, signal, redraw }) {
  const stateNow = (tokens) =>
    within(Object.fromEntries(STATE.map((n) => [n, model.get(n)])), tokens);
  const presets = DATA.goes_to.map((name) => ({
    name,
    node: button(mine(`preset.${name}`), () => change(model, DATA.presets[name]), signal),
  }));
  const note = html("p", { class: "attn-about" });
  const network = choice({
    legend: mine("network"),
    options: NETWORKS.map((value) => ({ value, content: [mine(`network.${value}`)] })),
    onChoose: (value) => change(model, { network: value }),
    signal,
  });
  const text = html("select", {});
  text.addEventListener("change", () => change(model, { text: text.value }), { signal });
  const wholes = (label, trait) =>
    slider({
      label,
      min: 0,
      max: 1,
      step: 1,
      onInput: (value) => change(model, { [trait]: value }),
      signal,
    });
  const layer = wholes(mine("layer"), "layer");
  const head = wholes(mine("head"), "head");
  const lanes = drawLanes({
    ask: (token) => change(model, { token }),
    aim: (target) => change(model, { target }),
    signal,
  });
  const matrix = drawMatrix({
    choose: (token, target) => change(model, { token, target }),
    signal,
  });
  const map = drawMap({
    choose: (layer, head) => change(model, { layer, head }),
    signal,
  });
  const pictures = html(
    "div",
    { class: "attn-columns attn-halves" },
    lanes.node,
    html("div", {}, matrix.node, map.node),
  );
  root.append(
    html(
      "div",
      { class: "attn-settings" },
      html("p", { class: "attn-hint" }, mine("presets")),
      html("div", { class: "attn-row" }, ...presets.map((p) => p.node)),
      note,
    ),
    network.node,
    html("label", { class: "attn-select" }, html("span", {}, mine("text")), text),
    html("div", { class: "attn-pair attn-settings" }, layer.node, head.node),
    pictures,
  );
  model.on("change:_recorded", redraw);

  let offered = "";
  return {
    clear: () => model.off("change:_recorded", redraw),
    draw() {
      const rough = stateNow();
      const { network: name } = rough;
      const found = recorded(model, rough);
      const key = `${name}.${rough.text}`;
      const loaded = found && found !== "failed";
      const state = loaded ? stateNow(found.T) : rough;
      const exactly = (preset) =>
        STATE.every((n) => DATA.presets[preset][n] === state[n]);
      const active = DATA.goes_to.find(exactly);
      const measured = DATA.found[active] ?? {};
      for (const preset of presets)
        preset.node.setAttribute("aria-pressed", String(preset.name === active));
      note.textContent = active
        ? mine(`note.${active}`, { ...measured, mean: two(measured.mean ?? 0) })
        : mine("note_none");
      network.show(name);
      if (offered !== name) {
        offered = name;
        text.replaceChildren(
          ...DATA.order[name].map((value) =>
            html("option", { value }, DATA.sentences[value]),
          ),
        );
      }
      text.value = state.text;
      layer.input.max = DATA.networks[name].layers - 1;
      head.input.max = DATA.networks[name].heads - 1;
      layer.show(state.layer);
      head.show(state.head);
      pictures.hidden = !loaded;
      if (!loaded) {
        if (found === "failed") return mine("failed");
        wait(key, () => signal.aborted || redraw());
        return mine("coming");
      }
      const weights = weightsOf(stepsOf(found.bytes, found, state.layer, state.head));
      const scene = { key, state, tokens: found.tokens, weights, causal: found.causal };
      lanes.show(scene);
      matrix.show(scene);
      map.show({
        ...scene,
        all: everyHead(found.bytes, found, state.token, state.target),
      });
      return summary(scene);
    },
  };
}

// ---- the tokens, one below the other, with arcs from the one that asks ----

const ROW = 28; // pixels, as in the style sheet

function drawLanes({ ask, aim, signal }) {
  const W = 84;
  const picture = svg("svg", { "aria-hidden": "true", class: "attn-arcs" });
  const node = html("div", { class: "attn-lanes" });
  let shown = "";
  let asks;
  let aims;
  let bars;
  return {
    node,
    show({ key, state, tokens, weights, causal }) {
      if (shown !== key) {
        shown = key;
        bars = tokens.map(() => html("b", { class: "attn-amount" }));
        asks = choice({
          legend: mine("asks"),
          options: tokens.map((token, value) => ({ value, content: [token] })),
          onChoose: (value) => ask(Number(value)),
          signal,
          look: "attn-lane",
        });
        aims = choice({
          legend: mine("aims"),
          options: bars.map((bar, value) => ({ value, content: [bar] })),
          onChoose: (value) => aim(Number(value)),
          signal,
          look: "attn-lane",
        });
        for (const [i, input] of [...aims.node.querySelectorAll("input")].entries())
          input.setAttribute("aria-label", tokens[i]);
        picture.setAttribute("viewBox", `0 0 ${W} ${ROW * tokens.length}`);
        node.replaceChildren(picture, asks.node, aims.node);
      }
      const row = weights[state.token];
      asks.show(state.token);
      aims.show(state.target);
      bars.forEach((bar, s) => {
        const unseen = causal && s > state.token;
        bar.textContent = unseen ? "×" : two(row[s]);
        bar.style.setProperty("--share", row[s]);
      });
      const y = (i) => ROW * (i + 0.5);
      picture.replaceChildren(
        ...row.flatMap((weight, s) => {
          if (weight < 0.005) return [];
          const [from, to] = [y(state.token), y(s)];
          const wide = (1 + 8 * weight).toFixed(1);
          const look = {
            class: "attn-stroke-weight",
            "stroke-width": wide,
            "stroke-opacity": (0.25 + 0.75 * weight).toFixed(2),
          };
          if (s === state.token)
            return [svg("circle", { ...look, cx: W - 12, cy: from, r: 7 })];
          const out = Math.max(4, W - 14 - 0.62 * Math.abs(to - from));
          const d = `M${W} ${from}C${out} ${from} ${out} ${to} ${W} ${to}`;
          return [svg("path", { ...look, d })];
        }),
      );
    },
  };
}

// ---- the matrix, and the map of all heads ----

/** A picture whose cells can be pressed; all of it can be done by other controls. */
function drawCells({ title, choose, signal }) {
  const picture = svg("svg", { role: "img", class: "attn-cells" });
  const caption = html("figcaption", {}, title);
  picture.addEventListener(
    "click",
    (event) => {
      const { a, b } = event.target.dataset;
      if (a !== undefined) choose(Number(a), Number(b));
    },
    { signal },
  );
  return {
    node: html("figure", { class: "attn-panel" }, caption, picture),
    picture,
    caption,
  };
}

function cell(a, b, x, y, w, h, weight, chosen) {
  return svg("rect", {
    class: chosen ? "attn-fill-weight attn-here" : "attn-fill-weight",
    "data-a": a,
    "data-b": b,
    x,
    y,
    width: w,
    height: h,
    "fill-opacity": weight.toFixed(3),
  });
}

function drawMatrix({ choose, signal }) {
  const { node, picture } = drawCells({ title: mine("matrix"), choose, signal });
  return {
    node,
    show({ state, tokens, weights, causal }) {
      const n = tokens.length;
      const left = 96;
      const size = 244 / n;
      const parts = [];
      tokens.forEach((token, t) => {
        const named = (thing, x, y, words, anchor) =>
          svg("text", { class: thing, x, y, "text-anchor": anchor }, words);
        const middle = (t + 0.5) * size;
        parts.push(
          named(
            t === state.token ? "attn-note attn-chosen" : "attn-note",
            left - 6,
            (20 + middle + 4).toFixed(1),
            `${token} ${t + 1}`,
            "end",
          ),
          named(
            t === state.target ? "attn-note attn-chosen" : "attn-note",
            (left + middle).toFixed(1),
            14,
            // Two digits need the room of two columns.
            Math.abs(t - state.target) === 1 || (n > 9 && t % 2 && t !== state.target)
              ? ""
              : String(t + 1),
            "middle",
          ),
        );
        for (let s = 0; s < (causal ? t + 1 : n); s++) {
          const here = t === state.token && s === state.target;
          const [x, y, w] = [left + s * size, 20 + t * size, size - 1].map((v) =>
            v.toFixed(1),
          );
          parts.push(cell(t, s, x, y, w, w, weights[t][s], here));
        }
      });
      picture.setAttribute("viewBox", "0 0 340 268");
      picture.setAttribute("aria-label", mine("matrix_label", { n }));
      picture.replaceChildren(...parts);
    },
  };
}

function drawMap({ choose, signal }) {
  const { node, picture, caption } = drawCells({ title: "", choose, signal });
  return {
    node,
    show({ state, tokens, all }) {
      const heads = all[0].length;
      const [w, h] = [340 / all.length, heads > 9 ? 10 : 12];
      let best = [0, 0];
      all.forEach((row, a) =>
        row.forEach((weight, b) => {
          if (weight > all[best[0]][best[1]]) best = [a, b];
        }),
      );
      caption.textContent = mine("map", {
        token: tokens[state.token],
        target: tokens[state.target],
        count: all.length * heads,
        weight: two(all[best[0]][best[1]]),
        layer: best[0],
        head: best[1],
      });
      picture.setAttribute("viewBox", `0 0 340 ${heads * h}`);
      picture.setAttribute("aria-label", caption.textContent);
      picture.replaceChildren(
        ...all.flatMap((row, a) =>
          row.map((weight, b) =>
            cell(
              a,
              b,
              (a * w).toFixed(1),
              b * h,
              (w - 1).toFixed(1),
              h - 1,
              weight,
              a === state.layer && b === state.head,
            ),
          ),
        ),
      );
    },
  };
}

export default {
  accepts,
  render: view({ title: say("widget.attention_explorer.title"), build }),
};
