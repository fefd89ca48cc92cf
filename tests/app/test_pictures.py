"""A saved picture is the one that was on the screen; and in every room blue is positive, purple negative."""

from __future__ import annotations

import io
import re
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

import core
from app.rooms.train import words as train_words
from tests.app.plain import Plain

APP = "app/main.py"
SVG = "{http://www.w3.org/2000/svg}"
ANIMAL = "The animal didn't cross the street because it was too tired."
ROOT = Path(__file__).parents[2]
# The colour in the middle of each cell of a row of them, on the canvas where it is painted
ROW = """(canvas, n) => {
    const { data } = canvas.getContext("2d").getImageData(0, Math.floor(canvas.height / 2), canvas.width, 1);
    return Array.from({ length: n }, (_, i) => [...data.slice(4 * Math.floor(((i + 0.45) * canvas.width) / n)).slice(0, 3)]);
}"""


def see(plain: Plain, **said: str) -> Locator:
    return plain.open(f"?{urlencode(said)}").root


def saved(root: Locator, name: str) -> bytes:
    root.get_by_role("button", name="Export", exact=True).click()
    with root.page.expect_download() as waiting:
        root.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()
    root.page.keyboard.press("Escape")
    return waiting.value.path().read_bytes()


def channels(colour: str) -> tuple[int, int, int]:
    r, g, b = re.findall(r"\d+", colour)[:3]
    return int(r), int(g), int(b)


def fills(drawn: ElementTree.Element) -> list[tuple[int, int, int]]:
    """Of every rectangle, in the order in which they are drawn."""
    return [channels(fill) for node in drawn.iter(f"{SVG}rect") if (fill := node.get("fill", "")).startswith("rgb(")]


def texts(drawn: ElementTree.Element) -> str:
    return " ".join("".join(node.itertext()) for node in drawn.iter(f"{SVG}text"))


def holds(all_: list[tuple[int, int, int]], part: list[tuple[int, int, int]]) -> bool:
    """Whether these stand among the others, next to each other."""
    return any(all_[i : i + len(part)] == part for i in range(len(all_) - len(part) + 1))


def sign(colour: tuple[int, int, int]) -> int:
    """1 for blue, −1 for purple, 0 for what is too faint to say."""
    r, g, _ = colour
    return 0 if max(colour) - min(colour) < 12 else 1 if g > r else -1


def ground(node: Locator) -> list[str]:
    return node.evaluate_all("all => all.map((one) => getComputedStyle(one).backgroundColor)")


@pytest.mark.thorough
def test_what_if_saves_the_maps_that_are_on_the_screen(plain: Plain):
    said = {"model": "storyteller", "text": "Once upon a time there was a", "edits": "temperature_2", "pick": "off"}
    root = see(plain, view="whatif", **said)
    root.and_(plain.page.locator("[data-settled=true]")).wait_for()
    cells = root.locator(".grid svg g").first.locator("rect")
    expect(cells).to_have_count(48)
    on_screen = [channels(one) for one in cells.evaluate_all("all => all.map((one) => one.getAttribute('fill'))")]
    written = root.locator(".grid svg text").all_text_contents()
    drawn = ElementTree.fromstring(saved(root, "SVG"))
    assert holds(fills(drawn), on_screen)
    said = texts(drawn)
    assert all(one in said for one in written) and root.locator(".over").inner_text().split()[0] in said
    assert len(list(drawn.iter(f"{SVG}linearGradient"))) >= 2, "the legend has its colours"
    # three maps of the head that looks elsewhere, and bars
    for figure in root.locator(".maps figure").all():
        part = figure.locator("svg g").first.locator("rect")
        assert holds(
            fills(drawn), [channels(one) for one in part.evaluate_all("all => all.map((r) => r.getAttribute('fill'))")]
        )
    image = Image.open(io.BytesIO(saved(root, "PNG 2×"))).convert("RGB")
    assert image.size == tuple(round(2 * float(drawn.get(side, "0"))) for side in ("width", "height"))
    there = {tuple(colour) for colour in np.unique(np.asarray(image).reshape(-1, 3), axis=0).tolist()}
    assert set(on_screen) <= there
    # side by side as on the page: no part of it lies below what is not beside it
    wide, page_wide = float(drawn.get("width", "0")), root.bounding_box()
    assert page_wide and abs(wide - page_wide["width"]) < 60
    # blue is more, purple less
    for text, colour in zip(
        root.locator(".grid svg g").first.locator("text[font-weight]").all_text_contents(), on_screen, strict=True
    ):
        value = int(text.replace("−", "-"))
        assert sign(colour) * value >= 0, (text, colour)
    assert {sign(colour) for colour in on_screen} == {-1, 0, 1}
    less, more = (channels(one) for one in ground(root.locator("figcaption .legend i")))
    assert (sign(less), sign(more)) == (-1, 1)


@pytest.mark.thorough
def test_train_saves_its_letters_curves_and_maps(plain: Plain):
    root = see(plain, view="train", task="copy", twin="nomask")
    expect(root.locator(".tile canvas").nth(15)).to_be_visible()
    maps = root.locator(".map svg")
    expect(maps).to_have_count(2)
    drawn = ElementTree.fromstring(saved(root, "SVG"))
    found = fills(drawn)
    for i in range(2):  # every weight of the row and the ground of every letter that it writes
        one = maps.nth(i).locator("rect").evaluate_all("all => all.map((one) => getComputedStyle(one).fill)")
        colours = [channels(colour) for colour in one if colour != "none"]
        assert len(set(colours)) > 8 and holds(found, colours)
    images = list(drawn.iter(f"{SVG}image"))
    shown = root.locator("canvas:visible").count()
    assert len(images) == shown > 8 and all(node.get("href", "").startswith("data:image/png") for node in images)
    said = texts(drawn)
    assert train_words.COMPONENT["more_twins"] not in said and "blind guess" in said
    # two columns beside each other, as on the page
    places = [float(node.get("x", "0")) for node in images]
    groups = [node.get("transform", "") for node in drawn.iter(f"{SVG}g")]
    assert len({re.findall(r"[\d.]+", one)[0] for one in groups if one.startswith("translate(")}) >= 2 and places


def test_masks_and_step_have_blue_for_what_is_positive(plain: Plain):
    run = core.trace(core.load("minilm"), ANIMAL)
    record = run.attention[3]
    root = see(plain, view="masks", model="MiniLM-L6", text=ANIMAL, layer="3", head="1", stop="0", show="scores")
    root.and_(plain.page.locator("[data-painted]")).wait_for()
    scores = record.scores(1)[0].flatten().tolist()
    cells = (
        root.locator(".map.before svg g")
        .first.locator("rect")
        .evaluate_all("(all, n) => all.slice(0, n).map((one) => one.getAttribute('fill'))", len(scores))
    )
    seen = [(sign(channels(one)), value) for one, value in zip(cells, scores, strict=True)]
    assert all(colour * value >= 0 for colour, value in seen) and {colour for colour, _ in seen} >= {1, -1}

    root = see(plain, view="step", model="MiniLM-L6", text=ANIMAL, layer="3", head="1", query="10", at="qkv")
    strip = root.locator(".pic canvas.grid").first
    strip.wait_for()
    q = record.q[1, 10].tolist()
    signs = [(sign(tuple(colour)), value) for colour, value in zip(strip.evaluate(ROW, len(q)), q, strict=True)]
    assert all(colour * value >= 0 for colour, value in signs) and {colour for colour, _ in signs} >= {1, -1}


def test_positions_has_blue_above_0_and_purple_below(plain: Plain):
    root = see(plain, view="positions", model="MiniLM-L6", text=ANIMAL, lab="two")
    root.locator(".heat canvas").wait_for()
    less, more = root.locator(".legend i").evaluate_all(
        "all => all.slice(0, 2).map((one) => getComputedStyle(one).backgroundImage.match(/rgb\\([^)]*\\)/g)[3])"
    )
    assert (sign(channels(less)), sign(channels(more))) == (-1, 1)
    low, high = re.findall(r"[−\d.]+", root.locator(".legend").first.inner_text())[:2]
    assert low.startswith("−") and not high.startswith("−")


def test_numbers_get_the_colours_of_a_sign_in_one_place():
    """A second scale of two ramps is how What if came to have them the other way round."""
    allowed = {"app/kit/browser/colours.js", "app/kit/browser/picture/scale.js", "app/attention/browser/export.js"}
    for path in (ROOT / "app").rglob("*.js"):
        if path.relative_to(ROOT).as_posix() not in allowed:
            assert not re.search(r"colours\([\w.]*ahead\)|ahead\)?\.(?:css|packed)", path.read_text("utf-8")), path


def test_elements_of_svg_are_made_in_one_place():
    """The two rooms make only the element that all of theirs is drawn into."""
    rooms = {"app/rooms/shapes/browser/shapes.js", "app/rooms/generate/browser/generate.js"}
    makers = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "app").rglob("*.js")
        if "w3.org/2000/svg" in path.read_text("utf-8")
    }
    assert makers - rooms == {"app/kit/browser/picture/svg.js"}
