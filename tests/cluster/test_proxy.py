"""deploy/haproxy.cfg in front of two processes: a visitor stays on one, websockets pass, and limits see the visitor."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from app.session.service import DEFAULT_REQUEST
from app.transport import fair
from core.request import Request
from tests.app.browsing import ROOT, serving

HAPROXY = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = [
    pytest.mark.proxy,
    pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed (Debian: apt-get install haproxy)"),
]
PROCESS = "HEADLIGHT_PROCESS"
PATIENCE = 60.0  # seconds
SENTENCE = "A proxy sends every visitor back to the same process."
SWEEP = f"headlight/whatif/sweep?run={DEFAULT_REQUEST.key}&sweep=heads"


@dataclass
class Behind:
    """A proxy and the processes behind it, by the name that its cookie gives each."""

    address: str
    direct: dict[str, str]


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("proxy")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(fair.LIMITS, "sweeps=1/0.0001")
        direct = {name: stack.enter_context(serving("app/main.py", folder / name)) for name in ("one", "two")}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings = {"PORT": str(port)}
        settings |= {name.upper(): at.replace("http://localhost", "127.0.0.1") for name, at in direct.items()}
        assert HAPROXY is not None
        proxy = subprocess.Popen([HAPROXY, "-f", str(ROOT / "deploy" / "haproxy.cfg")], env={**os.environ, **settings})
        stack.callback(proxy.wait, 20)
        stack.callback(proxy.terminate)
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + PATIENCE
        while not answers(f"{address}/healthz"):
            assert proxy.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        yield Behind(address, direct)


def answers(address: str) -> bool:
    try:
        return httpx2.get(address).status_code == 200
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


def test_a_visitor_stays_on_one_process_by_websocket_and_by_request(behind: Behind) -> None:
    on: dict[str, dict[str, str]] = {}
    for _ in range(8):  # whoever has no cookie goes where there are fewest
        with visitor("127.0.0.1") as browser:
            assert browser.get(f"{behind.address}/").status_code == 200
            cookies = dict(browser.cookies)
            assert {PROCESS, fair.COOKIE} <= {*cookies}
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


def test_limits_see_the_visitor_and_not_the_proxy(behind: Behind) -> None:
    """Visitors without our cookie, on one process: each address has its own limits, and says nobody else's."""
    at_one = {PROCESS: "one"}
    with visitor("127.0.0.2", at_one) as first, visitor("127.0.0.3", at_one) as second:
        url = f"{behind.address}/{SWEEP}"
        assert first.get(url).status_code == 200
        assert first.get(url).status_code == 429
        assert first.get(url, headers={"X-Forwarded-For": "10.1.2.3"}).status_code == 429
        assert second.get(url).status_code == 200


def test_what_is_the_operators_stays_behind_the_proxy(behind: Behind) -> None:
    assert httpx2.get(f"{behind.address}/metrics").status_code == 404
    assert httpx2.get(f"{behind.direct['one']}/metrics").status_code == 200


def test_the_page_knows_whether_it_came_by_tls(behind: Behind) -> None:
    """The cookie would be Secure behind a proxy that speaks TLS; a visitor cannot claim it."""
    plain = httpx2.get(behind.address, headers={"Accept": "text/html", "X-Forwarded-Proto": "https"})
    assert "Secure" not in plain.headers["set-cookie"]
    direct = httpx2.get(
        behind.direct["one"].replace("localhost", "127.0.0.1"),
        headers={"Accept": "text/html", "X-Forwarded-Proto": "https"},
    )
    assert "Secure" in direct.headers["set-cookie"]


def test_an_example_of_the_configuration_is_what_haproxy_reads() -> None:
    assert HAPROXY is not None
    checked = subprocess.run([HAPROXY, "-c", "-f", str(Path(ROOT, "deploy", "haproxy.cfg"))], capture_output=True)
    assert checked.returncode == 0, checked.stderr.decode()
