"""The self-test: the reader answers first, then the reason unfolds."""

import pytest
from bs4 import BeautifulSoup
from conftest import AXE


@pytest.fixture
def address(site_url):
    return f"{site_url}/en/self_test.html"


@pytest.fixture
def page(address, visit):
    return visit(address).page


def answers(page, name):
    return page.locator(f"#{name} .book-answer")


def shown(page, name):
    return [a.locator(".book-reason").is_visible() for a in answers(page, name).all()]


def test_there_are_enough_questions_and_each_answer_has_a_reason(site):
    soup = BeautifulSoup((site / "en/self_test.html").read_text("utf-8"), "html.parser")
    questions = soup.select(".book-question")
    assert len(questions) >= 25
    for question in questions:
        found = question.select(".book-answer")
        assert len(found) >= 3
        assert sum(answer.has_attr("data-right") for answer in found) == 1
        for answer in found:
            reason = answer.select_one(".book-reason").get_text(" ", strip=True)
            assert len(reason.split()) > 6, reason
    names = [question["id"] for question in questions]
    assert len(set(names)) == len(names)
    assert {"decoder-only", "quadratic"} <= set(names)


def test_the_right_answer_has_no_favourite_place(site):
    soup = BeautifulSoup((site / "en/self_test.html").read_text("utf-8"), "html.parser")
    places = [
        [a.has_attr("data-right") for a in question.select(".book-answer")].index(True)
        for question in soup.select(".book-question")
    ]
    assert all(places.count(place) >= len(places) / 6 for place in (0, 1, 2))


def test_nothing_is_told_before_an_answer_is_chosen(page):
    assert shown(page, "rows") == [False] * 4
    assert not page.locator("#rows .book-reasons").is_visible()


def test_choosing_unfolds_the_reason_of_that_answer(page):
    page.click("#rows-1")
    assert shown(page, "rows") == [True, False, False, False]
    assert "No." in answers(page, "rows").nth(0).inner_text()
    page.click("label[for=rows-2]")
    assert shown(page, "rows") == [False, True, False, False]
    assert "Right." in answers(page, "rows").nth(1).inner_text()
    page.click("#rows .book-reasons")
    assert shown(page, "rows") == [True] * 4


def test_the_first_choice_is_what_counts(page):
    page.click("#rows-1")
    page.click("#rows-2")
    page.click("#distance-2")
    text = page.locator(".book-tally span").inner_text()
    assert text.startswith("2 of ")
    assert "1 right at the first choice" in text


def test_choices_survive_a_reload_until_the_reader_starts_again(page):
    page.click("#rows-2")
    page.reload()
    assert shown(page, "rows") == [False, True, False, False]
    page.click(".book-tally button")
    assert not any(shown(page, "rows"))
    page.reload()
    assert not any(shown(page, "rows"))
    assert not page.locator(".book-tally").is_visible()


def test_what_is_kept_may_be_damaged(page):
    page.click("#rows-2")
    page.evaluate("localStorage.setItem('attnbook.questions.en', '{\"rows\": 3, x')")
    page.reload()
    page.click("#rows-1")
    assert shown(page, "rows") == [True, False, False, False]


def test_it_works_from_the_keyboard(page):
    page.focus("#rows-1")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    assert shown(page, "rows") == [False, True, False, False]


def test_it_works_without_a_script(address, visit):
    page = visit(address, java_script_enabled=False).page
    page.click("label[for=rows-1]")
    assert shown(page, "rows") == [True, False, False, False]


def test_paper_shows_everything(page):
    page.emulate_media(media="print")
    assert shown(page, "rows") == [True] * 4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_unfolded_page_has_no_axe_violation(address, visit, theme):
    page = visit(address, color_scheme=theme, bypass_csp=True).page
    for choice in page.locator(".book-question input[type=radio]").all():
        choice.evaluate("input => input.click()")
    for choice in page.locator(".book-show").all():
        choice.evaluate("input => input.click()")
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ] == []
