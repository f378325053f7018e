// CodeMirror for a cell. Tab indents; Escape leaves, so that nobody is caught in it.
import { indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Prec } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { minimalSetup } from "codemirror";

/** Put an editor into `parent`; returns {focus, text(), replace(text), remove()}. */
export function edit(parent, text, { label, change, run, leave }) {
  const on = (act) => () => (act(), true);
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      Prec.highest(
        keymap.of([
          { key: "Shift-Enter", run: on(run) },
          { key: "Mod-Enter", run: on(run) },
          { key: "Escape", run: on(leave) },
        ]),
      ),
      minimalSetup,
      syntaxHighlighting(classHighlighter),
      lineNumbers(),
      EditorView.lineWrapping,
      keymap.of([indentWithTab]),
      indentUnit.of("    "),
      python(),
      EditorView.contentAttributes.of({ "aria-label": label }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) change(update.state.doc.toString());
      }),
    ],
  });
  return {
    focus: () => view.focus(),
    replace: (insert) =>
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert } }),
  };
}
