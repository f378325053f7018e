"""The figure of costs draws what the package counts, and is current."""

import importlib.util
import re
import sys

import pytest
from conftest import ROOT

from attnbook import cost

FIGURES = ROOT / "figures"


@pytest.fixture
def figure(monkeypatch):
    monkeypatch.syspath_prepend(str(FIGURES))
    spec = importlib.util.spec_from_file_location("costs", FIGURES / "07_costs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("drawing")


@pytest.mark.parametrize("theme", ["", ".dark"])
def test_the_committed_files_are_what_the_script_draws(
    figure, monkeypatch, tmp_path, theme
):
    monkeypatch.setattr(sys.modules["drawing"], "HERE", tmp_path)
    figure.write(figure.__file__, figure.WIDE, figure.HIGH, figure.draw)
    name = f"07_costs{theme}.svg"
    assert (tmp_path / name).read_text("utf-8") == (FIGURES / name).read_text("utf-8")


def test_the_numbers_are_those_of_the_package(figure):
    svg = (FIGURES / "07_costs.svg").read_text("utf-8")
    drawn = re.findall(r">([^<]+)</text>", svg)
    model = cost.CONFIGS["Qwen2-7B"]
    assert f"{model.kv_cache_bytes(1) / 1024:.0f} KiB a token" in drawn
    assert f"{model.kv_cache_bytes(model.context) / 2**30:.1f} GiB each time" in drawn
    matrix = model.heads * model.context**2 * 2
    assert f"{matrix / 2**30:.0f} GiB in one layer" in drawn
    assert any(f"{model.level_keys():,} keys" in words for words in drawn)
    for keys in figure.KEYS:
        shares = figure.shares(keys)
        assert sum(shares.values()) == pytest.approx(1)
        assert (shares["scores"] > 0.5) == (keys >= model.level_keys())
        largest = max(shares.values())
        assert f"{largest:.0%}" in drawn
