"""A room that moves as a file: GIF, WebM and MP4, read again, and the room as it was before."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Browser, Locator, Page, expect

from app.kit import words
from app.rooms.generate import words as generate_words
from app.rooms.train import words as train_words
from tests.app import film
from tests.app.browsing import PATIENCE, eventually
from tests.app.pages import lend

APP = "app/main.py"
WORD = words.COMPONENT
SIZE = (1280, 720)
WRITTEN = "452.1191.261"  # there lived a
TEXT = {"view": "generate", "model": "storyteller", "text": "Once upon a time", "n": "0"}
FIRST, LAST = 700, 2500  # ms of a word, and of the last


@pytest.fixture
def address(plain_address: str) -> str:
    return plain_address


@pytest.fixture
def page(browser: Browser):
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        yield page


def see(page: Page, address: str, **said: str) -> Locator:
    """The Export menu of a room, open, when all is drawn."""
    page.goto(f"{address}/?{urlencode(said)}")
    page.locator(".hl[data-painted]:visible").first.wait_for()
    page.wait_for_load_state("networkidle")
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    page.get_by_role("button", name=WORD["export"], exact=True).first.click()
    return page.get_by_role("dialog", name=WORD["export"])


def saved(menu: Locator, label: str) -> bytes:
    with menu.page.expect_download(timeout=4 * PATIENCE) as waiting:
        menu.get_by_role("button", name=label, exact=True).click()
    assert waiting.value.suggested_filename.endswith(f"-film.{label.lower()}")
    expect(menu.get_by_role("status")).to_contain_text(waiting.value.suggested_filename)
    return Path(waiting.value.path()).read_bytes()


def written(page: Page) -> Locator:
    """The room when all words of the path are there."""
    root = page.locator(".hl[data-painted]:visible").first
    expect(root).to_have_attribute("data-complete", "true")
    return root


@pytest.mark.thorough
def test_a_generation_is_a_gif_with_a_frame_for_each_word(page: Page, address: str):
    menu = see(page, address, **TEXT, path=WRITTEN)
    root = written(page)
    before = page.url, root.get_attribute("data-path"), root.get_attribute("data-focus")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with Image.open(io.BytesIO(saved(menu, "GIF"))) as gif:
        assert gif.size == SIZE and gif.n_frames == 4 and gif.info["loop"] == 0  # type: ignore[attr-defined]
        comment = gif.info["comment"].decode()
        frames, lasts = [], []
        for i in range(4):
            gif.seek(i)
            frames.append(gif.convert("RGB"))
            lasts.append(gif.info["duration"])
    assert lasts == [FIRST] * 3 + [LAST]
    assert all(ImageChops.difference(a, b).getbbox() for a, b in itertools.pairwise(frames))
    assert "Once upon a time" in comment and "hl.load(" in comment and "Headlight" in comment
    # The room is as it was, and no server was asked for a picture.
    assert before == (page.url, root.get_attribute("data-path"), root.get_attribute("data-focus"))
    assert not [url for url in asked if not re.search(r"/headlight/(writer|m)/|^blob:|^data:|\.woff2$", url)]


@pytest.mark.thorough
def test_a_generation_is_a_video_that_says_what_it_shows(page: Page, address: str):
    menu = see(page, address, **TEXT, path=WRITTEN)
    written(page)
    seconds = (3 * FIRST + LAST) / 1000
    found = film.webm(saved(menu, "WebM"))
    assert (found.kind, found.size) == ("webm", SIZE) and found.seconds == pytest.approx(seconds)
    assert found.frames >= 4
    title = generate_words.COMPONENT["film_title"].format(text="<s> Once upon a time")
    assert found.tags["TITLE"] == title
    assert "there lived a" in found.tags["DESCRIPTION"]
    assert "Storyteller" in found.tags["COMMENT"] and "hl.load(" in found.tags["SOURCE_CODE"]
    menu.get_by_role("button", name="MP4", exact=True).click()
    status = menu.get_by_role("status")
    expect(status).to_have_text(re.compile(r"saved|" + re.escape(WORD["film_no_mp4"])))
    if "saved" not in status.inner_text():  # a browser without H.264 says so
        return
    found = film.mp4(saved(menu, "MP4"))
    assert (found.kind, found.size) == ("isom", SIZE) and found.seconds == pytest.approx(seconds, abs=0.01)
    assert found.tags["©nam"] == title and "hl.load(" in found.tags["©cmt"]


@pytest.mark.thorough
def test_without_an_encoder_the_browser_records_and_says_that_there_are_no_tags(browser: Browser, address: str):
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.add_init_script("delete window.VideoEncoder")  # as on a page without a secure connection
    menu = see(page, address, **TEXT, path="452")
    written(page)
    found = film.webm(saved(menu, "WebM"))
    assert found.kind == "webm" and found.frames >= 2
    expect(menu.get_by_role("status")).to_contain_text(WORD["film_untagged"])
    context.close()


def test_where_nothing_moves_a_sentence_says_what_to_do(page: Page, address: str):
    menu = see(page, address, **TEXT)
    menu.get_by_role("button", name="GIF", exact=True).click()
    expect(menu.get_by_role("status")).to_have_text(generate_words.COMPONENT["film_nothing"])


@pytest.mark.thorough
def test_a_training_is_played_from_its_first_step(page: Page, address: str):
    menu = see(page, address, view="train", task="copy", at="150")
    root = page.locator(".hl[data-painted]:visible").first
    expect(root).to_have_attribute("data-kept", "1")
    found = film.webm(saved(menu, "WebM"))
    assert found.size == SIZE and found.seconds == pytest.approx(80 * 0.1 + 2.5)
    assert found.tags["TITLE"] == train_words.COMPONENT["title"].format(task="Copy", layers=2)
    assert (
        "600" in found.tags["DESCRIPTION"] and "600 of 600" in found.tags["COMMENT"]
    )  # of its end, wherever the slider stands
    expect(root).to_have_attribute("data-at", "150")


@pytest.mark.thorough
def test_a_walk_is_every_step_in_motion_and_ends_by_escape(page: Page, address: str):
    menu = see(page, address, view="step", model="storyteller", text="Once upon a time", at="scores")
    root = page.locator(".hl[data-at]:visible").first
    steps = int(root.get_attribute("data-steps") or 0)
    assert steps > 15
    status = menu.get_by_role("status")
    menu.get_by_role("button", name="WebM", exact=True).click()
    expect(status).to_contain_text(" of ")
    eventually(page, lambda: expect(root).not_to_have_attribute("data-at", "scores"))
    page.keyboard.press("Escape")
    expect(status).to_have_text(WORD["film_cancelled"])
    expect(root).to_have_attribute("data-at", "scores")
    assert menu.is_visible()
    found = film.webm(saved(menu, "WebM"))
    assert found.seconds == pytest.approx(steps * (4 * 0.12 + 1.6))
    assert found.frames >= 5 * steps
    expect(root).to_have_attribute("data-at", "scores")
    assert "at=scores" in page.url


@pytest.mark.thorough
def test_what_a_visitor_chooses_meanwhile_ends_it_and_stays(page: Page, address: str):
    menu = see(page, address, view="train", task="copy")
    root = page.locator(".hl[data-painted]:visible").first
    expect(root).to_have_attribute("data-kept", "1")
    menu.get_by_role("button", name="GIF", exact=True).click()
    expect(menu.get_by_role("status")).to_contain_text(" of ")
    page.get_by_role("button", name=train_words.COMPONENT["table"], exact=True).dispatch_event("click")
    expect(menu.get_by_role("status")).to_have_text(WORD["film_changed"])
    expect(root).to_have_attribute("data-at", "600")
    page.wait_for_url(lambda url: "table=on" in url)
    assert not re.search(r"[?&]at=(?!600)", page.url)
