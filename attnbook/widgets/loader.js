// Brings the widgets of a static page to life, with the module that live Jupyter
// uses and a model that has no kernel behind it.
//
// A state in the address is written #w.<id>.<trait>=<value>, joined by &; the id is
// the element's data-widget-id or, without one, its place among the page's widgets
// (1, 2, …). Any other fragment is an ordinary anchor and is left alone.

const folder = new URL(".", import.meta.url);
const alive = new Map(); // element -> { model, cleanups, stop, definition }

/** The part of an anywidget model that widgets use, without a kernel. */
class Model {
  #state;
  #listeners = new Map();

  constructor(state, address) {
    this.#state = { ...state, _start: structuredClone(state) };
    this.address = () => address(this);
  }

  get(name) {
    return this.#state[name];
  }

  set(name, value) {
    if (Object.is(this.#state[name], value)) return;
    this.#state[name] = value;
    this.#tell(`change:${name}`, value);
    this.#tell("change");
  }

  save_changes() {} // Nobody else holds this state.

  on(name, listener) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, new Set());
    this.#listeners.get(name).add(listener);
  }

  off(name, listener) {
    this.#listeners.get(name)?.delete(listener);
  }

  /** How many listeners there are, so that a test can see that none is left. */
  get listenerCount() {
    return [...this.#listeners.values()].reduce((sum, set) => sum + set.size, 0);
  }

  #tell(name, ...values) {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) listener(...values);
  }
}

const hosts = () => [...document.querySelectorAll("[data-widget]")];
const idOf = (host) => host.dataset.widgetId ?? String(hosts().indexOf(host) + 1);

/** What the address says about a widget: trait -> value, all of it untrusted. */
function addressed(host) {
  const found = {};
  for (const part of location.hash.slice(1).split("&")) {
    const [key, value] = part.split("=");
    const [mark, id, trait, ...rest] = key.split(".");
    if (mark !== "w" || id !== idOf(host) || !trait || rest.length || value === undefined)
      continue;
    try {
      found[trait] = JSON.parse(decodeURIComponent(value));
    } catch {
      // A damaged link: this trait keeps its value.
    }
  }
  return found;
}

/** The page's address with the widget's changed traits in it, and no one else's. */
function addressOf(host, model) {
  const parts = [];
  for (const [name, value] of Object.entries(model.get("_start"))) {
    const now = JSON.stringify(model.get(name));
    if (now !== JSON.stringify(value))
      parts.push(`w.${idOf(host)}.${name}=${encodeURIComponent(now)}`);
  }
  const url = new URL(location.href);
  url.hash = parts.join("&");
  return url.href;
}

/** Put what the address says into the model, as far as the widget accepts it. */
function follow(host, model, definition) {
  const wanted = addressed(host);
  for (const name of Object.keys(model.get("_start"))) {
    if (name in wanted && definition.accepts(name, wanted[name]))
      model.set(name, wanted[name]);
  }
}

/** Replace the static picture by the living widget. */
export async function hydrate(host) {
  if (alive.has(host)) return;
  const stop = new AbortController();
  const entry = { cleanups: [], stop };
  alive.set(host, entry);
  const element = document.createElement("div");
  try {
    const name = host.dataset.widget;
    if (!/^[a-z][a-z0-9_]*$/.test(name)) throw new Error(`no widget is called ${name}`);
    const { default: definition } = await import(new URL(`${name}.js`, folder).href);
    if (stop.signal.aborted) return; // Disposed while the module was on its way.
    const model = new Model(JSON.parse(host.dataset.state), (self) =>
      addressOf(host, self),
    );
    follow(host, model, definition);
    host.append(element);
    const cleanup = await definition.render({ model, el: element, signal: stop.signal });
    if (stop.signal.aborted) {
      await cleanup?.(); // Disposed while it was rendered.
      element.remove();
      return;
    }
    Object.assign(entry, {
      model,
      definition,
      element,
      cleanups: cleanup ? [cleanup] : [],
    });
    host.querySelector("figure").hidden = true;
    host.dataset.hydrated = "1";
  } catch (error) {
    element.remove();
    alive.delete(host);
    host.dataset.hydrated = "error";
    console.error("A widget stays a picture:", error);
  }
}

/** End the living widget and show the static picture again. */
export async function dispose(host) {
  const entry = alive.get(host);
  if (!entry) return;
  alive.delete(host);
  entry.stop.abort();
  for (const cleanup of entry.cleanups) await cleanup();
  entry.element?.remove();
  host.querySelector("figure").hidden = false;
  delete host.dataset.hydrated;
}

/** The model behind a living widget. */
export const modelOf = (host) => alive.get(host)?.model;

const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      hydrate(target);
    }
  },
  { rootMargin: "400px" },
);
for (const host of hosts()) near.observe(host);

async function goToAddressed() {
  const host = hosts().find((one) => Object.keys(addressed(one)).length);
  if (!host) return;
  await hydrate(host);
  const entry = alive.get(host);
  if (entry?.model) follow(host, entry.model, entry.definition);
  host.scrollIntoView({ block: "nearest" });
}
addEventListener("hashchange", goToAddressed);
goToAddressed();
