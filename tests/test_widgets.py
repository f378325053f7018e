"""The widgets' Python side: what they write, and what they refuse."""

import base64
import html
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from traitlets import TraitError

from attnbook.language import catalogue
from attnbook.ops import scaled_dot_product_attention
from attnbook.widgets import (
    WIDGETS,
    AttentionInThreeSteps,
    ScalingAndSaturation,
    static_files,
)

every_widget = pytest.mark.parametrize("make", WIDGETS.values(), ids=WIDGETS)


def bundle(widget):
    data, _ = widget._repr_mimebundle_()
    return data


def picture(widget) -> str:
    encoded = re.search(r"data:image/svg\+xml;base64,([^\"]+)", widget.to_html())[1]
    return base64.b64decode(encoded).decode()


@every_widget
def test_the_same_state_gives_the_same_output(make):
    one, two = bundle(make()), bundle(make())
    for kind in ("text/plain", "text/html"):
        assert one[kind] == two[kind]
    assert "application/vnd.jupyter.widget-view+json" in one


@every_widget
def test_text_holds_the_state_and_no_memory_address(make):
    plain = bundle(make())["text/plain"]
    assert plain == repr(make())
    assert plain.startswith(f"{make.__name__}(")
    assert "0x" not in plain
    assert eval(plain, {make.__name__: make}).to_html() == make().to_html()


@every_widget
def test_html_carries_the_state_and_a_described_picture(make):
    closed = re.sub(r"(<img [^>]*)>", r"\1/>", make().to_html())
    root = ElementTree.fromstring(closed)
    assert root.get("data-widget") == make.name
    assert json.loads(root.get("data-state")) == make()._state()
    image = root.find("figure/img")
    assert len(image.get("alt")) > 60
    assert root.find("figure/figcaption").text == image.get("alt")
    assert root.get("data-widget-id") is None
    assert 'data-widget-id="landing"' in make().to_html("landing")
    with pytest.raises(ValueError, match="widget_id is 'a b'"):
        make().to_html("a b")


@every_widget
def test_picture_is_opaque_with_rounded_numbers(make):
    tree = ElementTree.fromstring(picture(make()))
    background = next(iter(tree))
    assert background.tag.endswith("rect")
    assert [background.get(n) for n in ("width", "height")] == (
        tree.get("viewBox").split()[2:]
    )
    assert not re.search(r"\d\.\d{4}", picture(make()))


@every_widget
def test_nothing_has_a_fixed_id(make):
    texts = [make().to_html(), picture(make()), static_files("en")[f"{make.name}.js"]]
    for text in texts:
        assert not re.search(r"\bid=[\"']|[\"{ ]id: |\.id = |getElementById", text)


@every_widget
def test_pages_get_the_very_module_that_live_notebooks_get(make):
    widget = make()
    files = static_files("en")
    assert files[f"{make.name}.js"] == widget._esm
    assert files["widgets.css"] == widget._css
    assert "import " not in re.sub(r"//.*|/\*[\s\S]*?\*/", "", widget._esm)


def test_every_class_in_the_style_sheet_is_written_out_in_a_module():
    # The site's build drops rules for names that no page and no module holds.
    files = static_files("en")
    modules = "".join(files[f"{name}.js"] for name in WIDGETS)
    used = set(re.findall(r"[\w-]+", modules + AttentionInThreeSteps().to_html()))
    styled = set(re.findall(r"\.(attn-[\w-]+)", files["widgets.css"]))
    assert len(styled) > 40
    assert styled <= used


def test_static_files_are_the_modules_the_style_and_the_loader():
    names = {*(f"{name}.js" for name in WIDGETS), "widgets.css", "loader.js"}
    for make in WIDGETS.values():
        names |= make.files().keys()
    assert static_files("en").keys() == names
    with pytest.raises(ValueError, match=r"language is 'tlh'; there are .* en"):
        static_files("tlh")


@every_widget
def test_modules_hold_their_own_strings_and_the_shared_ones_only(make):
    text = static_files("en")[f"{make.name}.js"]
    held = json.loads(
        re.search(r"^const CATALOGUE = (\{$.*?^\});", text, re.S | re.M)[1]
    )
    wanted = ("widget.common.", f"widget.{make.name}.")
    assert held == {i: s for i, s in catalogue("en").items() if i.startswith(wanted)}


@every_widget
def test_strings_asked_for_by_name_exist(make):
    text = static_files("en")[f"{make.name}.js"]
    asked = set(re.findall(r'say\("([\w.]+)"', text))
    asked |= {f"widget.{make.name}.{i}" for i in re.findall(r'mine\("([\w.]+)"', text)}
    assert asked
    assert asked <= catalogue("en").keys()


@every_widget
def test_unknown_arguments_are_refused_by_name(make):
    with pytest.raises(TypeError, match=r"colour is not an argument of .*; it takes"):
        make(colour="red")


@pytest.mark.parametrize(
    ("make", "state", "message"),
    [
        (AttentionInThreeSteps, {"context": "car"}, "context is 'car'.*'fruit'"),
        (AttentionInThreeSteps, {"asker": 4}, "asker is 4; it must be 0 to 3"),
        (AttentionInThreeSteps, {"step": 0}, "step is 0; it must be 1, 2 or 3"),
        (AttentionInThreeSteps, {"fruit": [[1, 2]]}, r"fruit has shape \(1, 2\)"),
        (AttentionInThreeSteps, {"company": [["a", 0]] * 4}, "company is .*numbers"),
        (AttentionInThreeSteps, {"fruit": [[9, 0]] * 4}, "fruit is .*within ±3"),
        (AttentionInThreeSteps, {"fruit": [[np.nan, 0]] * 4}, "fruit is .*within ±3"),
        (
            AttentionInThreeSteps,
            {"fruit": "pie"},
            "fruit is .'pie'.; it must be four pairs",
        ),
        (ScalingAndSaturation, {"d": 0}, "d is 0; it must be 1 to 1024"),
        (ScalingAndSaturation, {"d": 1025}, "d is 1025; it must be 1 to 1024"),
        (ScalingAndSaturation, {"d": 1.5}, "'d' trait .* 1.5"),
        (ScalingAndSaturation, {"seed": -1}, "seed is -1; it must be 0 to 4294967295"),
        (ScalingAndSaturation, {"scaled": "yes"}, "'scaled' trait .* 'yes'"),
    ],
)
def test_values_that_do_not_fit_are_refused(make, state, message):
    with pytest.raises(TraitError, match=message):
        make(**state)
    widget = make()
    before = repr(widget)
    ((name, value),) = state.items()
    with pytest.raises(TraitError, match=message):
        setattr(widget, name, value)
    assert repr(widget) == before


def test_word_vectors_are_kept_to_one_decimal_without_minus_zero():
    widget = AttentionInThreeSteps(fruit=[[0.30000000000000004, -0.01]] * 4)
    assert repr(widget.fruit) == repr([[0.3, 0.0]] * 4)


def test_a_widget_is_independent_of_others_of_its_kind():
    one, two = AttentionInThreeSteps(), AttentionInThreeSteps(context="company")
    one.fruit = [[3, 3]] * 4
    assert two.fruit == AttentionInThreeSteps().fruit != one.fruit
    assert two._start["context"] == "company"
    assert one._start == AttentionInThreeSteps()._state()


def test_the_picture_of_three_steps_shows_what_ops_computes():
    x = np.array([[2.0, 0.0], [1.0, 1.0], [3.0, 0.0], [0.0, 0.0]])
    v = x @ np.array([[1.0, -1.0], [-1.0, 1.0]])
    output = scaled_dot_product_attention(2 * x[1:2], x, v)[0]
    shown = html.unescape(picture(AttentionInThreeSteps()))
    assert f"({output[0]:.2f}, −{-output[1]:.2f})" in shown
    assert output[0] > 2  # pulled towards fruit
    shown = html.unescape(picture(AttentionInThreeSteps(context="company")))
    assert f"(−{output[0]:.2f}, {-output[1]:.2f})" in shown


def test_the_sample_has_the_variance_of_theory():
    for d in (1, 64, 1024):
        variance = ScalingAndSaturation(d=d)._products().var()
        # Six standard errors; at d = 1 the fourth moment is 9, not 3.
        assert abs(variance / d - 1) < 6 * np.sqrt((2 + 6 / d) / 4096)
        scaled = ScalingAndSaturation(d=d, scaled=True)._products().var()
        assert np.isclose(scaled, variance / d)
