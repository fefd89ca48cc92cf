"""PDF of every room's picture: real text and lines, no pixels, and what the file says of itself."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.kit import words
from tests.app.browsing import PATIENCE
from tests.app.pages import lend
from tests.app.pdf import Pdf

APP = "app/main.py"
SVG = "{http://www.w3.org/2000/svg}"
EXPORT = "{urn:headlight:export}"
WORD = words.COMPONENT
ROOMS = {
    "explore": {"model": "minilm"},
    "step": {"model": "minilm"},
    "masks": {"model": "minilm"},
    "positions": {"model": "minilm"},
    "generate": {"model": "storyteller"},
    "whatif": {"model": "storyteller"},
    "train": {},
    "shapes": {"model": "minilm"},
    "memory": {},
    "compute": {},
}


@pytest.fixture
def page(browser: Browser, address: str):
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        yield page


def see(page: Page, address: str, **said: str) -> Locator:
    """The Export menu of a room, open, when all is drawn."""
    page.goto(f"{address}/?{urlencode(said)}")
    page.locator(".hl[data-painted]:visible, [data-testid=stPlotlyChart] .main-svg:visible").first.wait_for()
    page.wait_for_load_state("networkidle")
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    if said["view"] == "generate":  # it opens on words that it writes
        page.locator(".hl.generate[data-lens='ready']").wait_for()
    page.get_by_role("button", name=WORD["export"], exact=True).first.click()
    return page.get_by_role("dialog", name=WORD["export"])


def saved(menu: Locator, label: str) -> bytes:
    with menu.page.expect_download() as waiting:
        menu.get_by_role("button", name=label, exact=True).click()
    expect(menu.get_by_role("status")).to_contain_text(waiting.value.suggested_filename)
    return Path(waiting.value.path()).read_bytes()


def letters(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "room", [room if room == "explore" else pytest.param(room, marks=pytest.mark.thorough) for room in ROOMS]
)
def test_a_room_s_picture_is_a_page_of_text_and_lines(page: Page, address: str, room: str):
    menu = see(page, address, view=room, **ROOMS[room])
    drawn = ElementTree.fromstring(saved(menu, "SVG"))
    pdf = Pdf(saved(menu, "PDF"))
    assert not pdf.images and " Do" not in pdf.operators  # lines, not pixels
    assert len(re.findall(r" (?:re|[mlc])\b", pdf.operators)) > 20
    # All that the drawing says can be copied from the page, word by word.
    texts = ["".join(node.itertext()) for node in drawn.iter(f"{SVG}text")]
    missing = [text for text in texts if letters(text) not in letters(pdf.text)]
    assert not missing
    title, alt = (str(drawn.findtext(f"{SVG}{name}")) for name in ("title", "desc"))
    caption, snippet = (str(drawn.findtext(f".//{EXPORT}{name}")) for name in ("caption", "snippet"))
    assert letters(caption[:40]) in letters(pdf.text)
    assert (pdf.said("Title"), pdf.said("Subject"), pdf.said("SourceCode")) == (title, alt, snippet)
    # For a screen reader: a figure that says what it shows
    assert pdf.said("Alt") == f"{alt} {caption}".strip()
    assert "/Figure <</MCID 0>> BDC" in pdf.operators and pdf.operators.endswith("EMC")
    catalog = next(body for body in pdf.objects.values() if b"/Type/Catalog" in body)
    assert b"/Marked true" in catalog and b"/Lang(en)" in catalog
    found = ElementTree.fromstring(pdf.metadata)
    assert [node.text for node in found.iter(f"{EXPORT}snippet")] == [snippet]


@pytest.mark.thorough
def test_any_script_can_be_read_and_copied(page: Page, address: str):
    menu = see(page, address, view="explore", model="minilm", text="Привет 你好 سلام x")
    pdf = Pdf(saved(menu, "PDF"))
    assert letters("“Привет 你好 سلام x”") in letters(pdf.text)
    drawn = [meaning for name, meaning in pdf.fonts.values() if not name]
    assert {"你", "П"} <= {text for font in drawn for text in font.values()}
    assert any("سلام" in text for font in drawn for text in font.values())  # in one piece: its letters join
    assert not pdf.images


def test_nothing_of_it_is_fetched_before_it_is_asked_for(page: Page, address: str):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    menu = see(page, address, view="masks", model="minilm")
    own = re.compile(r"/headlight/(?:writer/|m/\w+/(?:vector|pdf|fonts|film|gif|video)\.js)")
    assert asked and not [url for url in asked if own.search(url)]
    saved(menu, "PDF")
    fetched = [url.rsplit("/", 1)[1] for url in asked if own.search(url)]
    assert {"vector.js", "pdf.js", "fonts.js"} <= set(fetched) and "film.js" not in fetched
    # A file that there is not is not there.
    assert page.request.get(f"{address}/headlight/writer/none.js").status == 404


@pytest.mark.thorough
def test_a_page_that_works_offline_writes_it_too(page: Page, address: str, tmp_path: Path):
    menu = see(page, address, view="step", model="minilm")
    path = tmp_path / "step.html"
    path.write_bytes(saved(menu, "HTML"))
    page.goto(path.as_uri())
    page.locator(".hl[data-painted]").wait_for()
    page.get_by_role("button", name=WORD["export"], exact=True).click()
    menu = page.get_by_role("dialog", name=WORD["export"])
    pdf = Pdf(saved(menu, "PDF"))
    assert not pdf.images and letters(pdf.said("Title")) in letters(pdf.text)
    expect(menu.get_by_role("button", name="GIF", exact=True)).to_have_count(0)  # it has no film's maker
