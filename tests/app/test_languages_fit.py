"""German is longer than English: in every room nothing of it is cut off, breaks a button, lies over something else, or widens the page."""

from __future__ import annotations

import time
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from app.shell import registry
from tests.app.browsing import idle
from tests.app.pages import lend

pytestmark = pytest.mark.thorough

APP = "app/main.py"
ASKED = {"lang": "de", "model": "Storyteller", "text": "The old king loved the golden bird, and the old"}
LABS = {  # pages of a room beside its first
    "masks": ["padding", "leak", "kinds", "scale"],
    "positions": ["two", "beyond", "kinds"],
}
PATIENCE = 8  # seconds until a picture that is still being drawn must fit
DRAWN = "[data-painted], .js-plotly-plot"

# Texts as they lie on the page, of shadow roots and of drawings too. A text that is cut says so by "…", and so does a list that scrolls.
FAULTS = r"""() => {
  const parent = (node) => node.assignedSlot ?? node.parentElement
    ?? (node.getRootNode() instanceof ShadowRoot ? node.getRootNode().host : null);
  const within = (outer, node) => { for (let one = node; one; one = parent(one)) if (one === outer) return true; return false; };
  const named = (text) => `“${text.trim().replace(/\s+/g, ' ').slice(0, 70)}”`;
  const isTurned = (node) => { const at = node.getScreenCTM?.(); return Boolean(at) && Math.abs(at.b) + Math.abs(at.c) > 0.01; };
  // A panel that lies over a text on purpose: it has a ground of its own, and no place in the flow of the page.
  const isOver = (one, other) => {
    for (let at = one; at && !within(at, other); at = parent(at)) {
      const { position, backgroundColor } = getComputedStyle(at);
      if (position !== 'static' && /^rgb\(|, (0\.9\d*|1)\)$/.test(backgroundColor)) return true;
    }
    return false;
  };
  const faults = new Set();
  const seen = [];
  // The part of a line of text that can be seen
  const visible = (element, { left, right, top, bottom }, text) => {
    let cut = null;
    for (let one = element; one; one = parent(one)) {
      const style = getComputedStyle(one);
      const box = one.getBoundingClientRect();
      if (style.clipPath !== 'none' || style.clip !== 'auto' || (box.width <= 2 && style.overflowX !== 'visible')) return null;
      if (one.classList.contains('covered')) return null; // says it in as many letters as the wall has room for
      const cuts = style.overflowX !== 'visible' && !(one instanceof SVGElement && !(one instanceof SVGSVGElement));
      if (cuts) {
        const isTold = /auto|scroll/.test(style.overflowX) || style.textOverflow === 'ellipsis' || style.webkitLineClamp !== 'none';
        if (right <= box.left + 2 || left >= box.right - 2) return null;
        if (isTold && right > box.right) cut = one; // where exactly it ends, only the browser knows
        if (!isTold && (left < box.left - 1.5 || right > box.right + 1.5)) faults.add(`cut off: ${text}`);
        [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      }
      if (cuts && style.overflowY !== 'visible') [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
      if (style.position === 'fixed') break;
    }
    if (right > 2 && left < innerWidth - 2 && (right > innerWidth + 1.5 || left < -1.5)) faults.add(`outside the window: ${text}`);
    return right - left > 1 && bottom - top > 1 ? { left, right, top, bottom, cut } : null;
  };
  const walk = (root) => {
    const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
      if (node.nodeType === Node.ELEMENT_NODE) { if (node.shadowRoot) walk(node.shadowRoot); continue; }
      const element = node.parentElement ?? node.parentNode.host;
      if (!element || !node.textContent.trim() || /^(script|style|noscript|title|option|desc|textarea)$/i.test(element.tagName)) continue;
      if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true })) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const lines = [...range.getClientRects()].filter(({ width, height }) => width > 1 && height > 1);
      if (!lines.length) continue;
      const text = named(node.textContent);
      const isLabel = element.closest('button, [role=tab], [role=button], summary') && node.textContent.trim().length <= 40;
      if (isLabel && lines.at(-1).top - lines[0].top > 0.6 * lines[0].height) faults.add(`a button breaks: ${text}`);
      for (const line of lines) {
        const rest = visible(element, line, text);
        if (rest && !isTurned(element)) seen.push({ element, text, ...rest });
      }
    }
  };
  walk(document);
  seen.sort((a, b) => a.top - b.top);
  seen.forEach((a, i) => {
    for (let j = i + 1; j < seen.length && seen[j].top < a.bottom; j++) {
      const b = seen[j];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide <= 2 || high <= 0.5 * Math.min(a.bottom - a.top, b.bottom - b.top)) continue;
      if ((a.cut && within(a.cut, b.element)) || (b.cut && within(b.cut, a.element))) continue;
      if (a.element === b.element || isOver(a.element, b.element) || isOver(b.element, a.element)) continue;
      faults.add(`one over the other: ${a.text} and ${b.text}`);
    }
  });
  for (const one of [document.documentElement, ...document.querySelectorAll('[data-testid=stMain]')])
    if (one.scrollWidth > one.clientWidth + 1) faults.add(`the page scrolls sideways: ${one.scrollWidth} of ${one.clientWidth}`);
  return [...faults];
}"""


def faults(page: Page) -> list[str]:
    """Texts that do not fit, once the picture has come to rest."""
    deadline = time.monotonic() + PATIENCE
    while (found := page.evaluate(FAULTS)) and time.monotonic() < deadline:
        page.wait_for_timeout(400)
    return found


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)], ids=["laptop", "phone"])
def test_german_fits_in_every_room(browser: Browser, address: str, size: tuple[int, int]):
    asked = [{"view": room.id} for room in registry.rooms()]
    if size[0] > 1000:
        asked += [{"view": room, "lab": lab} for room, labs in LABS.items() for lab in labs]
    wrong: list[str] = []
    with lend(browser, viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce") as page:
        for params in asked:
            page.goto(f"{address}/?{urlencode(params | ASKED)}")
            page.locator(DRAWN).first.wait_for()
            if params["view"] == "generate":  # its words are written, and it rests on one of them
                page.locator(".hl.generate[data-lens=ready]").wait_for()
            idle(page)
            wrong += [f"{' '.join(params.values())}: {fault}" for fault in faults(page)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ("<div style='width: 4em; overflow: hidden; white-space: nowrap'>Überraschung in Bits</div>", "cut off"),
        ("<svg width='40' height='20' style='overflow: hidden'><text x='35' y='15' text-anchor='end'>Überraschung</text></svg>", "cut off"),
        ("<button style='width: 6em'>Bildschirm teilen</button>", "a button breaks"),
        ("<svg width='400' height='20'><text y='15'>das gewählte Wort</text><text x='60' y='15'>Verlust</text></svg>", "one over"),
        ("<div style='width: 3000px'>breit</div>", "the page scrolls sideways"),
        ("<div style='position: absolute; left: -1em'>Überraschung</div>", "outside the window"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_seen(browser: Browser, html: str, fault: str):
    with lend(browser, viewport={"width": 1280, "height": 720}) as page:
        page.set_content(html)
        found = page.evaluate(FAULTS)
        assert [one for one in found if one.startswith(fault)], found
        page.set_content(
            "<p style='width: 6em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap'>Überraschung in Bits</p>"
        )
        assert not page.evaluate(FAULTS)
