"""Colours can be read and told apart: contrast as WCAG 2.2 asks of text, and ramps that go one way only."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal

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
def test_text_reaches_aa(
    name: str, colour: Literal["ink", "mute", "query", "key", "proof"], ground: Literal["background", "panel"]
):
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


def test_the_charts_of_streamlit_have_the_ramp_of_the_maps():
    config = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]
    for name, palette in theme.PALETTES.items():
        colours = config[name]["chartSequentialColors"]
        assert (colours[0], colours[-1]) == (palette["ramp"][0], palette["ramp"][-1])
        away = [contrast(colour, palette["background"]) for colour in colours]
        assert away == sorted(away)


def test_both_sides_of_a_sign_begin_alike_and_are_blue_and_purple():
    for palette in theme.PALETTES.values():
        assert palette["ramp"][0] == palette["ahead"][0]
        for more, less in zip(palette["ramp"][1:4], palette["ahead"][1:4], strict=True):
            (r, g, b), (red, green, blue) = ([int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (more, less))
            assert r < g < b, f"{more} is blue"
            assert green < red and green < blue, f"{less} is purple"


# Colours that stand outside of kit/theme.py: in which files, which, and why. "core" knows no screen, so it has copies of its own,
# which the test below holds to the palette.
ELSEWHERE = {
    "app/attention/browser/attention.css": ({"#000"}, "a mask: what is opaque stays"),
    "app/attention/browser/export.js": ({"#ffffff"}, "paper is white"),
    "app/kit/browser/colours.js": ({"#000000", "#ffffff"}, "what is read on a colour"),
    "app/classroom/browser/classroom.css": ({"#fff"}, "a square for phones is read on white"),
    "app/classroom/square.py": ({"#000", "#fff"}, "a square for phones is black on white"),
    "core/read/report.html": ({"of the palette"}, "core knows no screen"),
    "core/read/report.py": ({"of the palette"}, "core knows no screen"),
    "core/run/trace_record.py": ({"of the palette"}, "core knows no screen"),
}
HEX = re.compile(r"(?<![\w&/])#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})(?![\w-])")
ROOT = Path(__file__).parents[2]


def of_palettes() -> set[str]:
    """Every colour of both palettes."""
    return set(re.findall(r"#[0-9a-f]{6}", str(theme.PALETTES)))


def test_colours_are_in_theme_alone():
    assert HEX.findall("a{color:#fff;border:1px solid #2f74b5}") == ["#fff", "#2f74b5"] and not HEX.findall(
        "x#y #abcdefg"
    )
    found: dict[str, set[str]] = {}
    for path in (file for folder in ("app", "core") for file in (ROOT / folder).rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in {".js", ".css", ".py", ".html"} and name != "app/kit/theme.py":
            colours = {colour.lower() for colour in HEX.findall(path.read_text(encoding="utf-8"))}
            if colours:
                found[name] = colours
    for name, colours in found.items():
        allowed, _ = ELSEWHERE.get(name, (set(), ""))
        left = colours - (of_palettes() if allowed == {"of the palette"} else allowed)
        assert not left, (
            f"{name} has {sorted(left)}: a colour belongs in app/kit/theme.py, which styles get as variables"
        )
    assert found.keys() == ELSEWHERE.keys(), "a file that has no colour any more needs no reason"


def test_the_report_of_core_has_the_palette():
    text = (ROOT / "core" / "read" / "report.html").read_text(encoding="utf-8")
    named: dict[str, str] = {"bg": "background", "q": "query", "k": "key"}
    blocks = re.findall(r":root\{([^}]*)\}", text)
    assert len(blocks) == 2
    for block, palette in zip(blocks, theme.PALETTES.values(), strict=True):
        for found in re.finditer(r"--(\w+):(#\w+)", block):
            name, colour = str(found[1]), str(found[2])
            is_stop = re.fullmatch(r"s\d", name)
            wanted = palette["ramp"][int(name[1])] if is_stop else dict(palette)[named.get(name, name)]
            assert colour == wanted, name


SCALE = {"0.82rem", "1rem", "1em", "1.36rem", "1.36em"}  # small, text, large
PROJECTED = {"0.7em", "1em", "1.36em", "1.7em"}  # of a root that grows with the window
COLUMN = "1.22rem"  # of a sentence beside its picture
FITTED = {"1.5em", "0.6em"}  # the sentence, and what stands in its line
APP = Path(theme.__file__).parents[1]
STYLES = [
    *sorted(APP.glob("attention/browser/*.css")),
    *sorted(APP.glob("rooms/*/browser/*.css")),
    *sorted(path for path in APP.glob("kit/browser/*.css") if path.stem != "axes"),  # which has colours alone
]
SIZE = re.compile(r"(?:font-size:|font:(?! inherit))\s*([^;\s]+)")


@pytest.mark.parametrize("style", STYLES, ids=[style.stem for style in STYLES])
def test_rooms_have_one_scale_of_type(style: Path):
    """Three sizes, two more in a projector; only the sentence and what stands in its line are fitted, also to a column."""
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", style.read_text(encoding="utf-8"))
    found = [(where.strip(), size) for where, body in rules for size in SIZE.findall(body)]
    assert found
    for where, size in found:
        allowed = set(SCALE)
        if ".projector" in where or "data-projector" in where or ".clicker" in where:
            allowed |= PROJECTED
        if re.search(r"\.strip|\bsu[bp]\b", where):
            allowed |= FITTED
        if where.endswith(".fact"):
            allowed.add(COLUMN)
        assert size in allowed, f"{where} is {size}"
