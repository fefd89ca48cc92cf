"""Rooms on a plain page, without Streamlit: the product's routes in the test process, and a page that mounts any room from a link.

A page is kept as long as the process has tests, and shows one room after another without a reload. docs/developing.md explains which
tests belong here.
"""

from __future__ import annotations

import json
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from weakref import WeakKeyDictionary

import pytest
import streamlit
import uvicorn
from playwright.sync_api import Browser, Error, Page, expect
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from app import languages
from app.kit import stage
from app.languages import spoken
from app.session import examples
from app.session import models as session_models
from app.shell import projector, routes, style
from app.streamlit_edge import page as streamlit_page
from app.transport import modules
from tests.app import models
from tests.app.browsing import PATIENCE, ROOT, Screen
from tests.app.served import local

HERE = Path(__file__).parent
STATIC = Path(streamlit.__file__).parent / "static" / "static"
GALLERY = "tests/app/gallery.py"  # the APP of a module whose tests choose among more models
SCRIPTS = ("history.js", "spoken.js", "theme.js")  # of the page, for light or dark, the projector and steps
FONT = '"Source Sans", sans-serif'


def html() -> str:
    """The page, with the product's own scripts and style around a room."""
    scripts = [(streamlit_page.HERE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
    given = {
        "LANGUAGE": languages.current(),
        "SCRIPTS": "".join(f"<script>\n{source}</script>\n" for source in (*scripts, projector.script())),
        "STYLE": style.page_style(),
        "FONT": next((STATIC / "media").glob("SourceSansVF-Upright*.woff2")).name,
        "LIGHT": variables(theme["light"]),
        "DARK": variables(theme["dark"]),
    }
    found = (HERE / "plain.html").read_text(encoding="utf-8")
    for name, value in given.items():
        found = found.replace("{{" + name + "}}", value)
    return found


def variables(theme: dict[str, Any]) -> str:
    """The variables of Streamlit's theme that rooms read."""
    named = {"primary": "primaryColor", "text": "textColor", "background": "backgroundColor"}
    return "".join(f"--st-{name}-color: {theme[key]}; " for name, key in named.items()) + f"--st-font: {FONT};"


async def page(_: Request) -> Response:
    return HTMLResponse(html())


async def script(_: Request) -> Response:
    return FileResponse(HERE / "plain.js", media_type="text/javascript")


async def module_names(request: Request) -> Response:
    """Where the module of a room is, and those that the page itself uses."""
    names = {
        "entry": stage.ENTRIES[request.path_params["room"]],
        "mount": "kit/browser/mount.js",
        "messages": "kit/browser/messages.js",
    }
    return JSONResponse({name: modules.address(module) for name, module in names.items()})


def application() -> Starlette:
    """The product's routes, and the page."""
    own = [
        Route("/", page),
        Route("/plain.js", script),
        Route("/plain/modules/{room}", module_names),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Starlette(routes=[*own, *routes.ROUTES], middleware=[Middleware(spoken.Spoken)])


@contextmanager
def serving() -> Iterator[str]:
    """The address of the page, answered by a thread of this process."""
    server = uvicorn.Server(uvicorn.Config(application(), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    yield f"http://{host}:{port}"
    server.should_exit = True
    thread.join(10)


@contextmanager
def offered(script: str) -> Iterator[None]:
    """The models of an application's script are there for as long as this is open: those of the gallery beside our own."""
    more = {spec.id: spec for spec in models.SPECS} if script == GALLERY else {}
    engine = local().engine
    load = engine.load_model
    session_models.MODELS.update(more)
    session_models.TITLES.update({name: spec.title for name, spec in more.items()})
    engine.load_model = lambda name, **options: (models.load if name in more else load)(name, **options)
    try:
        yield
    finally:
        engine.load_model = load
        for name in more:
            del session_models.MODELS[name], session_models.TITLES[name]


@cache
def first_text(model: str) -> str:
    return examples.first_text(session_models.spec_of(model))


def completed(query: str) -> str:
    """A link with the model and the text that the application would fill in: a link to a route says all of it."""
    said = dict(parse_qsl(urlsplit(query).query, keep_blank_values=True))
    if "text" not in said:
        titles = {title: name for name, title in session_models.TITLES.items()}
        named = said.get("model", session_models.DEFAULT)
        model = titles.get(named, named)
        said |= {"model": session_models.spec_of(model).title, "text": first_text(model)}
    said.setdefault("view", "explore")
    return f"?{urlencode(said)}"


class Plain(Screen):
    """A room on the plain page; used as a Screen, but for what stands around a room in the application."""

    def arrive(self, query: str = "", in_document: bool = False) -> None:
        """Open a link; ready when there is something of its picture, whose run may still continue."""
        self._show(query, in_document, is_whole=False)
        self.painted()

    def open(self, query: str = "", in_document: bool = False) -> Plain:
        """Open a link; ready when its picture is there, whole, and laid out."""
        self._show(query, in_document, is_whole=True)
        return self

    def opened(self, query: str = "", in_document: bool = False) -> Plain:
        """The same, unless it is on the screen as it was opened, and no one has touched it."""
        untouched = "name => !plain.touched && plain.opened === `${name} ${location.href}`"
        try:
            is_open = self.page.evaluate(untouched, f"{query} {in_document}")
        except Error:  # a link to another page was pressed, which is there now
            once_there(self.page)
            is_open = False
        if not is_open:
            self.open(query, in_document)
        return self

    def _show(self, query: str, in_document: bool, is_whole: bool) -> None:
        link = completed(query)
        language = dict(parse_qsl(link[1:])).get("lang", "en")
        if self.page.evaluate("document.documentElement.lang") != language:
            self.page.goto(f"{self.address}/?lang={language}")
            once_there(self.page)
        asked = [link, in_document, f"{query} {in_document}", is_whole]
        self.page.evaluate("asked => plain.open(...asked)", asked)

    def run_text(self, text: str) -> None:
        """Have the room that is there show another text, as when one is typed, with what is chosen carried over."""
        said = dict(parse_qsl(urlsplit(self.page.url).query, keep_blank_values=True)) | {"text": text}
        said |= {"was": self.data().get("run", "")}
        self.page.evaluate("link => plain.read(link)", f"?{urlencode(said)}")


def once_there(page: Page) -> None:
    """Wait until the page's script has run."""
    expect(page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]')).to_be_attached(timeout=PATIENCE)


KEPT: WeakKeyDictionary[Browser, dict[str, Plain]] = WeakKeyDictionary()  # pages, by how they were made


@contextmanager
def visiting(browser: Browser, address: str, **options: Any) -> Iterator[Plain]:
    """The page of a visitor with these options of Browser.new_context(), kept from one test to the next.

    What the test before left of the room stays until another one is opened: opened() looks at that. All else is as on a new page.
    """
    kept = KEPT.setdefault(browser, {})
    name = json.dumps([address, options], sort_keys=True)
    screen = kept.get(name)
    if screen is None:
        page = browser.new_context(**options).new_page()
        page.goto(f"{address}/")
        once_there(page)
        screen = kept[name] = Plain(page, address)
    else:
        screen.listen()
    try:
        yield screen
        screen.leave()
        cleared(screen.page, options)
    except BaseException:
        del kept[name]
        screen.page.context.close()
        raise


def cleared(page: Page, options: dict[str, Any]) -> None:
    """The window and what the browser keeps are as they were when the page was new."""
    page.unroute_all()
    for other in page.context.pages:
        if other is not page:
            other.close()
    page.context.clear_permissions()
    page.context.clear_cookies()
    page.evaluate("(sessionStorage.clear(), localStorage.clear())")
    page.mouse.move(0, 0)
    if page.viewport_size != options["viewport"]:
        page.set_viewport_size(options["viewport"])
    page.emulate_media(
        color_scheme=options.get("color_scheme", "light"),
        reduced_motion=options.get("reduced_motion", "no-preference"),
        media="null",
        forced_colors="none",
    )


def opened(query: str, in_document: bool = False) -> Callable[..., Any]:
    """A fixture for the module that calls this: the page with this link on it.

    Tests that follow each other and only look at it share one mount; after one that does something it is opened again.
    """

    @pytest.fixture
    def found(plain: Plain) -> Plain:
        return plain.opened(query, in_document)

    return found


AnotherPlain = Callable[..., Plain]  # the fixture `plain_another`
