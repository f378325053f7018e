// Break it: what a published model says, and how surprised it is, without a part.

export const CHANGES = [
  "intact",
  "scale",
  "mask",
  "heads",
  "residual",
  "norm",
  "last_division",
  "last_gain",
  "pairs",
  "positions",
];
const VOCABULARY = 49152;
const LONGEST = 18; // nats that fit into the bar

/** e to the nats, to two digits, as text; a dash where there is none. */
export function perplexity(nats) {
  if (nats === null) return "—";
  if (nats > 40) return "> 10¹⁷"; // e⁴⁰
  const value = Math.exp(nats);
  if (value < 10) return value.toFixed(1);
  const size = 10 ** (Math.floor(Math.log10(value)) - 1);
  const rounded = Math.floor(value / size + 0.5) * size;
  return String(rounded).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** How much of the bar these nats fill, 0 to 1; all of it if they are none. */
export function share(nats) {
  return nats === null ? 1 : Math.min(nats / LONGEST, 1);
}

function accepts(name, value) {
  return name === "change" && CHANGES.includes(value);
}

const mine = (thing, values) => say(`widget.break_it.${thing}`, values);
const nameOf = (change) => mine(`change.${change}`);
const natsOf = (change) => {
  const { nats } = DATA[change];
  return nats === null ? mine("no_number") : number(nats, 1);
};

function build({ model, root, signal }) {
  const changes = choice({
    legend: mine("what"),
    options: CHANGES.map((value) => ({ value, content: [nameOf(value)] })),
    onChoose: (value) => change(model, { change: value }),
    signal,
  });
  const bars = drawBars();
  const facts = table(
    [mine("surprise"), mine("intact"), mine("now")],
    [
      [mine("nats"), html("td", {}, natsOf("intact")), html("td")],
      [mine("perplexity"), html("td", {}, perplexity(DATA.intact.nats)), html("td")],
    ],
  );
  facts.classList.add("attn-table");
  const [nats, choices] = [...facts.querySelectorAll("tbody tr")].map(
    (row) => row.lastElementChild,
  );
  const written = html("pre", { class: "attn-written" });
  root.append(
    changes.node,
    html(
      "div",
      { class: "attn-columns attn-halves" },
      bars.node,
      html(
        "div",
        {},
        facts,
        html("p", { class: "attn-panel-title" }, mine("writes")),
        written,
      ),
    ),
  );
  return {
    draw() {
      const chosen = model.get("change");
      changes.show(chosen);
      bars.show(chosen);
      nats.textContent = natsOf(chosen);
      choices.textContent = perplexity(DATA[chosen].nats);
      written.textContent = DATA[chosen].says;
      return mine(`lesson.${chosen}`);
    },
  };
}

function drawBars() {
  const [W, top, step] = [340, 26, 24];
  const [left, width] = [148, 124];
  const height = top + step * CHANGES.length;
  const blind = left + width * share(Math.log(VOCABULARY));
  const rows = CHANGES.map((change, i) => {
    const y = top + step * i;
    const name = svg("text", { class: "attn-note", x: 0, y: y + 13 }, nameOf(change));
    const bar = svg("rect", {
      x: left,
      y,
      width: (width * share(DATA[change].nats)).toFixed(1),
      height: 16,
      rx: 3,
    });
    const value = svg(
      "text",
      { class: "attn-note", x: W, y: y + 13, "text-anchor": "end" },
      natsOf(change),
    );
    // A bar that is longer than the scale is cut open near its end.
    const { nats } = DATA[change];
    const long = nats !== null && nats > LONGEST;
    const x2 = left + width - 8;
    const cut = long
      ? [svg("line", { class: "attn-bar-cut", x1: x2 - 6, x2, y1: y + 18, y2: y - 2 })]
      : [];
    return { change, name, bar, value, cut, none: nats === null };
  });
  const picture = svg(
    "svg",
    { role: "img", class: "attn-small", viewBox: `0 0 ${W} ${height}` },
    ...rows.flatMap((row) => [row.name, row.bar, ...row.cut, row.value]),
    svg("line", {
      class: "attn-blind-line",
      x1: blind.toFixed(1),
      x2: blind.toFixed(1),
      y1: top - 6,
      y2: height,
    }),
    svg(
      "text",
      { class: "attn-note", x: blind.toFixed(1), y: 12, "text-anchor": "middle" },
      mine("blind"),
    ),
  );
  return {
    node: html(
      "figure",
      { class: "attn-panel" },
      html("figcaption", {}, mine("bars")),
      picture,
    ),
    show(chosen) {
      for (const { change, name, bar, none } of rows) {
        const now = change === chosen;
        bar.setAttribute("class", now ? "attn-bar-now" : "attn-bar-other");
        bar.classList.toggle("attn-bar-none", none);
        name.setAttribute("class", now ? "attn-name" : "attn-note");
      }
      picture.setAttribute(
        "aria-label",
        rows.map(({ change }) => `${nameOf(change)}: ${natsOf(change)}`).join("; "),
      );
    },
  };
}

export default {
  accepts,
  render: view({ title: say("widget.break_it.title"), build }),
};
