"""Served below a path and through a proxy: the page, its modules, its numbers, its files and its classes are where the browser sees it."""

from __future__ import annotations

import base64
import os
import random
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from app.attention import words
from app.classroom import words as classroom_words
from app.kit import words as kit_words
from app.shell import registry
from tests.app.browsing import ARGUMENTS, PATIENCE, ROOT, Screen, go_to, serving
from tests.app.outside import PARTS, proxying

pytestmark = pytest.mark.thorough

APP = "app/main.py"  # of the tests that need no path
SEED = int(os.environ["MUTANTS_SEED"])
PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
NGINX, HAPROXY = (shutil.which(name, path=PLACES) for name in ("nginx", "haproxy"))
HOSTS = ("headlight.example", "hub.uni.example")  # which the browser finds on this machine
SAID = classroom_words.COMPONENT
TEXT = "?text=The+animal+didn%27t+cross+the+street+because+it+was+too+tired."
Serve = Callable[[str], str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """served(base) -> the address of a server that is started with that path, without the path."""
    started: dict[str, tuple[str, Path]] = {}
    with ExitStack() as stack:

        def start(base: str) -> str:
            if base not in started:
                log = tmp_path_factory.mktemp("server") / "log"
                options = ("--server.baseUrlPath", base) if base else ()
                started[base] = stack.enter_context(serving("app/main.py", log, *options)), log
            return started[base][0]

        yield start
        assert not [base for base, (_, log) in started.items() if "Traceback" in log.read_text()]


@pytest.fixture(scope="module")
def anywhere(browser: Browser, chromium: str) -> Iterator[Browser]:
    """A browser that finds any host on this machine."""
    rules = ", ".join(f"MAP {host} 127.0.0.1" for host in HOSTS)
    arguments = [*ARGUMENTS, f"--host-resolver-rules={rules}"]
    found = browser.browser_type.launch(executable_path=chromium, args=arguments)
    yield found
    found.close()


# ---------------------------------------------------------------------- proxies


@contextmanager
def own(upstream: str, prefix: str, base: str) -> Iterator[int]:
    """The tests' own proxy; nothing but what is below `prefix` is asked of it."""
    with proxying(upstream, prefix, base) as proxy:
        yield proxy.port
    assert [path for path in proxy.beside if path != "/favicon.ico"] == []


def example(kind: str) -> str:
    """The settings in docs/hosting.md for a proxy."""
    text = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configured(kind: str, folder: Path, upstream: str, port: int, keeps: bool) -> list[str]:
    """The command that starts it with the example, whose path is taken away or kept."""
    text = example(kind)
    at = upstream.removeprefix("http://").replace("localhost", "127.0.0.1")
    swaps = {"127.0.0.1:8501": at, "listen 80;": f"listen 127.0.0.1:{port};", "bind :80\n": f"bind 127.0.0.1:{port}\n"}
    if keeps:
        swaps["127.0.0.1:8501/;"], swaps["http-request replace-path"] = "127.0.0.1:8501;", "# http-request replace-path"
    for old, new in sorted(swaps.items(), key=lambda swap: -len(swap[0])):  # the longer first: one is in the other
        text = text.replace(old, new)
    file = folder / f"{kind}.conf"
    if kind == "nginx":
        places = "".join(
            f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = f"pid {folder}/pid; error_log stderr; events {{}} http {{ {places}\n{text}\n}}"
        file.write_text(text)
        return [str(NGINX), "-p", str(folder), "-e", "stderr", "-c", str(file), "-g", "daemon off;"]
    file.write_text(text)
    return [str(HAPROXY), "-f", str(file)]


@contextmanager
def by_example(kind: str, folder: Path, upstream: str, keeps: bool) -> Iterator[int]:
    port = free_port()
    proxy = subprocess.Popen(configured(kind, folder, upstream, port, keeps))
    try:
        deadline = time.monotonic() + PATIENCE / 1000
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/headlight/_stcore/health", timeout=5):
                    break
            except OSError:
                assert proxy.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
        yield port
    finally:
        proxy.terminate()
        proxy.wait(20)


def drawn() -> str:
    """A path at random, as an operator may name it."""
    draw = random.Random(SEED)
    return "/".join(draw.choice(PARTS) for _ in range(3))


def as_written(path: str) -> str:
    """As a browser writes it."""
    return f"/{quote(path, safe='/@~')}"


needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: apt-get install nginx)")
needs_haproxy = pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed (Debian: apt-get install haproxy)")
# By name: the server's path, what the browser sees of it, and the proxy between them.
WAYS = {
    "nothing between": ("headlight", "/headlight", None),
    "taken away": ("", as_written(drawn()), own),
    "kept": (drawn(), as_written(drawn()), own),
    "another": ("static", as_written(f"{drawn()}/static"), own),
    "put before it": ("headlight", "", own),
    "nginx takes it away": ("", "/headlight", "nginx"),
    "nginx keeps it": ("headlight", "/headlight", "nginx"),
    "haproxy takes it away": ("", "/headlight", "haproxy"),
    "haproxy keeps it": ("headlight", "/headlight", "haproxy"),
}
MARKS = {"nginx": needs_nginx, "haproxy": needs_haproxy}


@contextmanager
def way(name: str, served: Serve, folder: Path) -> Iterator[str]:
    """The address at which a browser finds the page, without a slash."""
    base, prefix, proxy = WAYS[name]
    upstream = served(base)
    if proxy is None:
        yield f"{upstream}{prefix}"
        return
    if isinstance(proxy, str):
        between: AbstractContextManager[int] = by_example(proxy, folder, upstream, keeps=bool(base))
    else:
        between = proxy(upstream, prefix, as_written(base) if base else "")
    with between as port:
        host = random.Random(f"{SEED}{name}").choice(HOSTS)
        yield f"http://{host}:{port}{prefix}"


# ---------------------------------------------------------------------- what is there


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(str(WAYS[name][2]), ())) for name in WAYS])
def test_rooms_files_and_a_class_are_where_the_browser_sees_the_page(
    anywhere: Browser, served: Serve, name: str, tmp_path: Path
) -> None:
    with way(name, served, tmp_path) as address:
        context = anywhere.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
        visit = Screen(context.new_page(), address).record()
        answers = []
        visit.page.on("response", lambda answer: answers.append((answer.url, answer.status)))
        visit.open(TEXT)
        policy = visit.page.evaluate("fetch(location.href).then(page => page.headers.get('content-security-policy'))")
        assert "script-src 'self'" in policy
        a_class(visit, anywhere)
        its_files(visit, tmp_path)
        for room in registry.rooms():
            go_to(visit.page, room.title)
            expect(visit.page.locator(f".st-key-bar a[data-room={room.id}][aria-current=page]").first).to_be_attached()
            visit.idle()
            if room.id == "generate":  # this model writes nothing, which the room says
                expect(visit.page.get_by_text("writes no next word")).to_be_visible()
            else:
                visit.page.locator(".hl:visible").first.wait_for()
            assert visit.page.get_by_text("BidiComponent Error").count() == 0, room.id
        visit.leave()
        context.close()
    # a screen may be on its way to a class when that ends
    assert [answer for answer in answers if answer[1] >= 400 and not answer[0].endswith("/teach")] == []
    assert any("/headlight/m/" in url for url in visit.requests)


def a_class(visit: Screen, anywhere: Browser) -> None:
    """The code, the link and the square lead a phone into the class."""
    teacher, address = visit, visit.address
    expect(teacher.page.locator(".st-key-bar a[aria-current=page]").first).to_be_attached()
    teacher.root.get_by_role("button", name=kit_words.COMPONENT["share_screen"]).click()
    over = teacher.page.locator(".classroom .over")
    code = over.locator(".share .code").inner_text().replace(" ", "")
    expect(over.locator(".share .address")).to_have_text(
        f"{address.partition('://')[2]}/r".lower() if address.count("/") == 2 else f"{address.partition('://')[2]}/r"
    )
    expect(over.locator("img.square")).to_have_js_property("complete", True)
    assert over.locator("img.square").evaluate("image => image.naturalWidth") > 0
    link = (over.locator("img.square").get_attribute("alt") or "").rpartition(" ")[2]
    assert link.lower() == f"{address}/r/{code}".lower()
    if address.count("/") > 2:
        assert link == f"{address}/r/{code}"
    over.get_by_role("button", name=str(SAID["show_sentence"])).click()
    context = anywhere.new_context(viewport={"width": 390, "height": 844}, reduced_motion="reduce")
    phone = Screen(context.new_page(), address)
    phone.page.goto(link)
    phone.painted()
    assert phone.data()["run"] == teacher.data()["run"]
    phone.leave()
    context.close()
    teacher.page.keyboard.press("j")
    over.get_by_role("button", name=str(SAID["end"])).click()
    expect(over).to_be_hidden()


def its_files(visit: Screen, folder: Path) -> None:
    """The link that is shared, a table whose numbers the server gives, and the page that works offline."""
    visit.root.get_by_role("button", name=kit_words.COMPONENT["copy_link"]).first.click()
    visit.until("root.dataset.link")
    assert visit.data()["link"].startswith(f"{visit.address}/?")
    for button in ("CSV", "HTML"):
        menu = visit.files()
        if not menu.is_visible():
            visit.root.get_by_role("button", name=words.COMPONENT["export"], exact=True).click()
        with visit.page.expect_download() as download:
            menu.get_by_role("button", name=button, exact=True).click()
        file = folder / f"file.{button}"
        download.value.save_as(file)
        text = file.read_text(encoding="utf-8")
        if button == "HTML":  # its data are written as base64
            held = re.search(r'id="data"[^>]*>\s*([A-Za-z0-9+/=]+)', text)
            assert held is not None
            text += base64.b64decode(held[1]).decode("latin-1")
        assert "animal" in text
        found = re.findall(r"https?://[^\s\"'<>`]+", text)
        assert not [
            url for url in found if "127.0.0.1" in url or ("localhost" in url and "localhost" not in visit.address)
        ]


@pytest.mark.thorough
@pytest.mark.parametrize("base", ["headlight", "static", drawn()])
def test_the_page_is_found_without_its_last_slash(served: Serve, base: str) -> None:
    """Also where another path, or none, is put in the place of the server's own, and where nothing is."""
    with proxying(served(base), as_written(base), as_written(base)) as kept:
        for address in (served(base), f"http://127.0.0.1:{kept.port}"):
            with urllib.request.urlopen(f"{address}{as_written(base)}?text=a+b", timeout=60) as answer:
                assert answer.url == f"{address}{as_written(base)}/?text=a+b"
                assert "script-src 'self'" in answer.headers["content-security-policy"]
                assert "window.headlight" in answer.read().decode()


# ---------------------------------------------------------------------- no websockets


def test_a_full_house_is_no_network_that_refuses_websockets(address: str, browser: Browser) -> None:
    """The server refuses a websocket while all places are taken: then the page is the one that says so, and tries again."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    with proxying(address, websockets=False) as proxy:
        full = {"status": 503, "content_type": "text/html", "body": "<title>All places are taken</title>"}
        page.goto(f"http://127.0.0.1:{proxy.port}/")
        page.route(f"http://127.0.0.1:{proxy.port}/", lambda route: route.fulfill(**full))
        expect(page).to_have_title("All places are taken", timeout=60_000)
        assert page.locator("#headlight-refused").count() == 0
    context.close()


# ---------------------------------------------------------------------- the examples


@needs_nginx
@pytest.mark.parametrize("keeps", [True, False])
def test_nginx_reads_the_example(tmp_path: Path, keeps: bool) -> None:
    command = configured("nginx", tmp_path, "http://127.0.0.1:8501", free_port(), keeps)
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert ("8501/;" in (tmp_path / "nginx.conf").read_text()) != keeps


@needs_haproxy
@pytest.mark.parametrize("keeps", [True, False])
def test_haproxy_reads_the_example(tmp_path: Path, keeps: bool) -> None:
    command = configured("haproxy", tmp_path, "http://127.0.0.1:8501", free_port(), keeps)
    checked = subprocess.run([*command, "-c"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert ("# http-request replace-path" in (tmp_path / "haproxy.conf").read_text()) == keeps
