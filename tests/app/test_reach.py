"""Every room is for everybody: axe finds nothing in it in either colour scheme, and it fits into any window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from tests.app.axe import faults
from tests.app.every_room import ROOMS, SEEN_AT, measured, see
from tests.app.lab import sized
from tests.app.pages import lend

APP = "app/main.py"
LANGUAGES = ("en",)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LAPTOP = (1280, 720)
NARROW = (320, 360, 390, 480, 600, 639, 641, 700)
TWICE, FOUR_TIMES = (640, 512), (320, 256)  # a window of 1280 × 1024 at 200 % and at 400 %
CONTROL = "button, [role=button], summary, a[href], select, input, textarea, [role=slider], [role=application], [tabindex='0']"
# The page is not pushed sideways, nothing of it is out of the window, and no button has a second line of the same text.
WRONG = """(every, _) => {
  const wrong = [];
  const main = document.querySelector("[data-testid=stMain]");
  for (const box of [document.documentElement, main])
    if (box.scrollWidth > box.clientWidth) wrong.push(`${box.localName} is ${box.scrollWidth - box.clientWidth} pixels too wide`);
  for (const node of every) {
    if (!node.matches("button, [role=button], summary, .chip, .go") || !node.checkVisibility({ visibilityProperty: true })) continue;
    const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const range = document.createRange();
      range.selectNodeContents(texts.currentNode);
      const lines = [...range.getClientRects()].filter((line) => line.width > 1 && line.height > 4).map((line) => line.top);
      if (lines.length && Math.max(...lines) - Math.min(...lines) > 6) wrong.push(`wraps: ${node.className} “${texts.currentNode.data}”`);
    }
  }
  return wrong;
}"""
# Controls out of reach: they cannot be brought into sight, or something else lies on them wherever they are.
UNREACHED = (
    f"""(every, controls) => {{{SEEN_AT}"""
    """
  const wrong = [];
  const drawnOver = "label, [data-testid=stSlider], [data-testid=stDataFrame]"; // what has a picture of its own over what has the focus
  for (const node of every) {
    if (!node.matches(controls) || !node.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (node.closest("[aria-hidden=true], [inert], .unseen") || node.tabIndex < 0 || node.localName === "main") continue;
    node.scrollIntoView({ block: "center", inline: "center" });
    const box = node.getClientRects()[0] ?? node.getBoundingClientRect(); // a link may be broken into lines
    if (box.width < 2 || box.height < 2) continue;
    const [left, right] = [Math.max(0, box.left), Math.min(innerWidth, box.right)];
    const [top, bottom] = [Math.max(0, box.top), Math.min(innerHeight, box.bottom)];
    const isHit = [0.5, 0.2, 0.8].some((down) => [0.5, 0.2, 0.8].some((along) => {
      const hit = seenAt(left + (right - left) * along, top + (bottom - top) * down);
      return hit && (holds(node, hit) || (holds(hit, node) && hit.matches("label, span, .quiet")) || hit.closest(drawnOver)?.contains(node));
    }));
    if (right <= left || bottom <= top || !isHit) wrong.push(`${node.localName}.${node.className} “${(node.ariaLabel || node.textContent).trim().slice(0, 40)}”`);
  }
  return wrong;
}"""
)


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=ROOMS)
def room(request: pytest.FixtureRequest, browser: Browser, address: str, language: str) -> Iterator[Page]:
    """The page of a visitor in a room, in one language; every test of this file looks at it."""
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce", locale=language) as page:
        yield see(page, address, request.param)


@pytest.fixture(autouse=True)
def as_it_was(room: Page) -> Iterator[None]:
    yield
    room.emulate_media(color_scheme="light", media="screen", forced_colors="none", reduced_motion="reduce")
    sized(room, *LAPTOP)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing(room: Page, scheme: Literal["light", "dark"]):
    room.emulate_media(color_scheme=scheme)
    room.locator(f".hl[data-theme={scheme}]").first.wait_for()
    sized(room, *LAPTOP)
    assert faults(room) == []


def test_axe_finds_nothing_on_the_narrowest_phone(room: Page):
    sized(room, 320, 640)
    assert faults(room) == []


def test_no_window_is_too_narrow(room: Page):
    found: dict[int, Any] = {}
    for width in NARROW:
        sized(room, width, 800)
        found[width] = measured(room, WRONG)
    assert not any(found.values()), found


@pytest.mark.parametrize("size", [TWICE, FOUR_TIMES], ids=["200 %", "400 %"])
def test_everything_can_be_reached_in_a_page_made_larger(room: Page, size: tuple[int, int]):
    sized(room, *size)
    assert measured(room, WRONG) == []
    assert measured(room, UNREACHED, CONTROL) == []
