"""deploy/haproxy.cfg in front of two processes: a visitor stays on one, websockets pass, limits see the visitor, and a class is found."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest
from playwright.sync_api import Browser
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from app.classroom import codes, sentences, words
from app.session.service import DEFAULT_REQUEST
from app.transport import rate_limits, visitors
from core.run.request import Request
from tests.app.browsing import ROOT, Screen, serving
from tests.app.school import PLACE, screen
from tests.cluster.serving import served

HAPROXY = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = [
    pytest.mark.proxy,
    pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed (Debian: apt-get install haproxy)"),
]
PROCESS = "HEADLIGHT_PROCESS"
PATIENCE = 60.0  # seconds
SENTENCE = "A proxy sends every visitor back to the same process."


# What `make cluster` starts each with
SIGNS = dict(re.findall(r"^(\w+): HEADLIGHT_CODES=(\w+)", (ROOT / "deploy" / "Procfile").read_text(), re.MULTILINE))


@dataclass
class Behind:
    """A proxy and the processes behind it, by the name that its cookie gives each."""

    address: str
    direct: dict[str, str]


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("processes")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(rate_limits.LIMITS, "trainings=1/0.0001")
        found = {}
        for name, signs in SIGNS.items():
            patch.setenv(codes.OURS, signs)
            found[name] = stack.enter_context(serving("app/main.py", folder / name))
        yield found


@pytest.fixture(scope="module")
def behind(direct: dict[str, str]) -> Iterator[Behind]:
    with proxied({name: at.replace("http://localhost", "127.0.0.1") for name, at in direct.items()}) as address:
        yield Behind(address, direct)


@contextmanager
def proxied(
    processes: dict[str, str], config: Path = ROOT / "deploy" / "haproxy.cfg", scheme: str = "http"
) -> Iterator[str]:
    """HAProxy in front of these, with what its configuration says; its address once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"PORT": str(port)} | {name.upper(): at for name, at in processes.items()}
    assert HAPROXY is not None
    proxy = subprocess.Popen([HAPROXY, "-f", str(config)], env={**os.environ, **settings})
    try:
        address = f"{scheme}://127.0.0.1:{port}"
        until = time.monotonic() + PATIENCE
        while not answers(f"{address}/healthz"):
            assert proxy.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        yield address
    finally:
        proxy.terminate()
        proxy.wait(20)


def answers(address: str) -> bool:
    try:
        return httpx2.get(address, verify=False).status_code == 200
    except httpx2.TransportError:
        return False


def visitor(address: str, cookies: dict[str, str] | None = None) -> httpx2.Client:
    """A browser at another address of this machine."""
    transport = httpx2.HTTPTransport(local_address=address)
    return httpx2.Client(transport=transport, cookies=cookies, timeout=PATIENCE, headers={"Accept": "text/html"})


async def typed(address: str, cookies: dict[str, str], text: str) -> str:
    """A sentence by websocket, as the page sends it; the key of its run once the script has ended."""
    said = "; ".join(f"{name}={value}" for name, value in cookies.items())
    key = Request(DEFAULT_REQUEST.model_id, (text,)).key
    asked = BackMsg()
    asked.rerun_script.query_string = urlencode({"text": text})
    headers = {"Cookie": said, "Origin": address}
    socket_address = f"{address.replace('http', 'ws', 1)}/_stcore/stream"
    async with (
        asyncio.timeout(PATIENCE),
        connect(
            socket_address, additional_headers=headers, subprotocols=[Subprotocol("streamlit")], max_size=None
        ) as line,
    ):
        await line.send(asked.SerializeToString())
        while True:
            body = await line.recv(decode=False)
            if ForwardMsg.FromString(body).WhichOneof("type") == "script_finished":
                return key


@pytest.mark.thorough
def test_a_visitor_stays_on_one_process_by_websocket_and_by_request(behind: Behind) -> None:
    on: dict[str, dict[str, str]] = {}
    for _ in range(8):  # whoever has no cookie goes where there are fewest
        with visitor("127.0.0.1") as browser:
            assert browser.get(f"{behind.address}/").status_code == 200
            cookies = dict(browser.cookies)
            assert {PROCESS, visitors.COOKIE} <= {*cookies}
            on[cookies[PROCESS]] = cookies
    assert {*on} == {"one", "two"}
    for name, cookies in on.items():
        key = asyncio.run(typed(behind.address, cookies, f"{SENTENCE} {name}"))
        row = f"headlight/row?run={key}&record=0&head=0&query=1"
        with visitor("127.0.0.1", cookies) as browser:
            found = [browser.get(f"{behind.address}/{row}") for _ in range(6)]
        assert [one.status_code for one in found] == [200] * 6
        assert not any(PROCESS in one.headers.get("set-cookie", "") for one in found)
        status = {other: httpx2.get(f"{at}/{row}").status_code for other, at in behind.direct.items()}
        assert status == {name: 200, **{other: 404 for other in behind.direct if other != name}}


@pytest.mark.thorough
def test_limits_see_the_visitor_and_not_the_proxy(behind: Behind) -> None:
    """Visitors without our cookie, on one process: each address has its own limits, and says nobody else's."""
    at_one = {PROCESS: "one"}
    with visitor("127.0.0.2", at_one) as first, visitor("127.0.0.3", at_one) as second:
        url = f"{behind.address}/headlight/train/text"  # a text of its own needs a name, and is refused without one
        assert first.post(url).status_code == 400
        assert first.post(url).status_code == 429
        assert first.post(url, headers={"X-Forwarded-For": "10.1.2.3"}).status_code == 429
        assert second.post(url).status_code == 400


@pytest.mark.thorough
def test_what_is_the_operators_stays_behind_the_proxy(behind: Behind) -> None:
    assert httpx2.get(f"{behind.address}/metrics").status_code == 404
    assert httpx2.get(f"{behind.direct['one']}/metrics").status_code == 200


@pytest.mark.thorough
def test_the_page_knows_whether_it_came_by_tls(behind: Behind) -> None:
    """The cookie would be Secure behind a proxy that speaks TLS; a visitor cannot claim it."""
    plain = httpx2.get(behind.address, headers={"Accept": "text/html", "X-Forwarded-Proto": "https"})
    assert "Secure" not in plain.headers["set-cookie"]
    direct = httpx2.get(
        behind.direct["one"].replace("localhost", "127.0.0.1"),
        headers={"Accept": "text/html", "X-Forwarded-Proto": "https"},
    )
    assert "Secure" in direct.headers["set-cookie"]


def teach(client: httpx2.Client, address: str) -> tuple[str, str]:
    """A class of the sentence that every process has run: its code and its teacher's key."""
    opened = client.post(f"{address}/headlight/classroom/open", json={"screen": screen(DEFAULT_REQUEST.key)})
    assert opened.status_code == 201, opened.text
    return opened.json()["code"], opened.json()["key"]


def first(stream: httpx2.Response, name: str) -> str:
    """The first event of that name."""
    lines = stream.iter_lines()
    return next(next(lines) for line in lines if line == f"event: {name}")


@pytest.mark.thorough
@pytest.mark.parametrize(("at", "elsewhere"), [("one", "two"), ("two", "one")])
def test_a_class_is_found_from_wherever_its_followers_come(behind: Behind, at: str, elsewhere: str) -> None:
    """Its teacher is on one process; of its followers one has no cookie, one has a visit on the other process."""
    with visitor("127.0.0.1", {PROCESS: at}) as teacher:
        code, key = teach(teacher, behind.address)
        assert code[0] in SIGNS[at]
        of = f"{behind.address}/headlight/classroom/{code}"
        keys = {}
        for cookies in ({}, {PROCESS: elsewhere}):
            with visitor("127.0.0.4", cookies) as phone:
                page = phone.get(f"{behind.address}/r/{code.lower()}")
                assert page.status_code == 200 and PROCESS not in page.headers.get("set-cookie", "")
                joined = phone.post(f"{of}/join", json={})
                assert joined.status_code == 200, joined.text
                keys[joined.json()["key"]] = cookies
                assert phone.cookies.get(PROCESS) == cookies.get(PROCESS), "a visit elsewhere is led away"
        asked = teacher.post(
            f"{of}/teach", json={"do": "ask", "run": DEFAULT_REQUEST.key, **PLACE}, headers={"Headlight-Key": key}
        )
        assert asked.status_code == 200, asked.text
        for place, (mine, cookies) in enumerate(keys.items(), 1):
            with visitor("127.0.0.4", cookies) as phone:
                headers = {"Headlight-Key": mine, "Referer": f"{behind.address}/r/{code}"}
                with phone.stream("GET", f"{of}/events", headers=headers) as stream:
                    assert '"open":true' in first(stream, "question")
                    assert phone.post(f"{of}/vote", json={"q": 1, "t": place}, headers=headers).status_code == 204
                assert phone.get(f"{of}/picture/{DEFAULT_REQUEST.key}", headers=headers).status_code == 200
        assert (
            teacher.post(f"{of}/teach", json={"do": "reveal", "q": 1}, headers={"Headlight-Key": key}).status_code
            == 204
        )
        for mine, cookies in keys.items():
            with visitor("127.0.0.4", cookies) as phone:
                found = phone.get(f"{of}/votes?q=1", headers={"Headlight-Key": mine})
                assert found.json() == {"q": 1, "said": 2, "votes": [[1, 1], [2, 1]]}
        lost = httpx2.post(f"{behind.direct[elsewhere]}/headlight/classroom/{code}/join", json={})
        assert (lost.status_code, lost.text) == (404, sentences.NO_CLASS)


@pytest.mark.thorough
@pytest.mark.parametrize(("at", "elsewhere"), [("one", "two"), ("two", "one")])
def test_what_a_followers_page_asks_for_comes_from_where_its_class_is(behind: Behind, at: str, elsewhere: str) -> None:
    """A run that only the teacher's process has; whoever does not follow is where the cookie says."""
    key = asyncio.run(typed(behind.address, {PROCESS: at}, f"{SENTENCE} A class on {at} sees it."))
    row = f"{behind.address}/headlight/row?run={key}&record=0&head=0&query=1"
    referers = {
        f"{behind.address}/r/{SIGNS[at][0]}XRM7TQD": 200,
        f"{behind.address}/r/{SIGNS[elsewhere][0]}XRM7TQD": 404,
        f"{behind.address}/": 404,
    }
    with visitor("127.0.0.5", {PROCESS: elsewhere}) as phone:
        assert {said: phone.get(row, headers={"Referer": said}).status_code for said in referers} == referers
        assert phone.get(f"{behind.address}/", headers={"Referer": next(iter(referers))}).status_code == 200
        assert dict(phone.cookies)[PROCESS] == elsewhere, (
            "a link that leads out of a class keeps who has a visit where it is"
        )


@pytest.mark.thorough
def test_a_class_whose_process_has_gone_is_over_and_not_waited_for(direct: dict[str, str]) -> None:
    here = direct["one"].replace("http://localhost", "127.0.0.1")
    with socket.socket() as nobody:  # a port at which nobody answers
        nobody.bind(("127.0.0.1", 0))
        with proxied({"one": here, "two": f"127.0.0.1:{nobody.getsockname()[1]}"}) as address:
            until = time.monotonic() + PATIENCE
            asked = f"{address}/headlight/classroom/{SIGNS['two'][0]}XRM7TQD/events"
            while (answer := httpx2.get(asked)).status_code == 503 and time.monotonic() < until:
                time.sleep(0.2)
            assert (answer.status_code, answer.text) == (404, sentences.NO_CLASS)
            with visitor("127.0.0.1") as teacher:
                assert teach(teacher, address)[0][0] in SIGNS["one"]


@pytest.mark.thorough
def test_two_browsers_meet_in_a_class_through_the_proxy(behind: Behind, browser: Browser) -> None:
    said = words.COMPONENT
    pages = []
    for name in ("two", "one"):  # the phone has a visit on the other process
        context = browser.new_context(reduced_motion="reduce")
        context.add_cookies([{"name": PROCESS, "value": name, "url": behind.address}])
        pages.append(Screen(context.new_page(), behind.address))
    teacher, phone = pages
    teacher.open("?text=The+proxy+finds+the+class+because+it+reads+the+code.")
    over = teacher.page.locator(".classroom .over")
    teacher.page.keyboard.press("j")
    over.locator(".share .code").wait_for()
    code = over.locator(".share .code").inner_text().replace(" ", "")
    assert code[0] in SIGNS["two"]
    phone.page.goto(f"{behind.address}/R/{code}")
    over.get_by_role("button", name=str(said["begin"])).click()
    teacher.root.locator(".strip [data-axis=query]").get_by_text("it", exact=True).click()
    phone.page.locator(".follow .words").get_by_role("button", name="class", exact=True).click()
    over.locator(".said em", has_text="1").wait_for()
    teacher.page.keyboard.press("r")
    phone.page.locator(".follow .result", has_text="You chose class").wait_for()
    phone.page.get_by_role("button", name=str(said["look_around"])).click()
    phone.painted()
    over.get_by_role("button", name=str(said["end"])).click()
    phone.page.get_by_role("heading", name=str(said["closed_title"])).wait_for()
    for page in pages:
        page.leave()
        page.page.context.close()


def test_the_signs_of_codes_are_shared_out_and_the_proxy_knows_them() -> None:
    assert "".join(SIGNS.values()) == codes.ALPHABET
    known = re.findall(r"presetenv CODES_(\w+) (\w+)", Path(ROOT, "deploy", "haproxy.cfg").read_text())
    assert {name.lower(): signs for name, signs in known} == SIGNS
    told = re.findall(rf"{codes.OURS}=(\w+) PORT", Path(ROOT, "docs", "hosting.md").read_text())
    assert told == [*SIGNS.values()] and codes.ALPHABET in Path(ROOT, "docs", "hosting.md").read_text()


def test_an_example_of_the_configuration_is_what_haproxy_reads() -> None:
    assert HAPROXY is not None
    checked = subprocess.run([HAPROXY, "-c", "-f", str(Path(ROOT, "deploy", "haproxy.cfg"))], capture_output=True)
    assert checked.returncode == 0, checked.stderr.decode()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_the_proxys_cookie_works_in_frames_over_tls_and_stays_as_it_was_without(tmp_path: Path) -> None:
    assert HAPROXY is not None
    certificate, config = tmp_path / "both.pem", tmp_path / "haproxy.cfg"
    subject = ["-nodes", "-subj", "/CN=localhost", "-days", "1", "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", *subject], cwd=tmp_path, check=True, capture_output=True
    )
    certificate.write_text((tmp_path / "certificate.pem").read_text() + (tmp_path / "key.pem").read_text())
    plain = Path(ROOT, "deploy", "haproxy.cfg").read_text()
    bind = 'bind "${BIND}:${PORT}"'
    assert bind in plain

    async def page(_: HttpRequest) -> Response:
        return Response("a page", headers={"Set-Cookie": "other=1; SameSite=Lax"})

    with served(page) as behind, ExitStack() as stack:
        config.write_text(plain.replace(bind, f"{bind} ssl crt {certificate}"))
        at = behind.removeprefix("http://")
        for scheme, file in (("https", config), ("http", Path(ROOT, "deploy", "haproxy.cfg"))):
            address = stack.enter_context(proxied({"one": at, "two": at}, file, scheme))
            given = httpx2.get(f"{address}/page", verify=False).headers.get_list("set-cookie")
            own = next(one for one in given if one.startswith(f"{PROCESS}="))
            assert ("SameSite=None; Secure; Partitioned" in own) == (scheme == "https") == ("SameSite=Lax" not in own)
            assert "other=1; SameSite=Lax" in given
