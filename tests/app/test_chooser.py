"""One head of 270, chosen from the map of all of them in each room that shows one: by keys, by its numbers, by a click, on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Locator, expect

import core
from app.kit.words import COMPONENT as WORDS
from core.read.measures import sink
from tests.app import models
from tests.app.axe import faults
from tests.app.plain import Plain

APP = "tests/app/gallery.py"
TEXT = "When Mary and John went to the store, John gave a drink to"
THOROUGHLY = [pytest.param(room, marks=pytest.mark.thorough) for room in ("step", "positions")]


def opened(plain: Plain, room: str, **said: str) -> Locator:
    """A room with this model, ready for its keys."""
    plain.open(f"?{urlencode({'view': room, 'model': 'deep', 'text': TEXT, 'layer': '3', 'head': '1'} | said)}")
    plain.page.evaluate("document.activeElement?.blur()")
    return plain.root


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("room", ["masks", "generate", *THOROUGHLY])
def test_keys_choose_a_head_from_the_map_of_all(plain: Plain, room: str) -> None:
    root = opened(plain, room)
    button = root.locator(".head-button")
    expect(button).to_have_text("Layer 3 · Head 1")
    plain.page.keyboard.press("h")
    box = root.get_by_role("dialog", name=WORDS["heads_choose"])
    expect(box).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    grid = box.get_by_role("slider")
    expect(grid).to_be_focused()
    expect(grid).to_have_attribute("aria-valuemax", "269")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        plain.page.keyboard.press(key)
    expect(grid).to_have_attribute("aria-valuetext", re.compile("^Layer 5 · Head 2(: |$)"))  # its number comes later
    expect(box.locator(".heads-strongest button")).to_have_count(7)
    plain.page.keyboard.press("Enter")
    expect(box).to_be_hidden()
    expect(button).to_have_text("Layer 5 · Head 2")
    plain.page.wait_for_url(
        lambda url: {"layer": ["5"], "head": ["2"]}.items() <= parse_qs(urlsplit(url).query).items()
    )
    # by its numbers, and one that is not there
    button.click()
    field = box.get_by_label(WORDS["heads_go"])
    field.fill("30.1")
    field.press("Enter")
    expect(box.get_by_role("status")).to_contain_text("30.1")
    field.fill("29.8")
    field.press("Enter")
    expect(button).to_have_text("Layer 29 · Head 8")
    # Escape closes it, and nothing else
    button.click()
    plain.page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(button).to_have_text("Layer 29 · Head 8")


@pytest.mark.thorough
@pytest.mark.parametrize("room", ["masks", "step", "positions", "generate"])
def test_axe_finds_nothing_in_the_map_of_all(plain: Plain, room: str) -> None:
    root = opened(plain, room)
    plain.page.keyboard.press("h")
    box = root.get_by_role("dialog", name=WORDS["heads_choose"])
    expect(box.locator(".heads-strongest button")).to_have_count(7)
    assert [fault for fault in faults(plain.page) if "color-contrast" not in fault] == []


def test_the_map_is_coloured_by_the_run_s_own_numbers(plain: Plain) -> None:
    run = core.trace(models.load("deep"), TEXT)
    root = opened(plain, "step", query="13", at="softmax")
    root.locator(".head-button").click()
    box = root.get_by_role("dialog", name=WORDS["heads_choose"])
    key = int(root.get_attribute("data-key") or "")
    looks = [record.pattern()[head, 13, key].item() for record in run.attention for head in range(9)]
    at = max(range(270), key=looks.__getitem__)
    first = box.locator(".heads-strongest button").first
    expect(first.locator("span")).to_have_text(f"Layer {at // 9} · Head {at % 9}")
    expect(first.locator("b")).to_have_text(f"{100 * looks[at]:.0f} %")
    first.click()
    expect(root).to_have_attribute("data-layer", str(at // 9))


def test_a_finger_looks_first_and_takes_with_a_second_touch(plain_another: Callable[..., Plain]) -> None:
    phone = plain_another((390, 844), has_touch=True, is_mobile=True)
    root, page = opened(phone, "masks"), phone.page
    root.locator(".head-button").tap()
    box = root.get_by_role("dialog", name=WORDS["heads_choose"])
    expect(box).to_be_visible()
    canvas = box.locator(".heads-map canvas").first.bounding_box()
    assert canvas and canvas["x"] >= 0 and canvas["x"] + canvas["width"] <= 390, "the map is as wide as the phone"
    place = (canvas["x"] + canvas["width"] * 0.6, canvas["y"] + canvas["height"] * 0.4)
    page.touchscreen.tap(*place)
    said = box.locator(".heads-low > .quiet")
    expect(said).not_to_contain_text("Layer 3 · Head 1")
    name = (said.text_content() or "").split(":")[0]
    expect(box).to_be_visible()
    page.touchscreen.tap(*place)
    expect(box).to_be_hidden()
    short = name.replace("Layer ", "L").replace("· Head ", "H")
    expect(root.locator(".head-button")).to_have_text(re.compile(f"^({name}|{short})$"))  # as the phone has room


def test_all_heads_of_what_if_are_in_sight(plain: Plain) -> None:
    root = opened(plain, "whatif", layer="", head="")
    svg = root.locator(".parts svg")
    expect(svg.locator("rect").nth(269)).to_be_attached()
    box = svg.bounding_box()
    assert box and box["y"] + box["height"] <= 720 and box["x"] + box["width"] <= 800
    cell = svg.locator("rect").nth(200).bounding_box()
    assert cell and cell["width"] >= 8 and cell["height"] >= 8, "every head can be pointed at"
    expect(root.locator(".board .fact")).not_to_be_empty()


def test_the_sink_is_named_by_the_run_s_numbers_and_leaves_the_colours_alone(plain: Plain) -> None:
    found = sink(core.trace(core.load("minilm"), TEXT).attention)
    assert found is not None and found.is_sink
    # Without a mask, which would take the line of the sink
    root = opened(plain, "masks", model="MiniLM-L6", text=TEXT, layer="2", head="1", forbid="")
    low, high = (round(100 * share) for share in found.between)
    line = root.locator(".sink")
    expect(line).to_contain_text(f"{low}–{high} % of their attention")
    expect(root).to_have_attribute("data-fresh", "true")  # the run under the room's first mask is there
    numbers = root.locator(".row").inner_text()
    fills = "(root) => [...root.querySelectorAll('.map svg rect')].map((r) => r.getAttribute('fill')).join()"
    before = root.evaluate(fills)
    assert "rgb" in before or "#" in before
    line.get_by_role("button", name=WORDS["sink_out"]).click()
    expect(line.get_by_role("button")).to_have_attribute("aria-pressed", "true")
    plain.page.wait_for_url(lambda url: "sink=out" in url)
    assert root.evaluate(fills) != before and root.locator(".row").inner_text() == numbers
