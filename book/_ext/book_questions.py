"""Questions that are answered first: the ``{question}`` directive.

The reader commits to an answer; then the reason unfolds why it is right, or why
it is tempting and wrong. Choosing and unfolding need no script; a script only
keeps the choices and counts. The body lists the answers, the right one ticked,
each with its reason below it::

    ```{question} What sums to 1?
    :name: what-sums-to-1
    - [x] Each row.
      A row belongs to one query.
    - [ ] Each column.
      Then popular keys could get no more than others.
    ```
"""

import re
from html import escape

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from attnbook.language import catalogue

_OPTION = re.compile(r"- \[(?P<tick>[ x])\] (?P<text>.*)")


class question(nodes.General, nodes.Element):
    """One question; its first child is the question's text."""


class answer(nodes.General, nodes.Element):
    """One answer: its text, then its reason."""


class reason(nodes.General, nodes.Element):
    """Why an answer is right or wrong."""


class tally(nodes.General, nodes.Element):
    """Where the script counts; empty and hidden without it."""


class Tally(SphinxDirective):
    """``{question-tally}``: how many of the page's questions have been answered."""

    def run(self) -> list[nodes.Node]:
        return [tally()]


class Question(SphinxDirective):
    """``{question} text``, with a list of answers and reasons as its body."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {"name": directives.unchanged_required}  # noqa: RUF012 (docutils' way)

    def _parse(self, lines: list[str]) -> list[nodes.Node]:
        holder = nodes.container()
        source = self.state_machine.document["source"]
        self.state.nested_parse(StringList(lines, source), self.content_offset, holder)
        return holder.children

    def _line(self, text: str) -> list[nodes.Node]:
        (paragraph,) = self._parse([text])
        return paragraph.children

    def run(self) -> list[nodes.Node]:
        if "name" not in self.options:
            raise self.error("question: it needs a :name:")
        answers = []
        for line in self.content:
            if start := _OPTION.match(line):
                answers.append((start["tick"] == "x", [start["text"]], []))
            elif not answers:
                raise self.error(f"question: an answer is needed, not {line!r}")
            else:
                answers[-1][2].append(line.removeprefix("  "))
        if len(answers) < 3 or sum(right for right, _, _ in answers) != 1:
            raise self.error("question: three answers or more, one of them right")
        node = question(name=self.options["name"])
        node += nodes.inline("", "", *self._line(self.arguments[0]))
        for right, (text,), lines in answers:
            if not any(lines):
                raise self.error(f"question: the answer {text!r} needs its reason")
            one = answer(right=right)
            one += nodes.inline("", "", *self._line(text))
            one += reason("", *self._parse(lines), right=right)
            node += one
        return [node]


def _strings(translator) -> dict[str, str]:
    return catalogue(translator.builder.config.book_language)


def _visit_question(translator, node: question) -> None:
    name = escape(node["name"])
    translator.question = name
    translator.answer = 0
    translator.body.append(
        f'<fieldset class="book-question" id="{name}" data-question="{name}"><legend>'
    )


def _depart_question(translator, node: question) -> None:
    show = escape(_strings(translator)["page.question_all"])
    translator.body.append(
        '<label class="book-reasons"><input type="checkbox" class="book-show"/> '
        f"{show}</label></fieldset>\n"
    )


def _visit_answer(translator, node: answer) -> None:
    if translator.answer == 0:
        translator.body.append("</legend>\n")
    translator.answer += 1
    name = f"{translator.question}-{translator.answer}"
    right = " data-right" if node["right"] else ""
    translator.body.append(
        f'<div class="book-answer"{right}><input type="radio" id="{name}" '
        f'name="{translator.question}" autocomplete="off"/><label for="{name}">'
    )


def _depart_answer(translator, node: answer) -> None:
    translator.body.append("</div>\n")


def _visit_reason(translator, node: reason) -> None:
    word = "page.question_right" if node["right"] else "page.question_wrong"
    verdict = escape(_strings(translator)[word])
    translator.body.append(
        '</label><div role="status"><div class="book-reason">'
        f'<p class="book-verdict">{verdict}</p>'
    )


def _depart_reason(translator, node: reason) -> None:
    translator.body.append("</div></div>")


def _visit_tally(translator, node: tally) -> None:
    strings = _strings(translator)
    translator.body.append(
        '<div class="book-tally" role="status" hidden '
        f'data-tally="{escape(strings["page.questions_tally"])}" '
        f'data-again="{escape(strings["page.questions_again"])}">'
    )


def _depart_tally(translator, node: tally) -> None:
    translator.body.append("</div>\n")


def _needs_script(app, pagename, templatename, context, doctree) -> None:
    context["has_questions"] = doctree is not None and any(doctree.findall(question))


def setup(app):
    app.add_node(question, html=(_visit_question, _depart_question))
    app.add_node(answer, html=(_visit_answer, _depart_answer))
    app.add_node(reason, html=(_visit_reason, _depart_reason))
    app.add_node(tally, html=(_visit_tally, _depart_tally))
    app.add_directive("question", Question)
    app.add_directive("question-tally", Tally)
    app.connect("html-page-context", _needs_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
