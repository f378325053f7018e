"""The glossary: every term has its Chinese name, its meaning, and its place."""

import re

import pytest
from bs4 import BeautifulSoup


@pytest.fixture(scope="module")
def soup(site):
    return BeautifulSoup((site / "en/glossary.html").read_text("utf-8"), "html.parser")


@pytest.fixture(scope="module")
def terms(soup):
    return soup.select("article section section section")


def test_every_term_has_a_chinese_name_that_says_its_language(terms):
    assert len(terms) > 50
    for term in terms:
        name = term.select_one("[lang=zh]")
        assert name is not None, term["id"]
        assert re.search(r"[\u4e00-\u9fff]|softmax", name.get_text()), term["id"]


def test_every_term_leads_to_the_place_that_introduces_it(site, terms):
    for term in terms:
        page, _, anchor = term.select_one(".book-introduced a")["href"].partition("#")
        target = BeautifulSoup((site / "en" / page).read_text("utf-8"), "html.parser")
        section = target.find(id=anchor)
        links = [a["href"] for a in section.select("a[href^='glossary.html#']")]
        assert f"glossary.html#{term['id']}" in links, term["id"]


def test_the_list_of_terms_is_complete_and_in_order(soup, terms):
    listed = [a["href"].removeprefix("#") for a in soup.select(".book-terms a")]
    assert sorted(listed) == sorted(term["id"] for term in terms)
    names = [a.get_text().casefold() for a in soup.select(".book-terms a")]
    assert names == sorted(names)


def test_score_and_weight_are_never_exchanged(soup):
    weight = soup.find(id="weight").get_text()
    score = soup.find(id="score").get_text()
    assert "权重" in weight
    assert "分数" in score
    assert "softmax gives" in weight
    assert "softmax take" in score
