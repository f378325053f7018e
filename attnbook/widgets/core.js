// Shared by every widget: mathematics, words, drawing. The build puts this text,
// the catalogue (const CATALOGUE = {…}) and one widget's module together into one
// module, because live Jupyter loads it from a blob, which cannot import a neighbour.

// ---- mathematics: pure functions, tested equal to NumPy ----

/** Dot product of two vectors. */
export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** Matrix product of arrays of rows, (n, m) times (m, p). */
export function matmul(a, b) {
  return a.map((row) =>
    b[0].map((_, j) =>
      dot(
        row,
        b.map((other) => other[j]),
      ),
    ),
  );
}

/** Scores to weights; all −∞ gives zeros, as in attnbook.ops.softmax. */
export function softmax(scores) {
  const highest = Math.max(...scores);
  const shift = highest === -Infinity ? 0 : highest;
  const exps = scores.map((score) => Math.exp(score - shift));
  const total = exps.reduce((sum, x) => sum + x, 0);
  return exps.map((x) => x / (total === 0 ? 1 : total));
}

/** Entropy in bits; a weight of 0 adds nothing. */
export function entropyBits(weights) {
  let sum = 0;
  for (const w of weights) if (w > 0) sum += w * Math.log2(w);
  return Math.abs(sum);
}

/** Mean squared distance from the mean. */
export function variance(values) {
  let mean = 0;
  for (const x of values) mean += x;
  mean /= values.length;
  let sum = 0;
  for (const x of values) sum += (x - mean) ** 2;
  return sum / values.length;
}

/** Density at x of the normal law with mean 0 and this variance. */
export function normalDensity(x, variance) {
  return Math.exp((-x * x) / (2 * variance)) / Math.sqrt(2 * Math.PI * variance);
}

/** The index-th 32-bit word of the stream that seed starts (mulberry32). */
export function randomWord(seed, index) {
  const a = (seed + Math.imul(index + 1, 0x6d2b79f5)) | 0;
  let t = Math.imul(a ^ (a >>> 15), 1 | a);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return (t ^ (t >>> 14)) >>> 0;
}

/** The same word as a number strictly between 0 and 1. */
export function uniform(seed, index) {
  return (randomWord(seed, index) + 0.5) / 4294967296;
}

/** The index-th standard-normal number (Box–Muller, cosine branch). */
export function normal(seed, index) {
  const radius = Math.sqrt(-2 * Math.log(uniform(seed, 2 * index)));
  return radius * Math.cos(2 * Math.PI * uniform(seed, 2 * index + 1));
}

/**
 * Product of two independent standard-normal numbers, the cosine and the sine
 * branch of one Box–Muller pair: r cos(a) · r sin(a) = −ln(u) sin(2a).
 */
export function normalProduct(seed, index) {
  const angle = 4 * Math.PI * uniform(seed, 2 * index + 1);
  return -Math.log(uniform(seed, 2 * index)) * Math.sin(angle);
}

/** Clamp to [low, high] and round to a whole number. */
export function wholeWithin(x, low, high) {
  return Math.round(Math.min(high, Math.max(low, x)));
}

// ---- words and numbers ----

/** A string of the catalogue, its {names} filled from values. */
export function say(id, values = {}) {
  const text = CATALOGUE[id];
  if (text === undefined) throw new Error(`the catalogue has no string ${id}`);
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** A number with fixed decimals, a true minus sign, and no minus before zero. */
export function number(x, decimals) {
  const text = x.toFixed(decimals);
  return text.startsWith("-")
    ? Number(text) === 0
      ? text.slice(1)
      : "−" + text.slice(1)
    : text;
}

/** A vector as "(1.0, −2.0)", which does not break at the end of a line. */
export function vector(xs, decimals) {
  return `(${xs.map((x) => number(x, decimals)).join(",\u00a0")})`;
}

// ---- drawing ----

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** An HTML element. A style attribute would be refused by the page's policy. */
export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(
    document.createElementNS("http://www.w3.org/2000/svg", tag),
    attributes,
    children,
  );
}

/**
 * A table. A head is a string or a list of nodes and strings; a row is the content of
 * its head, then its cells, and the foot is cells, all of them elements.
 */
export function table(heads, rows, foot) {
  const line = (...cells) => html("tr", {}, ...cells);
  const head = (content) => html("th", { scope: "col" }, ...[content].flat());
  return html(
    "table",
    {},
    html("thead", {}, line(...heads.map(head))),
    html(
      "tbody",
      {},
      ...rows.map(([name, ...cells]) => line(html("th", { scope: "row" }, name), ...cells)),
    ),
    ...(foot ? [html("tfoot", {}, line(...foot))] : []),
  );
}

/** A list of named facts; mine gives the name of each in words. */
export function drawFacts(mine, names) {
  const values = Object.fromEntries(
    names.map((name) => [name, html("dd", { "data-fact": name })]),
  );
  return {
    node: html(
      "dl",
      { class: "attn-facts" },
      ...names.map((name) => html("div", {}, html("dt", {}, mine(name)), values[name])),
    ),
    show(texts) {
      for (const [name, text] of Object.entries(texts)) values[name].textContent = text;
    },
  };
}

/** A button. */
export function button(label, onClick, signal, attributes = {}) {
  const node = html(
    "button",
    { type: "button", class: "attn-button", ...attributes },
    label,
  );
  node.addEventListener("click", onClick, { signal });
  return node;
}

/**
 * A group of radio buttons that looks like one bar; arrow keys come from the
 * browser. Each option is { value, content }, content being nodes or strings.
 */
export function choice({ legend, options, onChoose, signal, look = "attn-bar" }) {
  // Views of other models may stand on the page, so the name must be this one's alone.
  const name = `attn-${Math.random().toString(36).slice(2)}`;
  const inputs = options.map(({ value }) => html("input", { type: "radio", name, value }));
  const node = html(
    "fieldset",
    { class: `attn-choice ${look}` },
    html("legend", {}, legend),
    html(
      "div",
      { class: "attn-options" },
      ...options.map(({ content }, i) =>
        html("label", {}, inputs[i], html("span", {}, ...content)),
      ),
    ),
  );
  node.addEventListener("change", (event) => onChoose(event.target.value), { signal });
  return {
    node,
    show(value) {
      for (const input of inputs) input.checked = input.value === String(value);
    },
  };
}

/** A slider with its label and value. */
export function slider({ label, min, max, step, onInput, signal }) {
  // A label belongs to the first thing in it that can have one: here, the output.
  const name = label.replace(/\s*=$/, "");
  const input = html("input", { type: "range", min, max, step, "aria-label": name });
  const output = html("output", {});
  const node = html(
    "label",
    { class: "attn-slider" },
    html("span", {}, label, " ", output),
    input,
  );
  input.addEventListener("input", () => onInput(Number(input.value)), { signal });
  return {
    node,
    input,
    show(value, text = String(value)) {
      input.value = value;
      output.textContent = text;
    },
  };
}

/** A switch (on or off) with its label. */
export function toggle({ label, onChange, signal }) {
  const input = html("input", { type: "checkbox", role: "switch" });
  input.addEventListener("change", () => onChange(input.checked), { signal });
  return {
    node: html("label", { class: "attn-switch" }, input, html("span", {}, label)),
    show(on) {
      input.checked = on;
    },
  };
}

/** True if the reader asked the system for less motion. */
export function prefersStillness() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// ---- what every widget is made of ----

/**
 * Build one view: a frame with a title, and what the widget puts into it.
 *
 * build({ model, root, signal, redraw }) returns { draw, clear }: a function that shows
 * the model's present state and returns one sentence about it, and (optional) one that
 * ends what a signal cannot; redraw is for what comes later than the model's state. Drawing follows the model, once a frame at most; the
 * sentence is also spoken, once the reader pauses. The trait _start holds the state
 * that the widget was made with, to which Reset returns.
 */
export function view({ title, build }) {
  return ({ model, el }) => {
    const stop = new AbortController();
    const { signal } = stop;
    const root = html("div", {
      class: "attn-root",
      role: "group",
      "aria-label": title,
      "data-lm-suppress-shortcuts": "true",
    });
    for (const type of ["mousedown", "pointerdown", "keydown"]) {
      // JupyterLab would take the focus and the arrow keys for its own ends.
      root.addEventListener(
        type,
        (event) => {
          if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
        },
        { signal },
      );
    }
    root.append(html("p", { class: "attn-title" }, title));
    const traits = Object.keys(model.get("_start"));
    let frame = 0;
    const redraw = () => (frame ||= requestAnimationFrame(show));
    const { draw, clear } = build({ model, root, signal, redraw });

    const sentence = html("p", { class: "attn-sentence" });
    const spoken = html("p", { class: "attn-spoken", "aria-live": "polite" });
    const reset = button(
      say("widget.common.reset"),
      () => change(model, structuredClone(model.get("_start"))),
      signal,
    );
    const link = model.address ? linkButton(model, signal, spoken) : null;
    root.append(
      sentence,
      spoken,
      html("div", { class: "attn-foot" }, reset, ...(link ? [link.node] : [])),
    );

    let pause = 0;
    const show = () => {
      frame = 0;
      const text = draw();
      link?.show();
      if (sentence.textContent === text) return;
      // The first sentence is read with the page; later ones are news.
      const news = sentence.textContent !== "";
      sentence.textContent = text;
      clearTimeout(pause);
      if (news) pause = setTimeout(() => (spoken.textContent = text), 500);
    };
    for (const trait of traits) model.on(`change:${trait}`, redraw);
    el.append(root);
    show();
    return () => {
      for (const trait of traits) model.off(`change:${trait}`, redraw);
      cancelAnimationFrame(frame);
      clearTimeout(pause);
      clear?.();
      stop.abort();
      root.remove();
    };
  };
}

/** Set several traits at once and send them to the kernel, if there is one. */
export function change(model, values) {
  for (const [name, value] of Object.entries(values)) model.set(name, value);
  model.save_changes();
}

/** True if a trait differs from what the widget was made with. */
function isChanged(model) {
  const text = (x) => JSON.stringify(x);
  return Object.entries(model.get("_start")).some(
    ([name, value]) => text(model.get(name)) !== text(value),
  );
}

/** Offered by pages (not by a kernel): copies an address that holds this state. */
function linkButton(model, signal, spoken) {
  const label = say("widget.common.copy_link");
  const node = button(
    label,
    async () => {
      const address = model.address();
      history.replaceState(history.state, "", address);
      let done = say("widget.common.link_copied");
      try {
        await navigator.clipboard.writeText(address);
      } catch {
        done = say("widget.common.link_in_address"); // No permission: the address bar has it.
      }
      node.textContent = spoken.textContent = done;
    },
    signal,
  );
  return {
    node,
    show() {
      node.textContent = label;
      node.disabled = !isChanged(model);
    },
  };
}
