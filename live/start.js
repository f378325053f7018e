// Puts a Run and an Edit button under every exercise cell of a page, and under the other
// code cells when asked. What the buttons do is loaded when one is pressed. STRINGS and
// PAGE stand before this text, written by the build.

const here = new URL(".", import.meta.url);
const say = (id, values = {}) =>
  STRINGS[`live.${id}`].replace(/\{(\w+)\}/g, (_, name) => values[name]);

let opened;
const cells = () =>
  (opened ??= import(new URL("runner.js", here).href)
    .then(({ open }) => open({ say, here, page: location.pathname, addBar }))
    .catch((error) => {
      opened = undefined;
      throw error;
    }));

const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

function button(name, act, status) {
  const press = async () => {
    if (!opened) status.textContent = say("loading");
    try {
      await act(await cells());
    } catch (error) {
      status.textContent = say("not_loaded");
      console.error(error);
    }
  };
  return make("button", { type: "button", className: `live-${name}`, textContent: say(name), onclick: press });
}

function addBar(cell) {
  const input = cell.querySelector(".cell_input");
  if (!input || cell.querySelector(".live-bar")) return;
  const id = cell.dataset.cell;
  const status = make("span", { className: "live-status" });
  status.setAttribute("role", "status");
  const bar = make("div", { className: "live-bar" });
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", say("cell", { id }));
  if (cell.dataset.notHere) bar.append(say(cell.dataset.notHere));
  else
    bar.append(
      button("run", (all) => all.get(id).run(), status),
      button("edit", (all) => all.get(id).edit(), status),
      status,
    );
  input.after(bar);
}

const all = () => document.querySelectorAll("[data-cell]");
for (const cell of all()) if (cell.dataset.role) addBar(cell);

const nav = document.querySelector(".book-run");
const status = make("span", { className: "live-status" });
status.setAttribute("role", "status");
const everywhere = button(
  "everywhere",
  (opened) => {
    for (const cell of all()) addBar(cell);
    opened.attach();
    everywhere.remove();
    status.textContent = say("everywhere_done");
  },
  status,
);
nav.append(everywhere, button("work", (opened) => opened.work(nav), status), status);

// What the reader wrote before comes back by itself; Python does not.
try {
  const page = location.pathname;
  const site = new URL("../", here).pathname;
  const kept = localStorage.getItem(`attnbook.work:${site}`) ?? "";
  const name = page.slice(site.length).replace(/\.html$/, "");
  if (kept.includes(`"${name}#`)) {
    for (const cell of all())
      if (kept.includes(`"${name}#${cell.dataset.cell}"`)) addBar(cell);
    await cells();
  }
} catch (error) {
  console.error(error);
}
