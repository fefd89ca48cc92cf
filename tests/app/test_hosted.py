"""A server that strangers use: headers, limits, places, what its operator sees, and how it ends."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, expect
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from app.session import answer
from app.session import words as session_words
from app.shell import words as shell_words
from app.transport import admission, bad_requests, logs, metrics, rate_limits, security_headers, tracebacks, words
from tests.app.browsing import PATIENCE, ROOT, Screen, eventually, serving
from tests.app.course_page import frame
from tests.app.outside import proxying
from tests.app.script import box, message, said, visit

APP = "app/main.py"
SECRET = "Marmalade"  # in a visitor's sentence, and nowhere else


# headers


def headers_of(url: str) -> dict[str, str]:
    try:
        with urlopen(url) as answer:
            return {name.lower(): value for name, value in answer.headers.items()}
    except HTTPError as error:
        return {name.lower(): value for name, value in error.headers.items()}


def test_every_answer_says_what_a_browser_may_do_with_it(address: str) -> None:
    for path in ("/", "/?q=x", "/healthz", "/metrics", "/headlight/tile", "/static/none.js", "/nothing/here"):
        found = headers_of(address + path)
        for name, value in security_headers.EVERYWHERE.items():
            assert found[name.lower()] == value, path
    assert headers_of(f"{address}/headlight/tile")["content-security-policy"] == security_headers.NO_PAGE
    page = headers_of(address)["content-security-policy"]
    assert "unsafe-eval" not in page and "*" not in page and "http" not in page
    script = next(rule for rule in page.split("; ") if rule.startswith("script-src"))
    assert "unsafe-inline" not in script and len(re.findall("'sha256-", script)) >= 2
    assert "frame-ancestors 'self'" in page.split("; ")
    with urlopen(Request(address, method="HEAD")) as only:  # as who looks for these headers asks
        assert only.headers["content-security-policy"] == page and only.read() == b""


def test_nobody_leaves_a_file_in_the_server_s_memory(address: str) -> None:
    """Streamlit takes 200 MB at a time from whoever has the page open, though no room asks for a file."""
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{address}{admission.UPLOADS}a-session/a-file", b"x", method="PUT"))
    assert refused.value.code == 404 and refused.value.read().decode() == words.NO_FILES


@pytest.mark.thorough
def test_another_site_shows_it_in_a_frame_only_where_the_operator_says_so(
    browser: Browser, address: str, elsewhere: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, shown = elsewhere
    page = browser.new_context(reduced_motion="reduce").new_page()
    page.set_default_timeout(PATIENCE)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    shown[0] = frame(f"{address}/?embed=true")
    with page.expect_event("console", lambda message: "frame-ancestors" in message.text):
        page.goto(site)
    monkeypatch.setenv(security_headers.EMBED, site)
    monkeypatch.setenv(admission.MOST, "2")
    with serving(APP, tmp_path / "log") as open_address:
        shown[0] = frame(f"{open_address}/?embed=true")
        page.goto(site)
        page.frame_locator("iframe").locator(".hl[data-painted]").wait_for()
        # and there are two places
        second = browser.new_context(reduced_motion="reduce")
        Screen(second.new_page(), open_address).open()
        third = browser.new_context(reduced_motion="reduce").new_page()
        answer = third.goto(f"{open_address}/?text=Kept")
        assert answer is not None and answer.status == 503 and answer.headers["retry-after"] == str(admission.AGAIN)
        expect(third.get_by_role("status")).to_contain_text(words.FULL.format(n=2))
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"{open_address}/readyz")
        second.close()
        third.get_by_role("textbox", name="Sentence", exact=True).wait_for(
            timeout=PATIENCE + 2000 * admission.AGAIN
        )  # by itself, as it said
        assert "text=Kept" in third.evaluate("location.search")
        third.context.close()
        page.context.close()
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "value", ["course.example.edu", "https://a.example/page", "javascript:x", "'self'", "https://a; x"]
)
def test_what_is_no_origin_is_said_when_the_server_starts(value: str) -> None:
    with pytest.raises(ValueError, match="HEADLIGHT_EMBED names the sites"):
        security_headers.ancestors(value)
    assert security_headers.ancestors("https://a.example http://localhost:8000 https://*.b.example") == (
        "https://a.example",
        "http://localhost:8000",
        "https://*.b.example",
    )


# limits


@pytest.mark.parametrize(
    "value", ["seconds", "seconds=0/1", "seconds=1/0", "tiles=1/1", "seconds=-1/2", "seconds=1/1;x"]
)
def test_a_limit_that_says_nothing_is_refused_when_the_server_starts(value: str) -> None:
    with pytest.raises(ValueError, match="HEADLIGHT_LIMITS changes what one visitor may ask for"):
        rate_limits.rates(value)


def test_limits_are_the_operators() -> None:
    assert rate_limits.rates("") == rate_limits.RATES and rate_limits.rates("off") == {}
    assert rate_limits.rates("seconds=60/2 megabytes=100/1.5") == {
        **rate_limits.RATES,
        "seconds": rate_limits.Rate(60, 2),
        "megabytes": rate_limits.Rate(100, 1.5),
    }
    for value in ("0", "-1", "many", "1" * 20, "²"):
        with pytest.raises(ValueError, match="HEADLIGHT_MAX_VISITORS is how many"):
            admission.most(value)
    assert admission.most("200") == 200


def test_whoever_types_too_much_is_told_how_long_to_wait_and_keeps_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    balances = rate_limits.Balances({"seconds": rate_limits.Rate(2, 0.1)})
    monkeypatch.setattr(rate_limits, "balances", balances)
    monkeypatch.setattr(answer, "accounts", lambda: ("one visitor", "at home"))
    app = visit("explore", text="The first of two")
    for text in (f"{SECRET} on toast", "One too many"):
        assert "more than one visitor can have" not in said(app)
        before = message(app, "explore_stage")["key"]
        balances.spend(("one visitor", "at home"), "seconds", 1.5)  # what its runs took
        box(app, shell_words.TEXT).set_value(text).run()
    assert re.search(r"more than one visitor can have at a time\. Try again in \d+ seconds", said(app))
    assert message(app, "explore_stage")["key"] == before and box(app, shell_words.TEXT).value == "One too many"


@pytest.mark.thorough
def test_the_log_and_the_counts_know_every_run_and_nobodys_text(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(logs.SETTING, "json")
    log = tmp_path / "log"
    with serving(APP, log) as address:
        screen = Screen(browser.new_context(reduced_motion="reduce").new_page(), address).open()
        screen.run_text(f"{SECRET} on toast")
        other = Screen(browser.new_context(reduced_motion="reduce").new_page(), address).open()
        other.run_text("Another person")
        with urlopen(f"{address}/metrics") as answer:
            told = answer.read().decode()
        assert "headlight_visitors 2.0" in told
        assert re.search(r'headlight_runs_total\{model="minilm",outcome="done"\} [3-9]', told)
        for page in (screen, other):
            page.page.context.close()
    every = [json.loads(line) for line in log.read_text().splitlines()]  # the start and the end too
    lines = [line["run"] for line in every if "run" in line]
    assert {line["logger"] for line in every if "run" not in line} == {"headlight"}
    assert len(lines) >= 3 and all(line["outcome"] == "done" and line["tokens"] > 2 for line in lines)
    assert "armalade" not in log.read_text() + told  # nobody's text is in the log, or in what is counted


# places


def visited(most: int) -> TestClient:
    async def page(_: object) -> HTMLResponse:
        return HTMLResponse("the page")

    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.receive()

    routes = [
        Route("/", page),
        Route("/static/x.js", page),
        Route("/healthz", page),
        WebSocketRoute(admission.SOCKET, socket),
    ]
    admission.house.most = most
    return TestClient(Starlette(routes=routes, middleware=[Middleware(admission.Doors)]))


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> admission.House:
    monkeypatch.setattr(admission, "house", admission.House())
    return admission.house


def test_nobody_is_let_in_while_all_places_are_taken(house: admission.House) -> None:
    client, browser = visited(1), {"accept": "text/html"}
    assert client.get("/", headers=browser).text == "the page"
    with client.websocket_connect(admission.SOCKET):
        assert house.full
        answer = client.get("/?q=<b>", headers=browser)
        assert answer.status_code == 503 and words.FULL.format(n="1") in answer.text and "<b>" not in answer.text
        # The page tries the same address again by itself.
        assert answer.headers["retry-after"] == str(admission.AGAIN)
        assert f'<meta http-equiv="refresh" content="{admission.AGAIN}">' in answer.text
        assert client.get("/healthz").status_code == 200 and client.get("/static/x.js").status_code == 200
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(admission.SOCKET):
            pass
    assert house.inside == 0 and client.get("/", headers=browser).text == "the page"


def test_nobody_is_let_in_while_the_server_ends(house: admission.House) -> None:
    client = visited(5)
    house.closing = True
    assert words.CLOSING in client.get("/", headers={"accept": "text/html"}).text


# counts


def test_a_traceback_says_where_and_of_what_kind_but_quotes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "_logRecordFactory", logging.getLogRecordFactory())  # as it was, afterwards
    tracebacks.keep_texts_out()
    log, written = logging.Logger("a library"), io.StringIO()
    log.addHandler(logging.StreamHandler(written))

    def read(text: str) -> object:
        try:
            return {}[text]
        except KeyError as error:
            raise ValueError(f"no number: {text}") from error

    for fails in (lambda: read(SECRET), lambda: [][1], lambda: Path("/nowhere/at/all").read_text()):
        try:
            fails()
        except Exception as error:
            log.exception("It failed")
            error.__context__ = error  # one that leads in a circle
            log.exception("It failed again")
    said = written.getvalue()
    assert SECRET not in said
    assert said.count("KeyError\nTraceback") == 2 and said.count("\nValueError\n") == 2 and "return {}[text]" in said
    assert "\nIndexError\n" in said and "FileNotFoundError: [Errno 2] No such file" in said


@pytest.mark.thorough
def test_a_run_that_breaks_is_a_sentence_its_text_stays_out_of_the_log_and_the_next_one_works(
    browser: Browser, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with serving("tests/app/slow.py", log) as address:
        screen = Screen(browser.new_context(reduced_motion="reduce").new_page(), address).open()
        before = screen.data()["run"]
        screen.type(f"{SECRET} breaks")
        screen.page.get_by_text(session_words.BROKEN).wait_for()
        assert screen.data()["run"] == before
        screen.run_text("The next one works")
        screen.page.context.close()
    written = log.read_text()
    assert "A request failed" in written and "KeyError" in written and "armalade" not in written


# a network that lets no websocket through


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_a_page_to_which_no_websocket_comes_says_so_and_goes_on_once_one_does(
    browser: Browser, address: str, scheme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(60_000)  # Streamlit waits longer before each try
    with proxying(address, websockets=False) as proxy:
        page.goto(f"http://127.0.0.1:{proxy.port}/?text=Kept")
        alert = page.get_by_role("alert").and_(page.locator("#headlight-refused"))
        alert.wait_for()
        assert proxy.refused >= 3
        title, why, tries = (shell_words.REFUSED[name] for name in ("title", "why", "tries"))
        expect(alert.get_by_role("heading")).to_have_text(str(title))
        expect(alert.locator("p")).to_have_text(str(why))
        expect(alert.get_by_role("listitem")).to_have_text(
            [text.replace("{host}", f"127.0.0.1:{proxy.port}") for text in tries]
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        proxy.websockets = True
        page.locator(".hl[data-painted]").wait_for()
        assert "text=Kept" in page.url
        expect(alert).to_have_count(0)
    context.close()


# the end


def test_who_is_asked_to_end_is_the_server_and_no_shell(tmp_path: Path) -> None:
    """As docs/hosting.md starts it: a shell that stayed would end at SIGTERM, and the server would never hear of it."""
    line = (ROOT / "Procfile").read_text().removeprefix("web: ")
    (tmp_path / "streamlit").write_text("#!/bin/sh\necho $HEADLIGHT_LOG $$ $*\n")
    (tmp_path / "streamlit").chmod(0o755)
    environment = {"PORT": "8501", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    started = subprocess.Popen(["sh", "-c", line], env=environment, stdout=subprocess.PIPE, text=True)
    said, _ = started.communicate()
    assert said.startswith(f"json {started.pid} run app/main.py --server.port 8501 ")


@pytest.mark.thorough
def test_a_server_that_is_asked_to_end_answers_what_runs_and_lets_nobody_new_in(
    browser: Browser, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with serving("tests/app/slow.py", log) as address:
        screen = Screen(browser.new_context(reduced_motion="reduce").new_page(), address).open()
        before = screen.data()["run"]
        screen.type("Wait a while for me")
        screen.page.locator(".hl-working").wait_for()
        port = address.rsplit(":", 1)[1]
        subprocess.run(["pkill", "-TERM", "-f", f"server.port {port}"], check=True)
        newcomer = browser.new_context().new_page()
        for _ in range(100):
            answer = newcomer.goto(address)
            if answer is not None and answer.status == 503:
                break
        assert words.CLOSING in newcomer.content()
        urlopen(f"{address}/go-on").close()
        screen.until(f"root.dataset.run !== '{before}' && !root.dataset.underway")
        assert "while" in screen.tokens()

        def ended() -> None:
            assert "Ended with 0 runs left." in log.read_text()

        eventually(newcomer, ended)
        for page in (newcomer, screen.page):
            page.context.close()
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize(
    "error", [RuntimeError("a bug"), RecursionError(), KeyError("text of a visitor"), MemoryError()]
)
def test_whatever_fails_an_answer_is_a_sentence_that_is_counted_and_has_headers(
    error: Exception, caplog: pytest.LogCaptureFixture
):
    async def fails(_: object) -> Response:
        raise error

    around = [
        Middleware(security_headers.Safe, no_pages=["/headlight/"]),
        Middleware(rate_limits.Metered),
        Middleware(bad_requests.Failing),
    ]
    before = metrics.ANSWERS.labels("500")._value.get()
    with TestClient(Starlette(routes=[Route("/headlight/fails", fails)], middleware=around)) as client:
        answer = client.get("/headlight/fails")
    assert (answer.status_code, answer.text) == (500, words.FAILED)
    assert answer.headers.items() >= {(name.lower(), value) for name, value in security_headers.EVERYWHERE.items()}
    assert answer.headers["content-security-policy"] == security_headers.NO_PAGE
    assert metrics.ANSWERS.labels("500")._value.get() == before + 1
    assert "/headlight/fails failed" in caplog.text


def test_an_answer_that_has_begun_breaks_off():
    async def parts() -> AsyncIterator[bytes]:
        yield b"a"
        raise RuntimeError("a bug")

    async def fails(_: object) -> Response:
        return StreamingResponse(parts())

    app = Starlette(routes=[Route("/headlight/fails", fails)], middleware=[Middleware(bad_requests.Failing)])
    with TestClient(app) as client, pytest.raises(RuntimeError):
        client.get("/headlight/fails")
