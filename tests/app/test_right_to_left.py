"""Texts that are read from the right, and such as are read from both sides: in the box, in rows of tokens, in sentences, in files."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from tests.app.browsing import eventually
from tests.app.every_room import MODEL, measured, see
from tests.app.pages import lend
from tests.app.plain import Plain

APP = "app/main.py"
HEBREW, ARABIC, MIXED = "החתול ישב", "القطة جلست", "החתול said 42 مرحبا"
# The rooms that have the tokens of the text in a row, and where
ROWS = {
    "explore": ".strip [data-axis=query]",
    "step": ".toks .tok",
    "generate": ".strip.own span",
    "whatif": ".tokens .token",
}
FROM_RIGHT = re.compile("[\u0590-\u08ff]")
# Texts for people that have letters from the right beside others, not set apart: what follows them changes its place.
LOOSE = """(every, _) => {
  const right = /[\\u0590-\\u08ff]/, apart = /\\u2068[^\\u2069]*\\u2069/g, wrong = [];
  for (const node of every) {
    if (!node.getRootNode().querySelector?.(".hl") || !node.closest(".hl")) continue;
    for (const name of ["aria-label", "title", "alt"]) {
      const said = node.getAttribute(name);
      const left = said?.replaceAll(apart, "") ?? "";
      if (right.test(left) && /[a-z]{3}|\\d+\\s?%/i.test(left)) wrong.push(`${name}: ${said}`);
    }
    if (node.matches("svg text") && right.test(node.textContent)) {
      const left = node.textContent.replaceAll(apart, "");
      if (right.test(left) && /\\d\\s?%|→/.test(left)) wrong.push(`svg: ${node.textContent}`);
    }
    for (const text of node.childNodes)
      if (text.nodeType === 3 && right.test(text.data) && /[a-z]{3}|%|→/i.test(text.data.replaceAll(apart, "")) && right.test(text.data.replaceAll(apart, "")))
        wrong.push(`text: ${text.data}`);
    if (node.localName === "em" && right.test(node.textContent)) {
      const style = getComputedStyle(node);
      if (style.unicodeBidi !== "plaintext") wrong.push(`em: ${node.outerHTML}`);
    }
  }
  return wrong;
}"""


def link(room: str, text: str) -> str:
    return f"?{urlencode({'view': room, 'model': MODEL, 'text': text})}"


def test_the_box_has_a_text_at_the_side_where_it_begins(browser: Browser, address: str):
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        see(page, address, "shapes")
        box = page.get_by_role("textbox", name="Sentence", exact=True)
        assert box.evaluate("box => getComputedStyle(box).unicodeBidi") == "plaintext"
        for text, side in ((HEBREW, "right"), (ARABIC, "right"), ("The cat sat", "left")):
            box.fill(text)
            grey = np.asarray(Image.open(BytesIO(box.screenshot())).convert("L")).astype(float)[8:-8, 12:-12]
            dark = (grey < grey.mean() - 60).sum(0)  # pixels of letters in each column
            half = len(dark) // 2
            assert (dark[half:].sum() > dark[:half].sum()) == (side == "right"), (text, dark)


@pytest.mark.parametrize("room", ROWS)
def test_a_row_of_tokens_begins_at_the_right(plain: Plain, room: str):
    plain.open(link(room, HEBREW))
    tokens = plain.root.locator(ROWS[room])
    tokens.first.wait_for()

    def begins_there() -> None:
        lefts = tokens.evaluate_all(
            "tokens => tokens.map((one) => one.getBoundingClientRect()).filter((box) => box.width).map((box) => [Math.round(box.top / 8), box.left])"
        )
        first = [left for top, left in lefts if top == lefts[0][0]]
        assert len(first) > 3 and first == sorted(first, reverse=True)

    eventually(plain.page, begins_there)  # some are made again while the room is drawn


@pytest.mark.parametrize("room", ["explore", "step", "masks", "positions", "generate", "whatif"])
def test_what_is_said_of_a_token_keeps_its_order(plain: Plain, room: str):
    plain.open(link(room, MIXED))
    assert measured(plain.page, LOOSE) == []


def test_a_file_has_such_tokens_where_the_page_has_them(plain: Plain):
    plain.open(link("step", HEBREW))
    plain.root.get_by_role("button", name="Export", exact=True).click()
    with plain.page.expect_download() as waiting:
        plain.root.get_by_role("dialog").get_by_role("button", name="SVG", exact=True).click()
    drawn = Path(waiting.value.path()).read_text(encoding="utf-8")
    texts = re.findall(r"<text([^>]*)>([^<]*)</text>", drawn)
    rows = [(attributes, said) for attributes, said in texts if FROM_RIGHT.search(said)]
    assert rows
    # A number or an arrow after such letters would go to their other side, where they are not set apart.
    moved = [said for _, said in rows if re.search(r"[\u0590-\u08ff][^A-Za-z\u2068\u2069]*[\d%→]", said)]
    assert moved == []
