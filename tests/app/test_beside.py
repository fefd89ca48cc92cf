"""Heads side by side: chosen in the map of all heads, at most four, one scale, one cell pointed at, in the link and in files."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

import core
from app.attention import export
from app.attention import selection as attention_selection
from app.session.examples import MARY
from core.service.facts import facts_of
from tests.app.browsing import box_of
from tests.app.plain import Plain
from tests.app.test_export import SVG, saved
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2

APP = "app/main.py"
TO, JOHN = 13, 3


@pytest.fixture(scope="module")
def run() -> core.Trace:
    return core.trace(smollm2(), MARY)


@pytest.mark.thorough
@needs_smollm2
def test_a_caption_names_the_heads_and_code_has_each_of_them(run: core.Trace) -> None:
    facts = facts_of(run, "key")
    asked = {"site": "decoder", "layer": "23", "head": "0", "heads": "23.0,24.4", "show": "beside"}
    found = attention_selection.selected(facts, asked)
    assert (found.kind, found.members) == ("head", ((23, 0), (24, 4)))
    assert export.title(facts, found).endswith("heads 23.0, 24.4 (layer.head), side by side")
    assert "for i, head in [(23, 0), (24, 4)]" in export.snippet(facts, found)
    assert export.file_name(facts, found).endswith("-beside")


@needs_smollm2
def test_heads_are_added_by_a_click_and_by_keys_up_to_four(plain: Plain, run: core.Trace) -> None:
    plain.open("?model=smollm2")
    root, page = plain.root, plain.page
    grid = root.locator(".headmap .grid")
    grid.focus()
    for step in ("ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(f"Shift+{step}")
    heads = [[23, 0], [24, 0], [24, 1], [24, 2]]
    plain.wait(show="beside", layer="24", head="2", members=json.dumps(heads).replace(" ", ""))
    maps = root.locator(".beside figure:visible")
    expect(maps).to_have_count(4)
    page.keyboard.press("Shift+ArrowDown")  # a fifth
    plain.wait(head="3", members=json.dumps(heads).replace(" ", ""))
    page.keyboard.press("ArrowUp")
    plain.wait(head="2")
    page.keyboard.press("Space")
    plain.wait(members="[[23,0],[24,0],[24,1]]")
    expect(maps).to_have_count(3)
    page.wait_for_url(re.compile(r"show=beside.*heads=23\.0%2C24\.0%2C24\.1(&|$)"))


@needs_smollm2
def test_one_cell_is_pointed_at_in_all_of_them_and_the_link_shows_the_same(plain: Plain, run: core.Trace) -> None:
    plain.open("?model=smollm2&show=beside&heads=23.0,24.4&layer=23&head=0&query=13")
    root, page = plain.root, plain.page
    said = root.locator(".beside figcaption .mute")
    expect(said).to_have_text(["Mary 69 %", "Mary 81 %"])
    box = box_of(root.locator(".beside svg").nth(1))
    left, top, size = (
        float(root.locator(".beside").get_attribute(f"data-{name}") or 0) for name in ("left", "top", "size")
    )
    step = size / len(run.source)
    page.mouse.move(box["x"] + left + (JOHN + 0.5) * step, box["y"] + top + (TO + 0.5) * step)
    plain.wait(cell=f"{TO},{JOHN}")
    shares = [run.attention.at(layer).row(head, TO)[JOHN].item() for layer, head in ((23, 0), (24, 4))]
    for i, share in enumerate(shares):
        text = said.nth(i).inner_text()
        assert text.startswith("John") and float(text.split()[1].lstrip("<")) == pytest.approx(100 * share, abs=0.6)
    _, svg = saved(plain, "SVG")
    texts = ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert {"Layer 23 · Head 0", "Layer 24 · Head 4"} <= set(texts)
    root.locator(".beside figcaption button").nth(1).click()
    plain.wait(layer="24", head="4", show="beside", members="[[23,0],[24,4]]")
