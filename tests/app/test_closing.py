"""A server that is asked to end ends soon, whatever answers are open, and with it the processes that it started."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from app.attention import in_progress
from app.classroom import routes as classroom
from app.rooms.train import own_text
from app.session import service
from app.shell import closing, routes
from app.transport import admission, open_answers, visitors, words
from core.run.request import Request as RunRequest
from tests import servers
from tests.app import school
from tests.app.browsing import running
from tests.app.test_whatif import DOROTHY, UNCLE
from tests.core.test_text_training import STORY
from tests.servers import ROOT

SCRIPT = "tests/app/ends_soon.py"
TOGETHER = 2.0 + 0.5 + 1.0  # seconds: patience and last words of that script, and the server's for its connections
BUSY = 20.0  # more, for a machine with other work
COOKIE = f"headlight={visitors.new_name()}"  # one visitor: a text is shown to the one who brought it


# answers in this process


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> open_answers.Open:
    """The answers of a server of its own."""
    monkeypatch.setattr(open_answers, "here", open_answers.Open())
    monkeypatch.setattr(admission, "house", admission.House())
    return open_answers.here


class Visitor:
    """Asks for an answer, takes the beginning of it, and no more."""

    def __init__(self, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> None:
        self.sent: list[MutableMapping[str, Any]] = []
        self.begun = asyncio.Event()  # a part of the body is there
        self._asked = [{"type": "http.request", "body": body or b"", "more_body": False}]
        path, _, query = path.partition("?")
        said = {"host": "headlight.example", "content-type": "application/json", **(headers or {})}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "method": "GET" if body is None else "POST",
            "path": f"/headlight/{path}",
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in said.items()],
            "client": ("10.0.0.1", 1),
        }
        self.answer = asyncio.ensure_future(APP(scope, self._receive, self._send))

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._asked:
            return self._asked.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message)
        if message.get("body") and self.sent[0]["status"] == 200:
            self.begun.set()
            await asyncio.Event().wait()

    async def until_begun(self) -> None:
        begun = asyncio.ensure_future(self.begun.wait())
        await asyncio.wait([begun, self.answer], timeout=60, return_when=asyncio.FIRST_COMPLETED)
        assert self.begun.is_set(), self.sent


APP = Starlette(routes=routes.ROUTES, middleware=[Middleware(open_answers.Counted)])


async def run(text: str = DOROTHY) -> str:
    key = await service.service().submit(RunRequest("storyteller", (text,)))
    await service.service().facts(key)
    return key


async def asked(path: str, body: Any = None, **said: str) -> Visitor:
    query = urlencode({"run": await run(), **said})
    return Visitor(f"{path}?{query}", None if body is None else json.dumps(body).encode())


@asynccontextmanager
async def training() -> AsyncIterator[Visitor]:
    yield Visitor("train/run?task=reverse&twin=none&seed=77")


@asynccontextmanager
async def own() -> AsyncIterator[Visitor]:
    taken = Visitor("train/text", STORY.encode(), {"cookie": COOKIE})
    await asyncio.wait_for(taken.answer, 60)
    yield Visitor("train/text", None, {"cookie": COOKIE})
    own_text.TRAINER.close()


@asynccontextmanager
async def followed() -> AsyncIterator[Visitor]:
    async with school.teaching(RunRequest("storyteller", (DOROTHY,))) as taught:
        yield Visitor(f"classroom/{taught.code}/events", None, {classroom.KEY: await taught.join()})


def of(path: str, body: Any = None, **said: str) -> Callable[[], Any]:
    @asynccontextmanager
    async def one() -> AsyncIterator[Visitor]:
        yield await asked(path, body, **said)

    return one


CHANGED = {"sweep": "patch", "against": UNCLE}
KINDS: dict[str, tuple[bool, Callable[[], Any]]] = {  # whether the answer lasts, and how it is opened
    "a training": (True, training),
    "an own text": (True, own),
    "a class": (True, followed),
    "a text that is written": (False, of("generate/write", n="40")),
    "beams": (False, of("generate/beams", n="8")),
    "a sweep": (False, of("whatif/sweep", **CHANGED)),
    "parts": (False, of("whatif/parts", **CHANGED)),
    "paths": (False, of("whatif/paths", heads="2.0,1.0", **CHANGED)),
    "a set of pairs": (False, of("whatif/set", {"lines": f"{DOROTHY},{UNCLE}"})),
    "the layers of a run": (False, of("layers", record="0", head="0")),
    "a file of numbers": (False, of("export", format="csv", kind="head", site="decoder", layer="0", head="0")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_open_answer_ends_when_it_is_cut(
    kind: str, here: open_answers.Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    lasts, opened = KINDS[kind]
    closed: list[str] = []

    async def going(*_: object) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"a layer"
        finally:
            closed.append(kind)

    if kind == "the layers of a run":  # else over before it can be cut
        monkeypatch.setattr(in_progress, "parts", going)
        monkeypatch.setattr(service.service(), "facts_so_far", service.service().facts)

    async def cut() -> Visitor:
        async with opened() as visitor:
            await visitor.until_begun()
            assert here.awaited == (0 if lasts else 1)
            assert here.cut() == 1
            await asyncio.wait_for(visitor.answer, 60)
        return visitor

    visitor = asyncio.run(cut())
    assert here.awaited == 0 and here.cut() == 0, "it is still counted"
    assert not [part for part in visitor.sent[1:] if not part.get("more_body")], "it says that it is complete"
    assert closed == [kind] * (kind == "the layers of a run")


def answering(
    sent: Awaitable[object], lasts: bool = False
) -> Callable[[], asyncio.Task[list[MutableMapping[str, Any]]]]:
    """A request whose answer begins, and is complete once that has come."""

    async def app(_: object, __: object, send: Callable[[MutableMapping[str, Any]], Awaitable[None]]) -> None:
        if lasts:
            open_answers.here.lasts()
        await sent
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"all of it"})

    async def ask() -> list[MutableMapping[str, Any]]:
        found: list[MutableMapping[str, Any]] = []

        async def send(message: MutableMapping[str, Any]) -> None:
            found.append(message)

        await open_answers.Counted(app)({"type": "http"}, lambda: asyncio.Event().wait(), send)  # type: ignore[arg-type]
        return found

    return lambda: asyncio.ensure_future(ask())


def ended_with(
    monkeypatch: pytest.MonkeyPatch, patience: float, lasts: bool, completes: bool
) -> list[MutableMapping[str, Any]]:
    """The messages of an answer that was open when the server was asked to end."""
    monkeypatch.setattr(closing, "PATIENCE", patience)
    monkeypatch.setattr(closing, "LAST_WORDS", 0.01)

    async def end() -> list[MutableMapping[str, Any]]:
        complete = asyncio.Event()
        answer = answering(complete.wait(), lasts)()
        await asyncio.sleep(0)
        finishing = asyncio.ensure_future(closing.finish())
        while not admission.house.closing:
            await asyncio.sleep(0.01)
        await asyncio.sleep(3 * closing.LOOK)
        if completes:
            assert not finishing.done()
            complete.set()
        await asyncio.wait_for(finishing, 60)
        return await asyncio.wait_for(answer, 60)

    return asyncio.run(end())


FOR_EVER = 1e6  # seconds


def test_what_a_visitor_waits_for_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, last = ended_with(monkeypatch, FOR_EVER, lasts=False, completes=True)
    assert last["body"] == b"all of it"


@pytest.mark.parametrize(("patience", "lasts"), [(0.5, False), (FOR_EVER, True)])
def test_what_comes_too_late_or_would_go_on_is_a_refusal(
    patience: float, lasts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, *rest = ended_with(monkeypatch, patience, lasts, completes=False)
    assert start["status"] == 503 and words.CLOSING.encode() in b"".join(part["body"] for part in rest)


def test_a_request_that_is_cancelled_otherwise_stays_cancelled() -> None:
    async def cancelled() -> bool:
        answer = answering(asyncio.Event().wait())()
        await asyncio.sleep(0)
        answer.cancel()
        await asyncio.wait([answer], timeout=60)
        return answer.cancelled()

    assert asyncio.run(cancelled())


# a server of its own


def opened(address: str, path: str, **headers: str) -> socket.socket:
    """A connection whose answer has begun, and which is not read any further."""
    host, port = address.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    said = "".join(f"{name}: {value}\r\n" for name, value in {"Cookie": COOKIE, **headers}.items())
    connection.sendall(f"GET /headlight/{path} HTTP/1.1\r\nHost: {host}:{port}\r\n{said}\r\n".encode())
    return connection


def posted(address: str, path: str, body: bytes) -> Any:
    asking = Request(f"{address}/{path}", body, {"Content-Type": "application/json", "Cookie": COOKIE})
    with urlopen(asking, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def begun_by(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for child in subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE).stdout.split()]


def is_there(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def until(true: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def open_answers_of(address: str) -> dict[str, socket.socket]:
    """Every kind that needs no more than a request, with those that wait for a run of ten minutes."""
    posted(address, "headlight/train/text", STORY.encode())
    run = posted(address, "begin", DOROTHY.encode())
    screen = {"screen": school.screen(run)}
    code = posted(address, "headlight/classroom/open", json.dumps(screen).encode())["code"]
    key = posted(address, f"headlight/classroom/{code}/join", b"{}")["key"]
    posted(address, "begin", b"Dorothy walked slowly")
    changed = urlencode({"run": run, **CHANGED})
    return {
        "a training": opened(address, "train/run?task=reverse&twin=none&seed=77"),
        "an own text": opened(address, "train/text"),
        "a class": opened(address, f"classroom/{code}/events", **{classroom.KEY: key}),
        "a text that is written": opened(address, f"generate/write?run={run}&n=40"),
        "a sweep": opened(address, f"whatif/sweep?{changed}"),
        "parts": opened(address, f"whatif/parts?{changed}"),
    }


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="which processes there are is read from /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.thorough)])
def test_a_server_ends_with_all_that_it_started_whatever_is_open(number: signal.Signals, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(servers.command(SCRIPT), log, ROOT) as (address, server):
        kinds = open_answers_of(address)
        assert until(lambda: len(begun_by(server.pid)) == 2), "a training and a text are learnt in two processes"
        for kind in ("a training", "an own text", "a class"):
            assert kinds[kind].recv(1 << 16).startswith(b"HTTP/1.1 200"), kind
        others = begun_by(server.pid)
        server.send_signal(number)
        server.wait(TOGETHER + BUSY)
        assert until(lambda: not any(map(is_there, others))), "they outlive it"
        for connection in kinds.values():
            connection.close()
    assert "Traceback" not in log.read_text()
    if number == signal.SIGTERM:
        assert "Answers cut off: 5." in log.read_text()  # the class has ended in words


# the signal, in a process that stands for a server

STANDS_FOR_A_SERVER = """
import asyncio, signal, sys, time
from app.streamlit_edge import ending

async def finish():
    print("finishing", flush=True)
    if how == "it waits":
        await asyncio.sleep(1e6)
    if how == "its loop hangs":
        time.sleep(1e6)

async def serve():
    await ending.first(finish, longest)
    print("ready", flush=True)
    await asyncio.sleep(1e6)  # as uvicorn does where a reader has stalled

signal.signal(signal.SIGTERM, lambda *_: print("stopped", flush=True))
how, longest = sys.argv[1], float(sys.argv[2])
asyncio.run(serve())
"""


def standing_for(how: str, longest: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", STANDS_FOR_A_SERVER, how, str(longest)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    server.send_signal(signal.SIGTERM)
    assert server.stdout.readline() == "finishing\n"
    return server


@pytest.mark.parametrize(
    ("how", "longest", "said"),
    [("it waits", 0.1, ""), ("its loop hangs", 0.1, ""), ("it stops", FOR_EVER, "stopped\n")],
)
def test_a_server_has_ended_when_its_time_is_over(how: str, longest: float, said: str) -> None:
    with standing_for(how, longest) as server:
        assert server.communicate(timeout=BUSY) == (said, None)
    assert server.returncode == 0


def test_a_second_sigterm_ends_a_server_at_once() -> None:
    with standing_for("it waits", FOR_EVER) as server:
        server.send_signal(signal.SIGTERM)
        assert server.wait(BUSY) == -signal.SIGTERM
