"""Colours can be read and told apart: contrast as WCAG 2.2 asks of text, and ramps that go one way only."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from app.kit import theme


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("colour", ["ink", "mute", "query", "key", "proof"])
@pytest.mark.parametrize("ground", ["background", "panel"])
def test_text_reaches_aa(name: str, colour: str, ground: str):
    palette = theme.PALETTES[name]
    assert contrast(palette[colour], palette[ground]) >= 4.5


@pytest.mark.parametrize("name", ["light", "dark"])
def test_black_or_white_can_be_read_on_every_stop(name: str):
    for stop in theme.PALETTES[name]["ramp"]:
        assert max(contrast(stop, "#000000"), contrast(stop, "#ffffff")) >= 4.5


@pytest.mark.parametrize("name", ["light", "dark"])
def test_more_weight_is_further_from_the_page(name: str):
    palette = theme.PALETTES[name]
    away = [contrast(stop, palette["background"]) for stop in palette["ramp"]]
    assert away == sorted(away)
    assert away[-1] > 7


def test_the_page_of_streamlit_is_the_page_of_the_components():
    config = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]
    for name, palette in theme.PALETTES.items():
        assert config[name]["backgroundColor"] == palette["background"]
        assert config[name]["textColor"] == palette["ink"]
        assert config[name]["borderColor"] == palette["line"]


SCALE = {"0.82rem", "1rem", "1em", "1.36rem", "1.36em"}  # small, text, large
PROJECTED = {"0.7em", "1em", "1.36em", "1.7em"}  # of a root that grows with the window
FITTED = {"1.5em", "0.6em"}  # the sentence, and what stands in its line
APP = Path(theme.__file__).parents[1]
STYLES = [
    *sorted(APP.glob("attention/browser/*.css")),
    *sorted(APP.glob("rooms/*/browser/*.css")),
    *sorted(APP.glob("kit/browser/*.css")),
]
SIZE = re.compile(r"(?:font-size:|font:(?! inherit))\s*([^;\s]+)")


@pytest.mark.parametrize("style", STYLES, ids=[style.stem for style in STYLES])
def test_rooms_have_one_scale_of_type(style: Path):
    """Three sizes, two more in a projector; only the sentence and what stands in its line are fitted."""
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", style.read_text(encoding="utf-8"))
    found = [(where.strip(), size) for where, body in rules for size in SIZE.findall(body)]
    assert found
    for where, size in found:
        allowed = set(SCALE)
        if ".projector" in where or "data-projector" in where or ".clicker" in where:
            allowed |= PROJECTED
        if re.search(r"\.strip|\bsu[bp]\b", where):
            allowed |= FITTED
        assert size in allowed, f"{where} is {size}"
