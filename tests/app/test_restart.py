"""The words for visitors while a server restarts: on a page that is left open, and on one that comes in the meantime."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from app import languages
from app.shell import closing
from app.shell import words as shell_words
from app.transport import admission, words
from tests import servers
from tests.app.browsing import Screen, eventually, running
from tests.servers import ROOT

APP = "app/main.py"


def test_the_page_that_proxies_show_is_the_one_of_a_server_that_ends() -> None:
    assert (ROOT / "deploy" / "restarting.html").read_text("utf-8") == f"{admission.page(words.CLOSING)}\n"


def test_a_page_says_that_its_server_has_gone_until_it_is_back(screen: Screen) -> None:
    page = screen.open().page
    box, happens = (
        page.locator("#headlight-away"),
        "([name, detail]) => dispatchEvent(new CustomEvent(name, { detail }))",
    )
    for code, said in ((1012, "restarts"), (1006, "lost")):
        page.evaluate(happens, ["headlight-lost", code])
        expect(page.get_by_role("status").and_(box)).to_have_text("".join(shell_words.AWAY[said].values()))
        page.evaluate(happens, ["headlight-handshakes", 0])
        expect(box).to_have_count(0)
    page.evaluate("postMessage({ type: 'CLIENT_ERROR_DIALOG', error: 'Bad message format' })")
    expect(page.get_by_role("alert").and_(box)).to_have_text("".join(shell_words.AWAY["stopped"].values()))


@contextmanager
def again(address: str, log: Path) -> Iterator[None]:
    """The server once more, at the same address."""
    with log.open("a") as out:
        command = [*servers.command(APP), address.rpartition(":")[2]]
        server = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
    try:
        servers.wait_until_ready(address, server.pid, log)
        yield
    finally:
        server.kill()
        server.wait()


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "said"), [(signal.SIGTERM, "restarts"), (signal.SIGKILL, "lost")])
def test_pages_outlast_a_restart_in_words_of_ours(
    browser: Browser, tmp_path: Path, number: signal.Signals, said: str
) -> None:
    log = tmp_path / "log"
    laptop = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    phone = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark", reduced_motion="reduce")
    with running(servers.command(APP), log, ROOT) as (address, server):
        screen = Screen(laptop.new_page(), address).open("?text=My+own+words")
        small = Screen(phone.new_page(), address).open("?lang=de&text=My+own+words")
        newcomer = laptop.new_page()
        in_vain: list[str] = []
        newcomer.on("requestfailed", lambda request: in_vain.append(request.url))

        def tries() -> None:
            assert in_vain, "a page that waits asks again while nothing listens"

        server.send_signal(number)
        if number == signal.SIGTERM:
            while (answer := newcomer.goto(f"{address}/?text=A+link")) is None or answer.status != 503:
                assert server.poll() is None
            expect(newcomer.get_by_role("status")).to_contain_text(words.CLOSING)
        server.wait(closing.LONGEST + 20)
    for page, language in ((screen.page, "en"), (small.page, "de")):
        with languages.speaking(language):
            expected = "".join(shell_words.AWAY[said].values())
        expect(page.get_by_role("status").and_(page.locator("#headlight-away"))).to_have_text(expected)
        page.get_by_test_id("stConnectionStatus").wait_for(state="attached")
        expect(page.get_by_test_id("stConnectionStatus")).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    with screen.page.expect_console_message(lambda it: "Is Streamlit still running" in it.text, timeout=60_000):
        pass  # after its sixth ping in vain
    expect(screen.page.get_by_text("Connection error")).to_have_count(0)
    if number == signal.SIGTERM:
        eventually(newcomer, tries)
    with again(address, log):
        for page in (screen.page, small.page):
            expect(page.locator("#headlight-away")).to_have_count(0, timeout=60_000)
        assert {"My", "own", "words"} <= {*screen.tokens()}
        if number == signal.SIGTERM:
            newcomer.locator(".hl[data-painted]").wait_for(timeout=60_000)  # by then the other page's script has run
            screen.run_text("And these are new")
            assert "new" in screen.tokens()
        for context in (laptop, phone):
            context.close()
