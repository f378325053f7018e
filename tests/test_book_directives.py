"""The book's own directives: what they build, and what they refuse."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from conftest import ROOT

CONFIGURATION = """
myst_enable_extensions = ["attrs_inline"]
extensions = ["myst_parser", "book_questions", "book_glossary"]
root_doc = "index"
myst_heading_anchors = 3
html_theme = "basic"


def setup(app):
    app.add_config_value("book_language", "en", "env")
"""
ANSWERS = """\
- [ ] Columns.
  No column belongs to a query.
- [x] Rows.
  One query each.
- [ ] All of it.
  Then longer texts would look less.
"""


def build(folder: Path, **pages: str) -> tuple[str, Path]:
    """Build a book of these pages; return what was complained about, and the pages."""
    (folder / "conf.py").write_text(CONFIGURATION, "utf-8")
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-n", str(folder), str(folder / "out")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "book" / "_ext")},
        capture_output=True,
        text=True,
    )
    return done.stderr, folder / "out"


def question(answers: str, name: str = ":name: sums\n") -> str:
    return f"# Test\n\n```{{question}} What sums to 1?\n{name}{answers}```\n"


def test_a_question_becomes_choices_with_reasons(tmp_path):
    complaints, pages = build(tmp_path, index=question(ANSWERS))
    assert complaints == ""
    soup = BeautifulSoup((pages / "index.html").read_text("utf-8"), "html.parser")
    field = soup.select_one("fieldset#sums")
    assert field.legend.get_text(strip=True) == "What sums to 1?"
    labels = [
        label.get_text(strip=True) for label in field.select(".book-answer > label")
    ]
    assert labels == ["Columns.", "Rows.", "All of it."]
    right = field.select_one("[data-right]")
    assert right.input["name"] == "sums"
    assert "One query each." in right.select_one(".book-reason").get_text()


@pytest.mark.parametrize(
    ("answers", "name", "complaint"),
    [
        (ANSWERS, "", "needs a :name:"),
        (ANSWERS.replace("[x]", "[ ]"), ":name: sums\n", "one of them right"),
        (ANSWERS.replace("[ ]", "[x]"), ":name: sums\n", "one of them right"),
        (ANSWERS[:54], ":name: sums\n", "three answers or more"),
        (ANSWERS.replace("  One query each.\n", ""), ":name: sums\n", "its reason"),
        ("Rows.\n" + ANSWERS, ":name: sums\n", "an answer is needed, not 'Rows.'"),
    ],
    ids=["no name", "none right", "all right", "too few", "no reason", "no list"],
)
def test_a_careless_question_is_refused(tmp_path, answers, name, complaint):
    complaints, _ = build(tmp_path, index=question(answers, name))
    assert complaint in complaints


GLOSSARY = """\
# Glossary

```{term-list}
```

## Looking

### Weight
[权重]{.language-zh} What softmax gives.

### Score
[分数]{.language-zh} What softmax takes.
"""
INDEX = "# Book\n\n```{toctree}\none\ntwo\nglossary\n```\n"
TWO = "# Two\n\nSee [weights](glossary.md#weight).\n"


def test_a_term_names_the_first_place_that_introduces_it(tmp_path):
    complaints, pages = build(
        tmp_path,
        index=INDEX,
        one="# One\n\n## Matching\n\nThe [weights](glossary.md#weight) and "
        "[scores](glossary.md#score).\n",
        two=TWO,
        glossary=GLOSSARY,
    )
    assert complaints == ""
    soup = BeautifulSoup((pages / "glossary.html").read_text("utf-8"), "html.parser")
    introduced = soup.select_one("#weight .book-introduced")
    assert introduced.get_text() == "Introduced in One › Matching"
    assert introduced.a["href"] == "one.html#matching"
    assert [a["href"] for a in soup.select(".book-terms a")] == ["#score", "#weight"]


def test_a_term_that_no_page_introduces_is_reported(tmp_path):
    complaints, _ = build(
        tmp_path,
        index=INDEX,
        one="# One\n",
        two=TWO,
        glossary=GLOSSARY,
    )
    assert "no page introduces the term 'score'" in complaints
    assert "'weight'" not in complaints


def test_a_link_to_a_term_that_is_not_there_is_reported(tmp_path):
    complaints, _ = build(
        tmp_path,
        index=INDEX,
        one="# One\n\nThe [wait](glossary.md#wait).\n",
        two=TWO,
        glossary=GLOSSARY,
    )
    assert "wait" in complaints
