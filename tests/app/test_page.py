"""The few lines at the top of the page that make a link's theme win: in the page, and in nothing else."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from app.streamlit_edge.page import SCRIPTS, Scripted

PAGE = "<html><head><title>Streamlit</title><script></script></head></html>"


@pytest.fixture
def client() -> TestClient:
    def page(_) -> Response:
        return HTMLResponse(PAGE, headers={"etag": '"1"'})

    routes = [
        Route("/", page),
        Route("/text", lambda _: PlainTextResponse(PAGE)),
        Route("/missing", lambda _: HTMLResponse(PAGE, 404)),
        Route("/static/frame.html", page),
    ]
    app = Starlette(routes=routes)
    app.add_middleware(Scripted, more=[lambda: "more();\n"])
    return TestClient(app)


def test_the_page_gets_the_lines_once_and_before_any_script(client: TestClient):
    answer = client.get("/?theme=dark")
    sources = [*(path.read_text(encoding="utf-8") for path in SCRIPTS), "more();\n"]
    script = "".join(f"<script>\n{source}</script>\n" for source in sources)
    assert answer.text == PAGE.replace("<title>", script + "<title>")
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert "etag" not in answer.headers


def test_a_title_of_ours_takes_the_place_of_streamlit_s() -> None:
    app = Starlette(routes=[Route("/", lambda _: HTMLResponse(PAGE))])
    app.add_middleware(Scripted, head=lambda scope: f"<title>\\1 {scope['path']}</title><meta>")
    text = TestClient(app).get("/").text
    assert "<title>\\1 /</title><meta>" in text and "<title>Streamlit" not in text and text.count("<title>") == 1


@pytest.mark.parametrize("path", ["/text", "/missing", "/static/frame.html"])
def test_nothing_else_is_touched(client: TestClient, path: str):
    assert client.get(path).text == PAGE


def test_what_a_link_says_never_reaches_the_page(client: TestClient):
    assert client.get("/?theme=</script><b>").text == client.get("/").text
