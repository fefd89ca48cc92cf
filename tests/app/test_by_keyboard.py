"""Every room by its keys alone: from the bar to its picture, through a menu and out again, always with a focus that is seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from app.kit import words as kit_words
from app.shell import registry
from tests.app.browsing import eventually
from tests.app.every_room import DRAWN, EVERY, ROOMS, SEEN_AT, drawn, see
from tests.app.pages import lend

pytestmark = pytest.mark.thorough

APP = "app/main.py"
MOST = 160  # stops of a page, and more than any has
CELLS = 60  # stops within one table of Streamlit's, whose cells are drawn on one canvas
# The room's main part, and keys that change what it shows
MAIN = {
    "explore": (".matrix", "ArrowRight"),
    "step": (".pic", "ArrowDown"),
    "masks": (".brush", "ArrowRight Enter"),
    "positions": (".grid", "ArrowRight"),
    "generate": (".figure", "ArrowLeft"),
    "whatif": (".parts", "ArrowRight"),
    "train": (".curve", "ArrowLeft"),
    "shapes": (".row:not(.chosen)", "Enter"),
    "memory": ("input[type=range]", "ArrowRight"),
    "compute": ("input[type=range]", "ArrowRight"),
    "lessons": (".place .chips button", "ArrowRight Enter"),
}
# How the focused element looks, with what is around it and in it: where the sign of the focus may be
LOOKS = """const looks = (node) => {
  const near = [node, ...[...node.querySelectorAll("*")].slice(0, 12)];
  for (let up = node, i = 0; i < 5 && up; i++, up = up.parentElement ?? up.getRootNode().host) near.push(up);
  return near.map((one) => {
    const style = getComputedStyle(one);
    const outline = style.outlineStyle === "none" || style.outlineWidth === "0px" ? "" : style.outline;
    return [outline, style.boxShadow, style.borderColor, style.backgroundColor, style.opacity].join(" ");
  }).join("|");
};"""
# The element that has the focus now, and whether the one before looked otherwise while it had it
STOP = f"""() => {{
  {LOOKS}
  {SEEN_AT}
  document.getAnimations().filter((one) => one instanceof CSSTransition).forEach((one) => one.finish());
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  const before = window.lastStop;
  const wasSeen = !before?.node.isConnected || before.node === node || looks(before.node) !== before.looks;
  const name = node.localName + "." + (node.className?.baseVal ?? node.className);
  const words = (node.ariaLabel || node.textContent || node.value || "").trim().slice(0, 60);
  const box = node.getBoundingClientRect();
  const isIn = box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  const top = seenAt(box.left + box.width / 2, (Math.max(0, box.top) + Math.min(innerHeight, box.bottom)) / 2);
  window.lastStop = {{ node, looks: looks(node) }};
  return {{
    name, words, isIn, wasSeen, isSame: before?.node === node, isPage: node === document.body,
    isFree: !top || holds(node, top) || holds(top, node) || holds(node.closest("[data-testid=stDataFrame]"), top),
  }};
}}"""


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    """One visitor, who has no pointer, and goes from room to room."""
    errors: list[str] = []
    hear = lambda error: errors.append(str(error))  # noqa: E731
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.on("pageerror", hear)
        see(page, address, "explore")
        yield page
        page.remove_listener("pageerror", hear)
        assert errors == []


def tab(page: Page) -> dict[str, Any]:
    page.keyboard.press("Tab")
    return page.evaluate(STOP)


def tab_to(page: Page, is_there: Callable[[dict[str, Any]], bool]) -> None:
    """By Tab alone, past the end of the page and on from its beginning if need be."""
    for _ in range(2 * MOST + CELLS):
        if is_there(tab(page)):
            return
    raise AssertionError("Tab never comes there")


def has_focus(page: Page, selector: str) -> bool:
    return page.evaluate(
        f"(selector) => {EVERY}.some((node) => node.matches(selector) && node.matches(':focus'))", selector
    )


def shown(page: Page) -> str:
    """The words and numbers of a room, but not how long that took nor how far it has come."""
    passing = {"ms", "painted", "rows", "settled", "swept", "estimates", "change", "fresh", "pending"}
    said = page.locator(".hl").evaluate_all("roots => roots.map((root) => ({...root.dataset}))")
    heads = page.locator(".hl :is(h2, .fact, .tip)").all_inner_texts()
    return json.dumps([{name: value for name, value in one.items() if name not in passing} for one in said] + heads)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_reached_changed_and_left_by_keys_alone(page: Page, room: str):
    title = next(one.title for one in registry.rooms() if one.id == room)
    tab_to(page, lambda stop: stop["name"] == "a." and stop["words"].split("\n")[0].startswith(title))
    page.keyboard.press("Enter")
    drawn(page, room)

    # Every stop of the page, to its end: each is seen to have the focus, and none keeps it.
    tab_to(page, lambda stop: stop["isPage"])
    stops, lost = list[dict[str, Any]](), list[str]()
    while not (stop := tab(page))["isPage"]:
        if not stop["wasSeen"]:
            lost.append(f"no sign of the focus: {stops[-1]['name']} “{stops[-1]['words']}”")
        if not stop["isSame"]:
            stops.append(stop)
        if not (stop["isIn"] and stop["isFree"]):
            lost.append(f"out of sight: {stop['name']} “{stop['words']}”")
        assert len(stops) < MOST, [stop["name"] for stop in stops[-20:]]
    assert lost == []
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(STOP)["name"] == stops[-1]["name"]

    # The main picture, and what its keys change
    selector, keys = MAIN[room]
    tab_to(page, lambda _: has_focus(page, selector))
    before = shown(page)
    for key in keys.split():
        page.keyboard.press(key)

    def changed() -> None:
        assert shown(page) != before

    eventually(page, changed)
    drawn(page, room)

    # A menu: opened, walked into, closed; the focus is where it was
    export = kit_words.COMPONENT["export"]
    tab_to(page, lambda stop: stop["words"] == export)
    page.keyboard.press("Enter")
    menu = page.locator(DRAWN[room].split("[")[0] if room not in ("memory", "compute") else ".hl").get_by_role(
        "dialog", name=export
    )
    expect(menu).to_be_visible()
    page.keyboard.press("Tab")
    assert menu.evaluate("menu => menu.contains(menu.getRootNode().activeElement)")
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    assert page.evaluate(STOP)["words"] == export
