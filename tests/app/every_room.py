"""A page on any room of the bar, and what a test can measure there of whatever is on it, through every shadow root."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page

from app.shell import registry
from tests.app.browsing import bar_hears, idle, once

ROOMS = registry.ROOMS
MODEL = "SmolLM2-135M"
# Every element of the page, those in components as well
EVERY = """(() => {
  const found = [];
  const walk = (root) => {
    for (const node of root.querySelectorAll("*")) {
      found.push(node);
      if (node.shadowRoot) walk(node.shadowRoot);
    }
  };
  walk(document);
  return found;
})()"""
# The element that is seen at a place of the window, in whatever component; and whether an element holds it, across components
SEEN_AT = """const seenAt = (x, y) => {
  let found = document.elementFromPoint(x, y);
  for (let inner = found; inner?.shadowRoot; found = inner) {
    inner = inner.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === found) break;
  }
  return found;
};
const holds = (node, other) => {
  for (let up = other; up; up = up.parentNode ?? up.host) if (up === node) return true;
  return false;
};"""
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
# Whatever says that a room is drawn
DRAWN = {room: f".hl.{room}[data-painted]" for room in ROOMS} | {
    "memory": ".hl.fit[data-painted]",
    "compute": "[data-testid=stDataFrame] canvas",
    "generate": ".hl.generate[data-painted][data-lens=ready]",  # its text is written
    "lessons": ".st-key-lessons_view .hl[data-painted]",
}


def see(page: Page, address: str, room: str, **said: str) -> Page:
    """Open a room by its link; ready when it is drawn, the script has ended and nothing is on its way that changes sizes."""
    page.goto(f"{address}/?{urlencode({'view': room, 'model': MODEL, **said})}")
    drawn(page, room)
    return page


def drawn(page: Page, room: str) -> None:
    """Wait until the room is there, all of it that comes by itself."""
    page.locator(DRAWN[room]).first.wait_for()
    bar_hears(page)
    once(page, f"!{EVERY}.some((node) => node.matches('.hl') && node.dataset.underway)")
    idle(page)


def measured(page: Page, function: str, arg: Any = None) -> Any:
    """The answer of a function of (every element, arg) gives."""
    return page.evaluate(f"(arg) => ({function})({EVERY}, arg)", arg)
