"""Speaks to the classroom's routes as browsers do: one event loop, any address, and streams that are read or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette

from app.session import service
from app.shell import routes
from core.run.request import Request

APP = Starlette(routes=routes.ROUTES)
ROOT = "/headlight/classroom"
TIRED = Request(service.DEFAULT_MODEL, ("The animal didn't cross the street because it was too tired.",))
WIDE = Request(service.DEFAULT_MODEL, ("The animal didn't cross the street because it was too wide.",))
PLACE = {"site": "encoder", "layer": 3, "head": 1, "query": 10}
JSON = "application/json"
PATIENCE = 60  # seconds for what comes at once


@dataclass(frozen=True)
class Answer:
    """What a route said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


def _scope(method: str, path: str, headers: dict[str, str], address: str) -> dict[str, Any]:
    path, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": (address, 1),
        "server": ("headlight.example", 80),
    }


async def call(
    path: str, body: Any = None, key: str = "", address: str = "10.0.0.1", raw: bytes | None = None, kind: str = JSON
) -> Answer:
    """One request: a POST of JSON where there is a body."""
    sent = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
    method = "GET" if raw is None and body is None else "POST"
    said = {"host": "headlight.example", "content-type": kind} | ({"Headlight-Key": key} if key else {})
    parts: list[bytes] = []
    start: dict[str, Any] = {}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": sent, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        else:
            parts.append(message.get("body", b""))

    await APP(_scope(method, path if path.startswith("/") else f"{ROOT}/{path}", said, address), receive, send)
    return Answer(start["status"], {n.decode(): v.decode() for n, v in start["headers"]}, b"".join(parts))


@dataclass
class Reading:
    """A stream of a class: what has come, one event after the other."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)  # bytes of each event
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    may_read: asyncio.Event = field(default_factory=asyncio.Event)
    _came: asyncio.Queue[tuple[str, Any]] = field(default_factory=asyncio.Queue)

    async def next(self, name: str) -> Any:
        """The data of the next event of that name; others before it are skipped."""
        while True:
            found, data = await asyncio.wait_for(self._came.get(), PATIENCE)
            if found == name:
                return data

    async def until(self, name: str, **said: Any) -> Any:
        """The first event of that name that says so."""
        while True:
            data = await self.next(name)
            if data is not None and all(data[part] == value for part, value in said.items()):
                return data

    def take(self) -> list[tuple[str, Any]]:
        """All that has come and was not asked for."""
        return [self._came.get_nowait() for _ in range(self._came.qsize())]

    def came(self, data: bytes) -> None:
        for part in data.decode().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in part.split("\n") if ": " in line)
            if lines:
                self.sizes.append(len(part.encode()) + 2)
                self._came.put_nowait((lines["event"], json.loads(lines["data"])))


@asynccontextmanager
async def reading(code: str, key: str, slow: bool = False) -> AsyncIterator[Reading]:
    """Follow a class. A slow reader takes nothing until its may_read is set."""
    found, gone = Reading(), asyncio.Event()
    if not slow:
        found.may_read.set()
    asked = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if asked:
            return asked.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found.status = message["status"]
            found.headers = {n.decode(): v.decode() for n, v in message["headers"]}
            found.begun.set()
        else:
            await found.may_read.wait()
            found.came(message.get("body", b""))

    scope = _scope("GET", f"{ROOT}/{code}/events", {"Headlight-Key": key, "host": "headlight.example"}, "10.0.0.1")
    task = asyncio.create_task(APP(scope, receive, send))
    task.add_done_callback(lambda _: found.ended.set())
    await asyncio.wait_for(found.begun.wait(), PATIENCE)
    try:
        yield found
    finally:
        gone.set()
        found.may_read.set()
        await asyncio.wait_for(task, PATIENCE)


@dataclass(frozen=True)
class Teacher:
    """A class that a test teaches."""

    code: str
    key: str
    run: str

    async def do(self, do: str, **said: Any) -> Answer:
        return await call(f"{self.code}/teach", {"do": do, **said}, self.key)

    async def ask(self, run: str = "", **place: Any) -> int:
        answer = await self.do("ask", run=run or self.run, **(PLACE | place))
        assert answer.status == 200, answer.text
        return answer.json()["q"]

    async def join(self) -> str:
        answer = await call(f"{self.code}/join", {})
        assert answer.status == 200, answer.text
        return answer.json()["key"]


def screen(run: str, **said: Any) -> dict[str, Any]:
    chosen = {name: str(value) for name, value in PLACE.items()}
    return {"view": "explore", "run": run, "with": chosen, "cover": ""} | said


@asynccontextmanager
async def teaching(request: Request = TIRED) -> AsyncIterator[Teacher]:
    """A class that shows a sentence, and is ended afterwards."""
    run = await service.service().submit(request)
    answer = await call("open", {"screen": screen(run)})
    assert answer.status == 201, answer.text
    taught = Teacher(answer.json()["code"], answer.json()["key"], run)
    async with reading(taught.code, taught.key):
        pass  # a class whose teacher never comes is closed after a minute, which a test may take
    try:
        yield taught
    finally:
        await taught.do("end")
