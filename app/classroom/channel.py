"""Tells everybody in a class what has changed: each message is made once, and a listener has room for the newest of each kind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app.classroom.state import TOPICS, Classroom, Topic
from core.service import AnswerCache, into_loop

PAUSE = 0.25  # seconds between two messages of how many are in and have said
PING = 15.0  # seconds after which a listener who was told nothing hears that the connection stands
MOST_SAID = 80  # places whose votes go into one message: it stays below a kilobyte
HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}  # a proxy that collected the answer would keep all back

ANSWER_BYTES, KEPT_BYTES = 64 << 10, 1 << 20  # of what came out of a question

PACED: frozenset[Topic] = frozenset({"votes", "class"})


class Listener:
    """One stream. What was not sent yet is overtaken by what is newer, so a slow reader holds a few hundred bytes and delays no other."""

    def __init__(self, is_teacher: bool) -> None:
        self.is_teacher = is_teacher
        self.is_over = False
        self._waiting: dict[str, bytes] = {}
        self._some = asyncio.Event()

    def put(self, kind: str, message: bytes) -> None:
        self._waiting.pop(kind, None)  # the newest of all comes last
        self._waiting[kind] = message
        self._some.set()

    def end(self) -> None:
        self.is_over = True
        self._some.set()

    async def messages(self) -> AsyncIterator[bytes]:
        """All that waits, whenever something does, until the class is over."""
        while True:
            await self._some.wait()
            self._some.clear()
            is_over, said = self.is_over, b"".join(self._waiting.values())
            self._waiting.clear()
            if said:
                yield said
            if is_over:
                return


class Channel:
    """What one class says, from its beginning to its end. Its methods are called in the thread of the event loop."""

    def __init__(self, classroom: Classroom, clock: Callable[[], float], done: Callable[[], object]) -> None:
        self.classroom, self.clock, self._done = classroom, clock, done
        self.kept = AnswerCache(
            KEPT_BYTES, lambda _: ANSWER_BYTES
        )  # what came out of its questions, for as long as it lasts
        self.listeners: set[Listener] = set()
        self._sent: dict[Topic, int] = dict(classroom.versions)  # of each topic, what all have been told
        self._changed = asyncio.Event()
        classroom.changed = into_loop(self._changed.set)
        self._task = asyncio.create_task(self._run())

    def listen(self, is_teacher: bool, key: str) -> Listener:
        """A new listener, for whom the newest of everything waits already."""
        found = Listener(is_teacher)
        for topic in TOPICS:
            found.put(topic, self._message(topic, is_teacher, key))
        self.listeners.add(found)
        return found

    async def _run(self) -> None:
        sent = self._sent
        paced_at, pinged_at = -PAUSE, self.clock()
        while not self.classroom.ended(now := self.clock()):
            self._changed.clear()
            versions = dict(self.classroom.versions)
            due: list[Topic] = [topic for topic in TOPICS if versions[topic] != sent[topic]]
            waits = now - paced_at < PAUSE and "question" not in due
            now_due: list[Topic] = [topic for topic in due if not waits or topic not in PACED]
            if any(topic in PACED for topic in now_due):
                paced_at = now
            for topic in now_due:
                sent[topic] = versions[topic]
                self._send(topic)
            if now - pinged_at >= PING:
                pinged_at = now
                self._all("ping", lambda _: b":\n\n")
            await self._wait(paced_at + PAUSE - now if len(now_due) < len(due) else PING - (now - pinged_at))
        self._all("ended", lambda _: event("ended", {"why": self.classroom.why_ended}))
        for listener in self.listeners:
            listener.end()
        self._done()

    async def _wait(self, seconds: float) -> None:
        """Until something changes, for so long at most, or until the class is forgotten."""
        left = self.classroom.left(self.clock())
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.001, seconds if left is None else min(seconds, left))):
                await self._changed.wait()

    def _send(self, topic: Topic) -> None:
        made = {is_teacher: self._message(topic, is_teacher) for is_teacher in (False, True)}
        self._all(topic, made.__getitem__)

    def _all(self, kind: str, message: Callable[[bool], bytes]) -> None:
        for listener in self.listeners:
            listener.put(kind, message(listener.is_teacher))

    def _message(self, topic: Topic, is_teacher: bool, key: str = "") -> bytes:
        told: dict[Topic, Callable[[], Any]] = {
            "screen": self.classroom.told_screen,
            "question": lambda: self.classroom.told_question(key),
            "votes": lambda: self.classroom.told_votes(is_teacher, MOST_SAID),
            "class": lambda: self.classroom.told_class(self.clock()),
        }
        return event(topic, told[topic]())


class Stream(StreamingResponse):
    """The answer that a listener reads; `left` is called when no one reads it any more, however that came."""

    def __init__(self, messages: AsyncIterator[bytes], left: Callable[[], None]) -> None:
        super().__init__(messages, media_type="text/event-stream", headers=HEADERS)
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._left()


def event(name: str, data: object) -> bytes:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def end_all(channels: Iterable[Channel]) -> None:
    """The server ends: every listener is let go, and comes again to the next one."""
    for channel in channels:
        for listener in channel.listeners:
            listener.end()
