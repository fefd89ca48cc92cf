"""RemoteService: calls the Service of other machines over HTTP.

Each call has an id of the model and the part of its runs (`x-session-id`), by which the load balancer keeps them on one machine, which
has the traces. A machine and its traces may be lost at any time. The call is then repeated with the requests that it is about, and
another machine runs them again: the caller sees a pause, and the same numbers, because they come from the same pass.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import threading
import time
from asyncio import AbstractEventLoop
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx2

from cluster import token, wire
from core.edits import Intervention
from core.errors import ServerBusy, UnknownRun
from core.run.request import Request
from core.secret import SETTING as SECRET
from core.service import PairRows, PartRows, PathEdges, Service, SweepPart, TrainingUpdate
from core.service.queue import current_askers

SESSION = "x-session-id"
SPREAD = 16  # parts of a model's runs, each on one machine
PATIENCE = 60.0  # seconds for a lost machine to be replaced
PAUSES = (0.05, 0.2, 0.5, 1.0)  # seconds before each repetition; the last one for all further ones
MAX_REMEMBERED_BYTES = 64 << 20  # total size of remembered requests, so that they can be repeated
TIMEOUT = httpx2.Timeout(5.0, read=30.0, write=30.0, pool=None)  # there is a beat every five seconds
KEY = re.compile("[0-9a-f]{64}")
NOBODY = {
    "device": "elsewhere",
    "dtype": "",
    "models": [],
    "traces": 0,
    "trace_bytes": 0,
    "running_or_waiting": 0,
    "free_bytes": 0,
}

log = logging.getLogger("headlight")
AWAY = "The machines that run models do not answer just now. Your text is still in the box: try again in a minute."
OTHER_SECRET = f"The machines that run models have another {SECRET} than this front end. Set the same one everywhere."
BROKEN = "a call failed on the machine that runs models; its log says why"


class Lost(Exception):
    """No answer, or an incomplete one: the machine is lost, or not started yet."""


class Denied(Lost):
    """The machine requires another token, so repeating the call is of no use."""


def service(address: str, spread: int = SPREAD, patience: float = PATIENCE) -> Service:
    """The Service at http://host:port. Raises ValueError for an invalid address or token."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"HEADLIGHT_SERVICE is {address!r}, but it must be where the models' machines answer, such as http://10.0.0.5:8000."
        )
    return cast(Service, RemoteService(address.rstrip("/"), spread, patience, token.token()))


class RemoteService:
    """Every method of Service, called on another machine. Thread-safe, for any number of event loops."""

    def __init__(self, address: str, spread: int = SPREAD, patience: float = PATIENCE, secret: str = "") -> None:
        self.address, self.spread, self.patience = address, spread, patience
        self._token = token.header(secret)
        self._lock = threading.Lock()
        self._clients: WeakKeyDictionary[AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()
        self._requests: OrderedDict[str, Request] = OrderedDict()
        self._request_bytes = 0
        self._waiting = 0

    def __getattr__(self, name: str) -> Any:
        if name not in wire.CALLS:
            raise AttributeError(name)
        return partial(self._stream if name in wire.STREAMS else self._call, name)

    async def submit(self, request: Request) -> str:
        self._remember(request)
        if (key := await self._call("submit", request)) != request.key:
            raise RuntimeError(OTHER_SECRET)
        return key

    async def edited(self, key: str, interventions: Sequence[Intervention]) -> str:
        # The edited run starts on the machine that its key belongs to, which may be another one.
        return await self.submit(await self._call("edited_request", key, tuple(interventions)))

    async def release(self, key: str) -> None:
        """Not repeated: a machine that is lost, or has dropped the run, does not keep it anyway."""
        with suppress(Lost, UnknownRun):
            await self._once("release", {"key": key}, ())

    async def follow(self, key: str) -> AsyncGenerator[Any]:
        with self._lock:
            self._waiting += 1
        try:
            async with aclosing(self._stream("follow", key)) as progress:
                async for now in progress:
                    yield now
        finally:
            with self._lock:
                self._waiting -= 1

    async def status(self) -> dict[str, Any]:
        """Status of one of the machines, with the number of runs that this process waits for; NOBODY if none answers at once."""
        try:
            found = await self._once("status", {}, ())
        except Lost:
            found = NOBODY
        return {**found, "running_or_waiting": self._waiting}

    async def close(self) -> None:
        """End the connections of this event loop."""
        with self._lock:
            client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    # calls

    async def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        arguments = named(name, args, kwargs)
        tries = Tries(self, arguments)
        while True:
            try:
                return await self._once(name, arguments, tries.requests)
            except (Lost, UnknownRun) as error:
                await tries.again(error)

    async def _stream(self, name: str, *args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
        arguments = named(name, args, kwargs)
        tries, seen = Tries(self, arguments), Seen()
        while True:
            try:
                async with aclosing(self._answers(name, arguments, tries.requests)) as found:
                    seen.begin()
                    async for value in found:
                        tries.worked()
                        if (new := seen.new(name, value)) is not None:
                            yield new
                return
            except (Lost, UnknownRun) as error:
                await tries.again(error)

    async def _once(self, name: str, arguments: Mapping[str, Any], requests: Sequence[Request]) -> Any:
        try:
            came = await self._client().post(**self._question(name, arguments, requests))
        except httpx2.TransportError as error:
            raise Lost from error
        _check(came.status_code)
        frames = Frames()
        for kind, body in frames.of(came.content):
            if kind != wire.BEAT:
                return opened(kind, body)
        raise Lost

    async def _answers(
        self, name: str, arguments: Mapping[str, Any], requests: Sequence[Request]
    ) -> AsyncGenerator[Any]:
        """The values of a stream until it ends. Raises Lost if it breaks off."""
        frames = Frames()
        try:
            async with self._client().stream(**self._question(name, arguments, requests)) as came:
                _check(came.status_code)
                async for part in came.aiter_raw():
                    for kind, body in frames.of(part):
                        if kind == wire.END:
                            return
                        if kind != wire.BEAT:
                            yield opened(kind, body)
        except httpx2.TransportError as error:
            raise Lost from error
        raise Lost

    def _question(self, name: str, arguments: Mapping[str, Any], requests: Sequence[Request]) -> dict[str, Any]:
        found = {
            "url": f"{self.address}/{name}",
            "content": wire.packed((dict(arguments), tuple(requests))),
            "headers": {
                SESSION: self._session(arguments),
                wire.ASKERS: json.dumps([*current_askers()]),
                **self._token,
            },
        }
        return found if name not in wire.STREAMS else {"method": "POST", **found}

    def _client(self) -> httpx2.AsyncClient:
        """The client of this event loop: connections belong to one."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._clients:
                limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
                self._clients[loop] = httpx2.AsyncClient(timeout=TIMEOUT, limits=limits, trust_env=False)
            return self._clients[loop]

    def _session(self, arguments: Mapping[str, Any]) -> str:
        """Equal for calls that one machine should answer. A hash, because it is derived from a text."""
        if isinstance(request := arguments.get("request"), Request):
            about = self._part(request)
        elif "key" in arguments:
            about = self._part(self._known(arguments["key"]))
        elif "model_id" in arguments:
            about = (arguments["model_id"], 0)
        else:
            about = arguments.get("spec", tuple(arguments.items()))  # a training stays where it was started
        return hashlib.sha256(repr(about).encode()).hexdigest()[:32]

    def _part(self, request: Request) -> tuple[str, int]:
        """The model, so that not every machine needs every model, and one of `spread` parts of its runs."""
        return request.model_id, int(request.key[:8], 16) % self.spread

    # requests

    def _known(self, key: str) -> Request:
        """Raises Unknown."""
        with self._lock:
            if key not in self._requests:
                raise UnknownRun("This run is no longer known. Reload the page.")
            self._requests.move_to_end(key)
            return self._requests[key]

    def known_in(self, arguments: Mapping[str, Any]) -> tuple[Request, ...]:
        """The remembered requests whose keys are in the arguments."""
        keys = dict.fromkeys(text for text in texts_in(tuple(arguments.values())) if KEY.fullmatch(text))
        with self._lock:
            return tuple(self._requests[key] for key in keys if key in self._requests)

    def _remember(self, request: Request) -> None:
        with self._lock:
            if request.key not in self._requests:
                self._requests[request.key] = request
                self._request_bytes += request.nbytes
            self._requests.move_to_end(request.key)
            while self._request_bytes > MAX_REMEMBERED_BYTES and len(self._requests) > 1:
                _, oldest = self._requests.popitem(last=False)
                self._request_bytes -= oldest.nbytes


def _check(status: int) -> None:
    """Raises Lost if this is not the status of an answer."""
    if status == token.DENIED:
        log.error("The machines that run models require another %s than the one set here.", token.SETTING)
        raise Denied
    if status != 200:
        raise Lost


class Tries:
    """Retry state of one call: failed tries so far, and the requests to send with the next one."""

    def __init__(self, of: RemoteService, arguments: Mapping[str, Any]) -> None:
        self.of, self.arguments = of, arguments
        self.requests: tuple[Request, ...] = ()
        self.lost, self.until = 0, 0.0

    def worked(self) -> None:
        self.lost = 0

    async def again(self, error: Exception) -> None:
        """Wait until the call may be repeated. Raises the error if repeating it is of no use."""
        if isinstance(error, UnknownRun):
            known = self.of.known_in(self.arguments)
            if self.requests or not known:
                raise error
            self.requests = known
            return
        if isinstance(error, Denied):
            raise ServerBusy(AWAY)
        if self.lost == 0:
            self.until = time.monotonic() + self.of.patience
        pause = PAUSES[min(self.lost, len(PAUSES) - 1)]
        if time.monotonic() + pause > self.until:
            raise ServerBusy(AWAY)
        self.lost += 1
        self.requests = self.of.known_in(self.arguments)
        await asyncio.sleep(pause)


class Seen:
    """Values of a stream so far, so that a stream that is restarted on another machine sends nothing twice."""

    def __init__(self) -> None:
        self.values = self.rows = self.again = 0
        self.step = self.frame = -1

    def begin(self) -> None:
        self.again = 0

    def new(self, name: str, value: Any) -> Any | None:
        """The part of a value that has not been sent before; None if there is none."""
        self.again += 1
        if isinstance(value, SweepPart | PartRows | PathEdges | PairRows):
            return self._rows(value)
        if isinstance(value, TrainingUpdate):
            return self._update(value)
        if name in ("write", "beams"):  # the same request samples the same tokens
            if self.again <= self.values:
                return None
            self.values = self.again
        return value

    def _rows(
        self, part: SweepPart | PartRows | PathEdges | PairRows
    ) -> SweepPart | PartRows | PathEdges | PairRows | None:
        known = self.rows
        if part.first + part.n <= known:
            return None
        self.rows = part.first + part.n
        return part.rest(known) if part.first < known else part

    def _update(self, update: TrainingUpdate) -> TrainingUpdate:
        points = tuple(point for point in update.points if point.step > self.step)
        frames = tuple(frame for frame in update.frames if frame.step > self.frame)
        self.step = points[-1].step if points else self.step
        self.frame = frames[-1].step if frames else self.frame
        return replace(update, points=points, frames=frames)


class Frames:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self._left = bytearray()

    def of(self, part: bytes) -> Iterator[tuple[int, bytes]]:
        """The (kind, body) of the frames that are complete now."""
        self._left += part
        while len(self._left) >= wire.HEAD.size:
            kind, length = wire.HEAD.unpack_from(self._left)
            stop = wire.HEAD.size + length
            if len(self._left) < stop:
                return
            body = bytes(self._left[wire.HEAD.size : stop])
            del self._left[:stop]
            yield kind, body


def opened(kind: int, body: bytes) -> Any:
    """The value of a frame. Raises the refusal, and RuntimeError if the call failed on the other machine."""
    if kind == wire.REFUSED:
        raise wire.refused(body)
    if kind != wire.VALUE:
        raise RuntimeError(BROKEN)
    return wire.unpacked(body)


def named(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name."""
    given = wire.CALLS[name].bind(None, *args, **kwargs).arguments
    return {key: value for key, value in given.items() if key != "self"}


def texts_in(value: Any) -> Iterator[str]:
    """Every string in the arguments, which includes keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from texts_in(part)
    elif is_dataclass(value) and not isinstance(value, Request):
        for field in fields(value):
            yield from texts_in(getattr(value, field.name))
