// One Python for a page, in a worker. The page starts it from a blob, so that the page's
// policy holds in here too.
//
// In:  {start: {pyodide, page}} once, then {run: {cell, source, space, quiet, work}}
// Out: {state: "python" | "packages" | "plots" | "running"}, {shown: {kind, about}},
//      {done: {ok, work}}, {failed: {why, what}}: this Python is of no more use
"use strict";

let folder; // where Pyodide lies
let python; // resolves to Pyodide and the functions of page.py

class Trouble extends Error {
  constructor(why, what) {
    super(what);
    this.why = why;
  }
}

/** Load packages; Pyodide uses none whose hash is not that of the lock. */
async function load(pyodide, names) {
  const quiet = { messageCallback() {}, errorCallback() {} };
  await pyodide.loadPackage(names, quiet).catch(() => {});
  if (names.every((name) => name in pyodide.loadedPackages)) return;
  const { packages } = await (await fetch(`${folder}page-lock.json`)).json();
  for (const { name, file_name: file, sha256 } of Object.values(packages))
    if (!(name in pyodide.loadedPackages) && (await isAltered(file, sha256)))
      throw new Trouble("altered", file);
  throw new Trouble("load", names.join(", "));
}

/** Say whether a file can be had, but is not the one that the lock means. */
async function isAltered(file, sha256) {
  const answer = await fetch(`${folder}${file}`).catch(() => null);
  if (!answer?.ok) return false;
  const digest = await crypto.subtle.digest("SHA-256", await answer.arrayBuffer());
  const bytes = [...new Uint8Array(digest)];
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("") !== sha256;
}

async function start({ pyodide: address, page }) {
  folder = address;
  postMessage({ state: "python" });
  importScripts(`${folder}pyodide.js`);
  const lockFileURL = `${folder}page-lock.json`;
  const pyodide = await self.loadPyodide({ indexURL: folder, lockFileURL });
  // A cell in which Pyodide breaks down or exits never comes to its end by itself.
  pyodide._api.on_fatal = (error) => postMessage({ failed: { what: String(error) } });
  postMessage({ state: "packages" });
  await load(pyodide, ["numpy", "traitlets", "attnbook"]);
  const space = pyodide.toPy({ __name__: "page", __file__: "page.py" });
  await pyodide.runPythonAsync(page, { globals: space, filename: "page.py" });
  const named = (name) => space.get(name);
  named("prepare")((kind, about) =>
    postMessage({ shown: { kind, about: JSON.parse(about) } }),
  );
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
    postMessage({ failed: { why: error.why, what: error.message || String(error) } });
  }
};
