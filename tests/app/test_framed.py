"""Headlight in the pages of others: in a frame, and as a link with its title, its sentence and its picture."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qsl, quote, urlsplit
from urllib.request import Request, urlopen

import pytest
import uvicorn
from httpx2 import Response
from PIL import Image
from playwright.sync_api import Browser, FrameLocator, Page, expect
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request as StarletteRequest
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app.shell import link_preview, words
from app.streamlit_edge import page
from app.transport import security_headers, visitors
from tests.app.browsing import PATIENCE, ROOT, eventually, serving, stays
from tests.app.course_page import HEARS, frame

APP = "app/main.py"
SITE = "https://course.example"
SHOWN = f"view=explore&model=copy&text={quote('dabbi=')}"


class Head(HTMLParser):
    """The elements of a page that others read: <title>, <meta> and <link>."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.title, self.meta, self.links = "", {}, {}
        self.in_title = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        self.in_title = tag == "title"
        if tag == "meta":
            self.meta[said.get("property") or said.get("name")] = said.get("content")
        if tag == "link":
            self.links[said.get("type")] = said.get("href")

    def handle_data(self, data: str) -> None:
        if self.in_title:
            self.title += data
            self.in_title = False


def read(address: str, **headers: str) -> str:
    with urlopen(Request(address, headers=headers)) as answer:
        return answer.read().decode()


def status(address: str) -> tuple[int, str]:
    try:
        with urlopen(address) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_a_link_has_a_title_a_sentence_and_a_picture_before_any_script(address: str) -> None:
    head = Head(read(f"{address}/?view=masks&text={quote('<b>secret</b>')}"))
    assert head.title == head.meta["og:title"] == words.PREVIEW_TITLE
    assert head.meta["description"] == head.meta["og:description"] == words.PREVIEW
    assert head.meta["twitter:card"] == "summary_large_image"
    assert head.meta["og:image"] == f"{address}/headlight/preview.png"
    with urlopen(head.meta["og:image"]) as answer:
        assert answer.headers["content-type"] == "image/png"
        picture = Image.open(answer)
        assert picture.size == link_preview.SIZE
    # Where no site may show it in a frame, nothing offers one.
    assert "application/json+oembed" not in head.links and "headlight-frames" not in head.meta
    assert status(f"{address}/headlight/oembed?url={quote(address, safe='')}") == (404, words.OEMBED_NONE)


def test_a_host_that_is_none_is_repeated_nowhere(address: str) -> None:
    page = read(address, Host='marmalade"><script>')
    assert "marmalade" not in page and Head(page).title == words.PREVIEW_TITLE
    behind = Head(read(address, **{"Host": "lab.example.org", "X-Forwarded-Proto": "https"}))
    assert behind.meta["og:image"] == "https://lab.example.org/headlight/preview.png"


@pytest.fixture
def framed(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A server that SITE may show in a frame."""
    monkeypatch.setenv(security_headers.EMBED, SITE)
    policy = partial(security_headers.policy, embedding=security_headers.ancestors())
    routes = [
        Route("/", lambda _: HTMLResponse("<html><head><title>Streamlit</title></head></html>")),
        *link_preview.ROUTES,
    ]
    middleware = [Middleware(page.Scripted, policy=policy, head=link_preview.head)]
    with TestClient(Starlette(routes=routes, middleware=middleware), "http://headlight.example") as client:
        yield client


def test_a_server_that_a_site_may_show_says_so_and_answers_oembed(framed: TestClient) -> None:
    answer = framed.get(f"/?{SHOWN}")
    assert f"frame-ancestors 'self' {SITE}" in answer.headers["content-security-policy"].split("; ")
    head = Head(answer.text)
    assert head.meta["headlight-frames"] == "allowed"
    link = head.links["application/json+oembed"]
    found = framed.get(link).json()
    assert (found["version"], found["type"], found["width"], found["height"]) == ("1.0", "rich", 1000, 700)
    src = re.findall(r'src="([^"]+)"', found["html"])[0].replace("&amp;", "&")
    assert dict(parse_qsl(urlsplit(src).query)) == {**dict(parse_qsl(SHOWN)), "embed": "true"}
    small = framed.get(f"{link}&maxwidth=500&maxheight=10").json()
    assert (small["width"], small["height"]) == (500, 320)

    def asked(url: str, **more: str) -> Response:
        return framed.get("/headlight/oembed", params={"url": url, **more})

    for other in ("https://other.example/?x", "http://headlight.example/metrics", "javascript:alert(1)"):
        assert asked(other).status_code == 404
    xml = asked("http://headlight.example/", format="xml")
    assert (xml.status_code, xml.text) == (501, words.OEMBED_JSON)
    assert "<script" not in asked('http://headlight.example/?text="><script>').json()["html"]


ASKS = """<!doctype html><title>A page</title><body><script>
fetch("headlight/who").then((answer) => answer.text()).then((text) => document.body.append(text));
</script>"""


@contextmanager
def naming(site: str) -> Iterator[str]:
    """The address of a server that `site` may show in a frame. Its page says the name that its own requests are known by."""

    async def who(request: StarletteRequest) -> PlainTextResponse:
        return PlainTextResponse(visitors.name_of(request.scope) or "nobody")

    routes = [Route("/", lambda _: HTMLResponse(ASKS)), Route("/headlight/who", who)]
    app = Starlette(routes=routes, middleware=[Middleware(visitors.Named, embedding=(site,))])
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(20)


def test_a_frame_has_a_name_that_stays_and_that_no_other_site_shares(
    browser: Browser, elsewhere: tuple[str, list[str]]
) -> None:
    site, shown = elsewhere
    with naming(site) as address:
        shown[0] = frame(address)
        context = browser.new_context()
        page = context.new_page()

        def name_in(where: Page | FrameLocator) -> str:
            expect(where.locator("body")).to_have_text(re.compile(r"\S{43}|nobody"))
            return where.locator("body").inner_text().strip()

        page.goto(site)
        framed = name_in(page.frame_locator("iframe"))
        page.goto(site)
        assert name_in(page.frame_locator("iframe")) == framed != "nobody"
        page.goto(address)
        assert name_in(page) not in (framed, "nobody")
        context.close()


@pytest.mark.thorough
def test_a_course_page_shows_one_screen_and_hears_its_height(
    browser: Browser, elsewhere: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, shown = elsewhere
    monkeypatch.setenv(security_headers.EMBED, site)
    with serving(APP, tmp_path / "log") as address:
        context = browser.new_context(viewport={"width": 1100, "height": 900}, reduced_motion="reduce")
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.set_default_timeout(PATIENCE)

        # the page without a bar, and an address that keeps saying so
        shown[0] = frame(f"{address}/?embed=true&{SHOWN}") + HEARS
        page.goto(site)
        inside = page.frame_locator("iframe")
        inside.locator(".hl[data-painted]").first.wait_for()
        expect(inside.locator(".st-key-bar")).to_be_hidden()

        def as_high_as_its_room() -> None:
            box = page.locator("iframe").bounding_box()
            assert box is not None and box["height"] != 600 + 4

        eventually(page, as_high_as_its_room)
        # A frame and its room do not drive each other up, once the numbers that came last have their place.
        stays(page, lambda: page.locator("iframe").bounding_box())
        framed = page.frames[1]
        framed.wait_for_url(lambda url: "layer=" in url)
        assert "embed=true" in framed.url
        inside.locator(".strip [data-i='5']").first.click()
        framed.wait_for_url(re.compile("query=5"))
        assert "embed=true" in framed.url

        # the way out is this screen, without the frame
        link = inside.get_by_role("link", name=words.OPEN_FULL)
        link.focus()
        whole = link.get_attribute("href") or ""
        now = dict(parse_qsl(urlsplit(framed.url).query))
        assert dict(parse_qsl(urlsplit(whole).query)) == {name: text for name, text in now.items() if name != "embed"}

        # a line of HTML for exactly this screen
        page.goto(whole)
        page.locator(".hl[data-painted]").first.wait_for()
        page.get_by_role("button", name="Copy frame").click()

        def copied() -> None:
            assert "<iframe" in page.evaluate("navigator.clipboard.readText()")

        eventually(page, copied)
        line = page.evaluate("navigator.clipboard.readText()")
        shown[0] = line
        page.goto(site)
        page.frame_locator("iframe").locator(".hl[data-painted]").first.wait_for()
        again = dict(parse_qsl(urlsplit(page.frames[1].url).query))
        assert again["text"] == "dabbi=" and again["embed"] == "true" and "theme" not in again

        # a frame that may load nothing says why, and what to do
        shown[0] = frame(f"{address}/?embed=true&{SHOWN}", 'sandbox="allow-scripts allow-popups"')
        page.goto(site)
        alert = page.frame_locator("iframe").get_by_role("alert")
        expect(alert).to_contain_text(words.EMPTY_FRAME)
        expect(alert.get_by_role("link", name=words.OPEN_FULL)).to_have_attribute("href", re.compile("text=dabbi"))
        context.close()


def test_the_docs_give_the_lines_that_are_tested() -> None:
    assert HEARS in (ROOT / "docs" / "hosting.md").read_text("utf-8")
