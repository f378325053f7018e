// Attention in three steps: dot product, softmax, weighted sum, for one of four words.

/** Projections of the example: ask twice as loudly; wear yourself; hand over a lean. */
export const PROJECTIONS = {
  query: [
    [2, 0],
    [0, 2],
  ],
  key: [
    [1, 0],
    [0, 1],
  ],
  value: [
    [1, -1],
    [-1, 1],
  ],
};
const LIMIT = 3; // coordinates of a word lie in [-3, 3]
const CONTEXTS = ["fruit", "company"];

/** Everything that the widget shows, for word vectors (4, 2) and the asking word. */
export function attend(vectors, asker) {
  const q = matmul([vectors[asker]], PROJECTIONS.query)[0];
  const k = matmul(vectors, PROJECTIONS.key);
  const v = matmul(vectors, PROJECTIONS.value);
  const products = k.map((key) => dot(q, key));
  const scores = products.map((product) => product / Math.sqrt(q.length));
  const highest = Math.max(...scores);
  const exps = scores.map((score) => Math.exp(score - highest));
  const weights = softmax(scores);
  const parts = v.map((value, i) => value.map((x) => weights[i] * x));
  const output = matmul([weights], v)[0];
  return { q, k, v, products, scores, exps, weights, parts, output };
}

/** A coordinate as the widget keeps it: within the plane, one decimal. */
export function snap(x) {
  return Math.round(Math.min(LIMIT, Math.max(-LIMIT, x)) * 10) / 10 + 0;
}

function accepts(name, value) {
  if (name === "context") return CONTEXTS.includes(value);
  if (name === "asker") return [0, 1, 2, 3].includes(value);
  if (name === "step") return [1, 2, 3].includes(value);
  const isPair = (row) =>
    Array.isArray(row) && row.length === 2 && row.every((x) => x === snap(x));
  return Array.isArray(value) && value.length === 4 && value.every(isPair);
}

const mine = (thing, values) => say(`widget.three_steps.${thing}`, values);
const wordsOf = (context) => [1, 2, 3, 4].map((i) => mine(`${context}.${i}`));

/** One sentence that says what happened. */
function summary(word, words, { weights, output }) {
  const most = Math.max(...weights);
  const tops = words.filter((_, i) => weights[i] > most - 1e-9);
  const names = tops.slice(1).reduce((a, b) => say("widget.common.and", { a, b }), tops[0]);
  const how = tops.length === 4 ? "evenly" : most > 0.5 ? "mostly" : "most";
  const lean =
    Math.abs(output[0]) < 0.005 ? "neither" : output[0] > 0 ? "fruit" : "company";
  const looks = mine(`looks_${how}`, { word, top: names, weight: number(most, 2) });
  return `${looks} ${mine(`leans_${lean}`, { output: vector(output, 2) })}`;
}

function build({ model, root, signal }) {
  const vectorsNow = () => model.get(model.get("context"));
  const setWord = (i, xs) => {
    const vectors = vectorsNow().map((row, j) => (j === i ? xs.map(snap) : row));
    change(model, { [model.get("context")]: vectors });
  };

  const context = choice({
    legend: mine("context"),
    options: CONTEXTS.map((value) => ({ value, content: [wordsOf(value).join(" ")] })),
    onChoose: (value) => change(model, { context: value }),
    signal,
  });
  const askerBars = [0, 1, 2, 3].map(() => html("i", { class: "attn-meter" }));
  const askerWords = [0, 1, 2, 3].map(() => html("b"));
  const askerWeights = [0, 1, 2, 3].map(() => html("small"));
  const asker = choice({
    legend: mine("asker"),
    options: [0, 1, 2, 3].map((i) => ({
      value: i,
      content: [askerWords[i], askerBars[i], askerWeights[i]],
    })),
    onChoose: (value) => change(model, { asker: Number(value) }),
    signal,
    look: "attn-words",
  });
  const plane = drawPlane({ setWord, signal });
  const numbers = drawNumbers({ setWord, signal });
  const step = choice({
    legend: mine("step"),
    options: [1, 2, 3].map((value) => ({
      value,
      content: [`${value} `, mine(`step.${value}`)],
    })),
    onChoose: (value) => change(model, { step: Number(value) }),
    signal,
  });
  const sheet = html("div", { class: "attn-sheet" });
  const next = button(
    "",
    () => change(model, { step: (model.get("step") % 3) + 1 }),
    signal,
    { class: "attn-button attn-next" },
  );
  const pull = drawPull();
  root.append(
    context.node,
    asker.node,
    html(
      "div",
      { class: "attn-columns" },
      html("div", {}, plane.node, numbers.node),
      html("div", {}, step.node, sheet, next),
    ),
    pull.node,
  );

  let shownStep = null;
  let flights = [];
  return {
    draw() {
      const now = {
        context: model.get("context"),
        asker: model.get("asker"),
        step: model.get("step"),
      };
      const words = wordsOf(now.context);
      const result = attend(vectorsNow(), now.asker);
      context.show(now.context);
      asker.show(now.asker);
      step.show(now.step);
      words.forEach((word, i) => {
        askerWords[i].textContent = word;
        askerBars[i].style.setProperty("--share", result.weights[i]);
        askerWeights[i].textContent = number(result.weights[i], 2);
      });
      plane.show(vectorsNow(), words, now, result);
      numbers.show(vectorsNow(), words);
      next.textContent = mine(now.step < 3 ? "next" : "again", {
        step: mine(`step.${(now.step % 3) + 1}`),
      });

      const before = positions(sheet);
      sheet.replaceChildren(...SHEETS[now.step - 1](words, now.asker, result));
      // What one step gives, the next one takes: the same numbers move over.
      if (shownStep !== null && shownStep !== now.step && !prefersStillness()) {
        for (const flight of flights) flight.cancel();
        flights = fly(sheet, before);
      }
      shownStep = now.step;

      const other = CONTEXTS.find((name) => name !== now.context);
      const otherWords = wordsOf(other);
      pull.show({
        words,
        word: words[now.asker],
        result,
        other: otherWords[now.asker] === words[now.asker] && {
          output: attend(model.get(other), now.asker).output,
          label: mine("otherwise", { sentence: otherWords.join(" ") }),
        },
      });
      return summary(words[now.asker], words, result);
    },
    clear() {
      for (const flight of flights) flight.cancel();
    },
  };
}

// ---- the numbers of each step ----

// Class names are always written out whole: a build may drop rules whose names no
// page and no module holds.
const hued = (hue, text) => html("span", { class: hue }, text);
const cell = (content, flow) =>
  html("td", {}, flow ? html("span", { "data-flow": flow }, content) : content);

const sheetOf = (lead, heads, rows, foot) => [
  html("p", { class: "attn-lead" }, ...lead),
  table(heads, rows, foot),
];

const SHEETS = [
  function dotProducts(words, asker, { q, k, products, scores }) {
    const product = (i) =>
      html(
        "td",
        { class: "attn-sum" },
        ...[0, 1].flatMap((axis) => [
          axis ? " + " : "",
          html(
            "span",
            { class: "attn-term" },
            hued("attn-query", number(q[axis], 1)),
            "·",
            hued("attn-key", number(k[i][axis], 1)),
          ),
        ]),
      );
    return sheetOf(
      [
        mine("lead.1", { word: words[asker] }),
        " ",
        hued("attn-query", `q\u00a0=\u00a0${vector(q, 1)}`),
      ],
      [
        mine("word"),
        [hued("attn-query", "q"), " · ", hued("attn-key", "k")],
        "=",
        mine("to_score"),
      ],
      words.map((word, i) => [
        word,
        product(i),
        cell(number(products[i], 2)),
        cell(number(scores[i], 3), `score${i}`),
      ]),
    );
  },
  function softmaxed(words, asker, { scores, exps, weights }) {
    const total = exps.reduce((sum, x) => sum + x, 0);
    return sheetOf(
      [mine("lead.2", { highest: number(Math.max(...scores), 3) })],
      [mine("word"), mine("score"), mine("exp"), mine("weight")],
      words.map((word, i) => {
        const bar = html("i", { class: "attn-meter" });
        bar.style.setProperty("--share", weights[i]);
        const weight = html(
          "span",
          { "data-flow": `weight${i}`, class: "attn-weight" },
          number(weights[i], 3),
        );
        return [
          word,
          cell(number(scores[i], 3), `score${i}`),
          cell(number(exps[i], 3)),
          html("td", {}, weight, bar),
        ];
      }),
      [
        html("th", { scope: "row" }, mine("sum")),
        html("td"),
        cell(number(total, 3)),
        cell(number(1, 3)),
      ],
    );
  },
  function weightedSum(words, asker, { weights, v, parts, output }) {
    return sheetOf(
      [mine("lead.3")],
      [
        mine("word"),
        mine("weight"),
        [hued("attn-value", "v")],
        [mine("weight"), " × ", hued("attn-value", "v")],
      ],
      words.map((word, i) => [
        word,
        html(
          "td",
          {},
          html(
            "span",
            { "data-flow": `weight${i}`, class: "attn-weight" },
            number(weights[i], 3),
          ),
        ),
        html("td", {}, hued("attn-value", vector(v[i], 1))),
        cell(vector(parts[i], 2)),
      ]),
      [
        html("th", { scope: "row", colspan: 3 }, mine("output")),
        html("td", {}, hued("attn-output", vector(output, 2))),
      ],
    );
  },
];

/** Where each number that moves on stands now. */
function positions(sheet) {
  return new Map(
    [...sheet.querySelectorAll("[data-flow]")].map((n) => [
      n.dataset.flow,
      n.getBoundingClientRect(),
    ]),
  );
}

function fly(sheet, before) {
  return [...sheet.querySelectorAll("[data-flow]")].flatMap((node, i) => {
    const from = before.get(node.dataset.flow);
    if (!from) return [];
    const to = node.getBoundingClientRect();
    const shift = `translate(${from.left - to.left}px, ${from.top - to.top}px)`;
    return [
      node.animate([{ transform: shift }, { transform: "none" }], {
        duration: 600,
        delay: 60 * i,
        easing: "ease-in-out",
        fill: "backwards",
      }),
    ];
  });
}

// ---- the plane ----

const REACH = 3.6; // half the width of the plane, in its own units
const SIDE = 300;

function drawPlane({ setWord, signal }) {
  const at = (x, y) => [
    SIDE / 2 + (x * SIDE) / (2 * REACH),
    SIDE / 2 - (y * SIDE) / (2 * REACH),
  ];
  const arrows = svg("g");
  const picture = svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, "aria-hidden": "true" });
  for (let i = -3; i <= 3; i++) {
    const [x, y] = at(i, i);
    const axis = i === 0 ? "attn-axis" : "attn-grid";
    picture.append(
      svg("line", { x1: x, x2: x, y1: 0, y2: SIDE, class: axis }),
      svg("line", { y1: y, y2: y, x1: 0, x2: SIDE, class: axis }),
    );
  }
  picture.append(
    svg(
      "text",
      { x: SIDE - 6, y: SIDE - 8, "text-anchor": "end", class: "attn-note" },
      `${mine("fruit")} →`,
    ),
    svg("text", { x: 6, y: 16, class: "attn-note" }, `↑ ${mine("company")}`),
    arrows,
  );
  const handles = [0, 1, 2, 3].map(() =>
    html("button", {
      type: "button",
      class: "attn-handle",
      "aria-roledescription": mine("point"),
    }),
  );
  const stage = html("div", { class: "attn-plane" }, picture, ...handles);
  const node = html(
    "div",
    { class: "attn-figure", role: "group", "aria-label": mine("plane") },
    stage,
    html("p", { class: "attn-hint" }, mine("drag")),
  );

  let shown = [];
  handles.forEach((handle, i) => {
    let dragging = null;
    const end = () => (dragging = null);
    handle.addEventListener(
      "pointerdown",
      (event) => {
        if (event.button !== 0) return;
        handle.setPointerCapture(event.pointerId);
        dragging = event.pointerId;
      },
      { signal },
    );
    handle.addEventListener(
      "pointermove",
      (event) => {
        if (event.pointerId !== dragging) return;
        const box = stage.getBoundingClientRect();
        setWord(i, [
          ((event.clientX - box.left) / box.width - 0.5) * 2 * REACH,
          (0.5 - (event.clientY - box.top) / box.height) * 2 * REACH,
        ]);
      },
      { signal },
    );
    for (const type of ["pointerup", "pointercancel", "lostpointercapture"])
      handle.addEventListener(type, end, { signal });
    handle.addEventListener(
      "keydown",
      (event) => {
        const move = {
          ArrowLeft: [-1, 0],
          ArrowRight: [1, 0],
          ArrowUp: [0, 1],
          ArrowDown: [0, -1],
        }[event.key];
        if (!move) return;
        event.preventDefault();
        const size = event.shiftKey ? 1 : 0.1;
        setWord(
          i,
          shown[i].map((x, axis) => x + size * move[axis]),
        );
      },
      { signal },
    );
  });

  function arrow(to, attributes) {
    const [x, y] = at(...to);
    const [cx, cy] = at(0, 0);
    const length = Math.hypot(x - cx, y - cy);
    if (length < 1) return [];
    const [ux, uy] = [(x - cx) / length, (y - cy) / length];
    const head = [
      [x, y],
      [x - 10 * ux + 5 * uy, y - 10 * uy - 5 * ux],
      [x - 10 * ux - 5 * uy, y - 10 * uy + 5 * ux],
    ];
    return [
      svg("line", { x1: cx, y1: cy, x2: x - 6 * ux, y2: y - 6 * uy, ...attributes }),
      svg("polygon", {
        points: head.map((p) => p.join(",")).join(" "),
        class: `${attributes.class} attn-head`,
      }),
    ];
  }

  return {
    node,
    show(vectors, words, { asker, step }, { q, k, weights, output }) {
      shown = vectors;
      const labels = new Map(); // words at the same place share a label
      vectors.forEach((xs, i) =>
        labels.set(xs.join(), [...(labels.get(xs.join()) ?? []), words[i]]),
      );
      arrows.replaceChildren(
        ...(step === 3
          ? arrow(output, { class: "attn-stroke-output", "stroke-width": 4 })
          : []),
        ...(step === 1
          ? arrow(q, {
              class: "attn-stroke-query",
              "stroke-width": 3,
              "stroke-dasharray": "7 5",
            })
          : []),
        ...k.flatMap((key, i) =>
          arrow(key, {
            class: "attn-stroke-key",
            "stroke-width": step === 1 ? 2 : 1 + 6 * weights[i],
          }),
        ),
        ...vectors.map((xs, i) => {
          const [cx, cy] = at(...xs);
          return svg("circle", {
            cx,
            cy,
            r: 6,
            class: i === asker ? "attn-dot attn-asks" : "attn-dot",
          });
        }),
        ...[...labels].map(([place, names]) => {
          // Beside a word that points up or down, below all others, so that no
          // arrow runs through a label and neighbours on an axis keep theirs.
          const [dx, dy] = place.split(",").map(Number);
          const [x, y] = at(dx, dy);
          const beside = Math.abs(dy) >= Math.abs(dx) && dy !== 0;
          const left = beside && x > SIDE - 60;
          const where = beside ? { x: left ? x - 11 : x + 11, y: y + 4 } : { x, y: y + 21 };
          const anchor = beside ? (left ? "end" : "start") : "middle";
          return svg(
            "text",
            { ...where, "text-anchor": anchor, class: "attn-name" },
            names.join(", "),
          );
        }),
        ...(step === 1 ? tag(q, "q", "attn-fill-query") : []),
        ...(step === 3 ? tag(output, mine("output"), "attn-fill-output") : []),
      );
      handles.forEach((handle, i) => {
        const [x, y] = at(...vectors[i]);
        handle.style.left = `${(100 * x) / SIDE}%`;
        handle.style.top = `${(100 * y) / SIDE}%`;
        handle.setAttribute(
          "aria-label",
          mine("handle", {
            word: words[i],
            x: number(vectors[i][0], 1),
            y: number(vectors[i][1], 1),
          }),
        );
      });
    },
  };

  /** A letter halfway along an arrow, beside it, inside the plane. */
  function tag(to, text, hue) {
    const half = to.map((x) => Math.max(-2.6, Math.min(2.6, x * 0.62)));
    const [x, y] = at(...half);
    return Math.hypot(...to) < 0.3
      ? []
      : [
          svg(
            "text",
            { x: x - 6, y: y - 8, "text-anchor": "end", class: `attn-name ${hue}` },
            text,
          ),
        ];
  }
}

/** The word vectors as numbers to type. */
function drawNumbers({ setWord, signal }) {
  let shown = [];
  const names = [0, 1, 2, 3].map(() => html("span"));
  const inputs = [0, 1, 2, 3].map((i) =>
    [0, 1].map((axis) => {
      const input = html("input", { type: "number", min: -LIMIT, max: LIMIT, step: 0.1 });
      const put = () => {
        if (input.value !== "" && Number.isFinite(Number(input.value))) {
          setWord(
            i,
            shown[i].map((x, j) => (j === axis ? Number(input.value) : x)),
          );
        }
      };
      input.addEventListener("input", put, { signal });
      // Left empty or half typed: show what still holds.
      input.addEventListener(
        "change",
        () => (input.value = number(shown[i][axis], 1).replace("−", "-")),
        { signal },
      );
      return input;
    }),
  );
  const node = html(
    "details",
    { class: "attn-numbers" },
    html("summary", {}, mine("numbers")),
    table(
      ["word", "fruit", "company"].map((thing) => mine(thing)),
      inputs.map((pair, i) => [names[i], ...pair.map((input) => html("td", {}, input))]),
    ),
  );
  return {
    node,
    show(vectors, words) {
      shown = vectors;
      words.forEach((word, i) => {
        names[i].textContent = word;
        inputs[i].forEach((input, axis) => {
          input.setAttribute("aria-label", `${word}, ${mine(axis ? "company" : "fruit")}`);
          if (input.value === "" || Number(input.value) !== vectors[i][axis])
            input.value = vectors[i][axis].toFixed(1);
        });
      });
    },
  };
}

// ---- where the output lands between company and fruit ----

function drawPull() {
  const REACH_OF_PULL = 2 * LIMIT; // values lie in [-6, 6]
  const values = html("div");
  const ghost = html("span", { class: "attn-mark attn-ghost" });
  const mark = html("span", { class: "attn-mark attn-here" });
  const note = html("p", { class: "attn-hint" });
  const track = html("div", { class: "attn-track" }, values, ghost, mark);
  const node = html(
    "div",
    { class: "attn-pull" },
    html("p", { class: "attn-panel-title" }, mine("lean")),
    html(
      "p",
      { class: "attn-ends" },
      html("span", {}, `← ${mine("company")}`),
      html("span", {}, `${mine("fruit")} →`),
    ),
    track,
    note,
  );
  const place = (thing, x) =>
    thing.style.setProperty("--place", (x + REACH_OF_PULL) / (2 * REACH_OF_PULL));
  return {
    node,
    show({ words, word, result, other }) {
      const groups = new Map();
      result.v.forEach((value, i) =>
        groups.set(value[0], [...(groups.get(value[0]) ?? []), words[i]]),
      );
      values.replaceChildren(
        ...[...groups]
          .sort((a, b) => a[0] - b[0])
          .map(([x, names], row) => {
            const tick = html("span", { class: "attn-tick" }, names.join(", "));
            tick.style.setProperty("--row", row % 3); // neighbours at different heights
            place(tick, x);
            return tick;
          }),
      );
      place(mark, result.output[0]);
      mark.textContent = `${word} ${number(result.output[0], 2)}`;
      ghost.hidden = !other;
      if (other) place(ghost, other.output[0]);
      note.textContent = other ? other.label : mine("pull_note");
    },
  };
}

export default {
  accepts,
  render: view({ title: say("widget.three_steps.title"), build }),
};
