"""Every room through Streamlit: a link opens it, a selection is in the address, Back undoes it, and the new link opens it again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from tests.app.axe import faults
from tests.app.browsing import eventually
from tests.app.every_room import ROOMS, WRONG, drawn, measured, see
from tests.app.pages import lend
from tests.app.planning_screen import PATIENCE

APP = "app/main.py"
MODEL = "Storyteller"  # the smallest model that every room can use
# This machine's free memory changes with every run.
OPENS = {"memory": {"plan_model": "gpt2", "plan_phase": "run", "memory_card": "RTX 4090"}}
REST = 0.5  # seconds; Generate reads the layers once its ring has rested for 80 ms, and an address waits 100 ms for its turn
UNANSWERED: list[Request] = []
POLICY = "Content Security Policy"


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    """One visitor who opens room after room. Nothing in the page fails, and the policy of the page stops none of its own scripts."""
    wrong: list[str] = []

    def failed(error: object) -> None:
        wrong.append(str(error))

    def said(message: ConsoleMessage) -> None:
        if POLICY in message.text or "Permissions-Policy" in message.text:
            wrong.append(message.text)

    def asked(request: Request) -> None:
        if request.resource_type == "fetch":
            UNANSWERED.append(request)

    def answered(request: Request) -> None:
        if request in UNANSWERED:
            UNANSWERED.remove(request)

    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.set_default_timeout(PATIENCE)
        page.on("request", asked)
        page.on("requestfinished", answered)
        page.on("requestfailed", answered)
        page.on("pageerror", failed)
        page.on("console", said)
        yield page
        page.remove_listener("request", asked)
        page.remove_listener("requestfinished", answered)
        page.remove_listener("requestfailed", answered)
        page.remove_listener("pageerror", failed)
        page.remove_listener("console", said)
        assert wrong == []


def turn(page: Page) -> None:
    page.keyboard.press("PageDown")


def choose_bits(page: Page) -> None:
    page.locator(".hl.fit .sentence").get_by_role("button", name="8", exact=True).click()


def choose_part(page: Page) -> None:
    page.get_by_role("radiogroup").get_by_text("Parameters", exact=True).click()


SELECT: dict[str, Callable[[Page], None]] = {
    **dict.fromkeys(ROOMS, turn),
    "memory": choose_bits,
    "compute": choose_part,
}


WRITES_ITSELF = {
    "generate": {"path", "f"}
}  # parameters that a room adds to its address once its first answers have come


def said(url: str) -> dict[str, str]:
    """The parameters of an address, without the list of those that a rule selected."""
    found = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    return {name: text for name, text in found if name != "rule"}


def sentences(page: Page) -> list[str]:
    return page.locator(".hl :is(h2, .fact, .big)").all_inner_texts()


@pytest.mark.thorough(but=8)
@pytest.mark.parametrize("room", ROOMS)
def test_a_room_opens_and_a_selection_in_it_is_a_link_that_back_undoes(page: Page, address: str, room: str) -> None:
    see(page, address, room, model=MODEL, **OPENS.get(room, {}))
    assert page.get_by_test_id("stException").count() == 0
    assert faults(page) == [] and measured(page, WRONG) == []
    eventually(page, lambda: expect_parameters(page, WRITES_ITSELF.get(room, set())))
    settled(page)
    before, opened = said(page.url), sentences(page)

    SELECT[room](page)
    page.wait_for_url(lambda url: said(url) != before)
    drawn(page, room)
    settled(page)
    link, shown = page.url, sentences(page)

    page.go_back()
    eventually(page, lambda: expect_address(page, before))
    drawn(page, room)
    eventually(page, lambda: expect_sentences(page, opened))

    page.goto("about:blank")
    page.goto(link)
    drawn(page, room)
    assert said(page.url) == said(link)
    eventually(page, lambda: expect_sentences(page, shown))


def settled(page: Page) -> None:
    """Wait until every request of the page is answered, and the address has said for a while what the answers change."""
    drain = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(drain)  # a room asks when it draws
    address, since = page.url, time.monotonic()
    while time.monotonic() - since < REST:
        page.wait_for_timeout(30)
        page.evaluate(drain)
        is_writing = page.evaluate("Boolean(document.querySelector('.hl')?.dataset.writing)")  # words that still come
        if UNANSWERED or is_writing or page.url != address:
            address, since = page.url, time.monotonic()


def expect_address(page: Page, wanted: dict[str, str]) -> None:
    assert said(page.url) == wanted


def expect_sentences(page: Page, wanted: list[str]) -> None:
    assert sentences(page) == wanted


def test_words_that_generate_writes_by_itself_are_no_step_of_the_history(browser: Browser, address: str) -> None:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.goto(f"{address}/?view=generate&model={MODEL}")
        steps = page.evaluate("history.length")
        drawn(page, "generate")
        eventually(page, lambda: expect_parameters(page, {"path", "f"}))
        assert page.evaluate("history.length") == steps

        settled(page)
        before = said(page.url)["path"]
        page.keyboard.press(" ")  # writes on
        page.wait_for_url(lambda url: len(said(url).get("path", "")) > len(before))
        page.keyboard.press(" ")  # stops
        settled(page)
        assert page.evaluate("history.length") == steps + 1


def expect_parameters(page: Page, names: set[str]) -> None:
    assert names <= {*said(page.url)}


def test_a_script_that_is_put_into_the_page_is_stopped(browser: Browser, address: str) -> None:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        page.goto(address)
        with page.expect_event("console", lambda message: POLICY in message.text):
            page.evaluate("document.head.append(Object.assign(document.createElement('script'), {text: 'put = 1'}))")
        assert page.evaluate("window.put") is None
