// One Python for a page, in a worker. The page starts it from a blob, so that the page's
// policy holds in here too.
//
// In:  {start: {pyodide, page}} once, then {run: {cell, source, space, quiet, work}}
// Out: {state: "python" | "packages" | "plots" | "running"}, {shown: {kind, about}},
//      {done: {ok, work}}, {failed: what}: this Python is of no more use
"use strict";

let python; // resolves to Pyodide and the functions of page.py

/** Load packages, each checked by its hash in the lock; say which could not be. */
async function load(pyodide, names) {
  const complaints = [];
  try {
    await pyodide.loadPackage(names, {
      messageCallback() {},
      errorCallback: (line) => complaints.push(line),
    });
  } catch (error) {
    complaints.push(String(error.message ?? error));
  }
  const missing = names.filter((name) => !(name in pyodide.loadedPackages));
  if (missing.length)
    throw new Error([missing.join(", "), ...complaints.map((c) => c.trim())].join(": "));
}

async function start({ pyodide: address, page }) {
  postMessage({ state: "python" });
  importScripts(`${address}pyodide.js`);
  const pyodide = await self.loadPyodide({ 
    indexURL: address,
    lockFileURL: `${address}page-lock.json`,
  });
  postMessage({ state: "packages" });
  await load(pyodide, ["numpy", "traitlets", "attnbook"]);
  const space = pyodide.toPy({ __name__: "page", __file__: "page.py" });
  await pyodide.runPythonAsync(page, { globals: space, filename: "page.py" });
  const named = (name) => space.get(name);
  named("prepare")((kind, about) => postMessage({ shown: { kind, about: JSON.parse(about) } }));
  return { pyodide, named };
}

async function run({ cell, source, space, quiet, work }) {
  const { pyodide, named } = await python;
  if (named("draws")(source)) {
    postMessage({ state: "plots" });
    await load(pyodide, ["matplotlib"]);
    named("draw")();
  }
  if (work) named("put_work")(work);
  postMessage({ state: "running" });
  const ok = await named("run")(cell, source, space, quiet);
  postMessage({ done: { ok, work: named("get_work")() } });
}

self.onmessage = async ({ data }) => {
  try {
    if (data.start) await (python = start(data.start));
    else await run(data.run);
  } catch (error) {
    console.error(error);
    postMessage({ failed: error.message || String(error) });
  }
};
