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

# Seconds between two messages of how many are in and have said, to the teacher, whose wall draws it, and to all who follow: each message
# to two hundred phones takes longer than the votes of a second.
PAUSES = {True: 0.25, False: 1.0}
TOGETHER = 20  # listeners that are told before a vote that has come meanwhile is read
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
        # Of each topic, what the teacher and all others have been told
        self._sent: dict[bool, dict[Topic, int]] = {of: dict(classroom.versions) for of in PAUSES}
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
        pinged_at = self.clock()
        paced_at = {of: now - PAUSES[of] for of, now in dict.fromkeys(PAUSES, pinged_at).items()}
        while not self.classroom.ended(now := self.clock()):
            self._changed.clear()
            versions = dict(self.classroom.versions)
            waits = PING - (now - pinged_at)
            for is_teacher, sent in self._sent.items():
                due: list[Topic] = [topic for topic in TOPICS if versions[topic] != sent[topic]]
                left = 0 if "question" in due else max(0, paced_at[is_teacher] + PAUSES[is_teacher] - now)
                now_due: list[Topic] = [topic for topic in due if not left or topic not in PACED]
                if any(topic in PACED for topic in now_due):
                    paced_at[is_teacher] = now
                for topic in now_due:
                    sent[topic] = versions[topic]
                    await self._send(topic, is_teacher)
                if len(now_due) < len(due):
                    waits = min(waits, left)
            if now - pinged_at >= PING:
                pinged_at = now
                self._all("ping", b":\n\n")
            await self._wait(waits)
        self._all("ended", event("ended", {"why": self.classroom.why_ended}))
        for listener in self.listeners:
            listener.end()
        self._done()

    async def _wait(self, seconds: float) -> None:
        """Until something changes, for so long at most, or until the class is forgotten."""
        left = self.classroom.left(self.clock())
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.001, seconds if left is None else min(seconds, left))):
                await self._changed.wait()

    async def _send(self, topic: Topic, is_teacher: bool) -> None:
        message = self._message(topic, is_teacher)
        told = [listener for listener in self.listeners if listener.is_teacher == is_teacher]
        for i, listener in enumerate(told):
            if topic in PACED and i and i % TOGETHER == 0:
                await asyncio.sleep(0)
            listener.put(topic, message)

    def _all(self, kind: str, message: bytes) -> None:
        for listener in self.listeners:
            listener.put(kind, message)

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
