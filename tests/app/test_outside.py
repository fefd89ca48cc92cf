"""Every address that is made begins with what the browser sees: any host, any path before the page, any path of the server's own."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, urljoin, urlsplit

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from app.classroom import routes as classroom
from app.classroom import sentences, square
from app.session import service
from app.shell import routes as shell_routes
from app.streamlit_edge import page as edge
from app.transport import rate_limits, routes, security_headers, visitors
from tests.app.browsing import ROOT
from tests.app.outside import Outside, outsides
from tests.app.school import TIRED, screen
from tests.app.served import ask
from tests.app.test_classroom import asking

SEED = int(os.environ["MUTANTS_SEED"])
CODE = "KXRM7TQD"


def is_capital(link: str, at: Outside) -> bool:
    """A link in capitals is the same link only where no other path is in it."""
    return not at.prefix and link == f"{at.page}r/{CODE}".upper()


def test_a_class_s_link_is_below_the_page_that_the_browser_sees() -> None:
    for at in outsides(SEED, 300):
        base = f"/{at.base}" if at.base else ""
        for host in (
            urlsplit(at.page).netloc,
            "127.0.0.1:9101",
            "headlight-7f9c:8501",
            "",
        ):  # as a proxy says it, or does not
            found = square.link(asking(host), at.page, base, "127.0.0.1", 9101)
            assert found.of(CODE) == f"{at.page}r/{CODE}" or is_capital(found.of(CODE), at)
            assert found.shown == f"{at.page.partition('://')[2]}r"
            assert found.unreachable == "", "it is an address that others know, wherever the process listens"


@pytest.mark.parametrize(
    "seen",
    [
        "javascript:alert(1)//", "ftp://a.example/", "https://a.example", "https://a.example/lab", "https://u:p@a.example/", "//a.example/",
        'https://a.example/"><b>/', "https://a.example/?x=/", "https://a.example/#/", "https://a.example/a b/", f"https://a.example/{'x' * 700}/",
        "https://a.example:123456/", "https://a.example/\n/", "data:text/html,/", "",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_page_is_not_followed(seen: str) -> None:
    assert square.link(asking("uni.example"), seen, "/lab", None, 8501).of(CODE) == f"http://uni.example/lab/r/{CODE}"


@pytest.mark.parametrize(
    "seen",
    [
        "http://localhost:8888/user/alice/proxy/8501/",
        "http://127.0.0.1:9000/",
        "http://localhost/",
        "http://lab.localhost:8501/",
    ],
)
def test_a_page_that_only_this_computer_finds_behind_a_proxy_says_what_to_do(seen: str) -> None:
    found = square.link(asking("127.0.0.1:8501"), seen, "", None, 8501)
    assert found.unreachable == sentences.NO_OUTSIDE_ADDRESS
    assert found.page == seen


@pytest.mark.parametrize("at", [*outsides(SEED + 1, 25)], ids=range(25))
def test_what_a_server_at_any_path_sends_is_below_the_page(at: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    """The follower's page from each of its addresses, its script, and a class that is opened: through a proxy that changes no answer."""
    base = f"/{at.base}" if at.base else ""
    monkeypatch.setattr(routes, "BASE", base)
    with TestClient(application(base), base_url="http://inner:9101") as inner:
        tails = {"r": ".", "r/": "..", f"r/{CODE}": "..", f"R/{CODE.lower()}": "..", f"r/{CODE}/": "../.."}
        for tail, above in tails.items():
            inner.cookies.clear()
            answer = inner.get(f"{base}/{tail}", follow_redirects=False)
            assert answer.status_code == 200 and f'<base href="{above}/">' in answer.text, (tail, answer.status_code)
            found = urljoin(f"{at.page}{tail}", f"{above}/")
            assert found == at.page
            assert "base-uri 'self'" in answer.headers["content-security-policy"]
            assert "inner" not in answer.text + str(answer.headers)
            assert "Path=/;" in answer.headers["set-cookie"], "a browser sends it back from whatever path it sees"
            script = re.search(r'src="([^"]+)"', answer.text)
            assert script is not None
            inside = urljoin(found, script[1]).removeprefix(at.page)
            assert inner.get(f"{base}/{inside}").status_code == 200
            if not tail.endswith("/"):
                assert urlsplit(answer.url.path).path.endswith(tail)
        run = ask(service.service().submit(TIRED))
        opened = inner.post(f"{base}/headlight/classroom/open", json={"screen": screen(run), "page": at.page})
        assert opened.status_code == 201, opened.text
        told = opened.json()
        assert told["link"].lower() == f"{at.page}r/{told['code']}".lower() and "inner" not in opened.text
        assert told["square"] == square.svg(told["link"]).decode()
        classroom.school._classes.clear()


@pytest.mark.parametrize("at", [*outsides(SEED + 2, 25)], ids=range(25))
def test_the_page_has_its_scripts_and_its_policy_at_any_path(at: Outside) -> None:
    """And what is below it, which is no page, has neither."""
    base = f"/{at.base}" if at.base else ""
    with TestClient(application(base), base_url="http://inner:9101") as inner:
        for address in (f"{base}/", f"{base}/?view=explore", f"{base}/anything"):
            answer = inner.get(address)
            assert answer.status_code == 200
            assert "window.headlight" in answer.text, address
            assert "script-src 'self'" in answer.headers["content-security-policy"]
        for address in (f"{base}/static/x.html", f"{base}/headlight/x.html"):
            answer = inner.get(address)
            assert "window.headlight" not in answer.text, address
            assert "script-src" not in answer.headers.get("content-security-policy", "")
            assert inner.head(address).headers["x-method"] == "HEAD"


@pytest.mark.parametrize("at", [at for at in outsides(SEED + 3, 80) if at.base][:20], ids=range(20))
def test_a_path_without_its_slash_leads_to_the_page_and_names_no_host(
    at: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "BASE", f"/{at.base}")
    bare = Starlette(routes=[Route(f"/{at.base}", routes.to_page)])
    with TestClient(bare, base_url="http://inner:9101") as inner:
        answer = inner.get(f"/{at.base}?text=a+b", follow_redirects=False)
    where = answer.headers["location"]
    assert answer.status_code == 307 and "inner" not in where
    kept = f"{at.origin}/{'/'.join(quote(part, safe=routes.SAFE) for part in at.base.split('/'))}"
    assert urljoin(f"{kept}?text=a+b", where) == f"{kept}/?text=a+b"


async def a_page(request) -> HTMLResponse:
    """Streamlit's, as far as it matters here."""
    body = "<!doctype html><html><head><title>Streamlit</title></head><body><script>1</script></body></html>"
    return HTMLResponse(body, headers={"x-method": request.method})


def application(base: str) -> Starlette:
    """Our routes and middleware at a path, around a page like Streamlit's."""
    return Starlette(
        routes=[
            *routes.placed(shell_routes.PAGE_ROUTES, base),
            Mount(base or "/", routes=[Route("/{path:path}", a_page)]),
        ],
        middleware=[
            Middleware(security_headers.Safe, no_pages=[f"{base}/headlight/"]),
            Middleware(visitors.Named, base=base),
            Middleware(rate_limits.Metered, base=base),
            Middleware(edge.Scripted, policy=lambda inline: security_headers.policy(inline, ()), base=base),
        ],
    )


# These may look at the address of the page itself: they are parts of Headlight's own page, which is where the browser says it is.
OWN_PAGE = {
    "streamlit_edge/scripts/history.js",
    "streamlit_edge/scripts/theme.js",
    "streamlit_edge/scripts/handshakes.js",
    "streamlit_edge/browser/page.js",
    "shell/browser/refused.js",
    "shell/scripts/framed.js",
    "classroom/browser/teacher.js",
    "rooms/lessons/browser/lessons.js",
}
OF_PDF = {"kit/browser/writers/pdf.js", "kit/browser/writers/vector.js"}  # in which a name begins with a slash
FROM_THE_TOP = re.compile(
    r"""(?:["'`(]|url\()/(?:[a-z]|\$\{)|(?:href|src|action)="?/|location\.origin|location\.protocol"""
)
OF_THE_PAGE = re.compile(r"(?<![\w.])location\.(?:href|pathname|host)\b")
BY_THE_SERVER = re.compile(r"(?:href|src|action)=[\"']?/|\.base_url|url_for\(|url_path_for\(|RedirectResponse\(")


def test_no_file_of_the_browser_s_names_a_place_from_the_top_of_the_host() -> None:
    """All is relative to the page (document.baseURI), which on a follower's page is Headlight's own."""
    found = {}
    for path in sorted((ROOT / "app").rglob("*")):
        if path.suffix not in (".js", ".css", ".html"):
            continue
        name, text = path.relative_to(ROOT / "app").as_posix(), path.read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if not line.lstrip().startswith(("//", "*", "/*"))]
        wrong = [line.strip() for line in lines if FROM_THE_TOP.search(line.replace('from "/', ""))]
        if name not in OWN_PAGE and name != "classroom/browser/follow.js":
            wrong += [line.strip() for line in lines if OF_THE_PAGE.search(line)]
        if wrong and name not in OF_PDF:
            found[name] = wrong
    assert found == {}


def test_the_server_writes_no_address_that_begins_with_its_own_host_or_path() -> None:
    found = {}
    for path in sorted((ROOT / "app").rglob("*.py")):
        wrong = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if BY_THE_SERVER.search(line)]
        if wrong:
            found[path.relative_to(ROOT).as_posix()] = wrong
    # the way to the page, and to the makers of files: both are relative
    assert {*found} == {"app/transport/routes.py", "app/kit/writers.py"}, found
