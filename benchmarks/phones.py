"""Phones of a class without browsers: each follows the stream, fetches the question of a step, and answers it."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

ROOT = "/headlight/classroom"
WITHIN = 4.0  # seconds in which a class answers
KEPT_WITHIN = 2.0  # the same of what phones send again by themselves
PATIENCE = 60.0


@dataclass
class Phone:
    """One of them."""

    key: str
    seen: dict[tuple[int, int, str], float] = field(default_factory=dict)  # when it heard of a stage
    acknowledged: list[float] = field(default_factory=list)  # ms from its vote to the server's word
    refused: int = 0


class Phones:
    """A class's phones, and the commands of its teacher, at one server."""

    def __init__(self, port: int, code: str, teacher: str) -> None:
        self.port, self.code, self.teacher = port, code, teacher
        self.all: list[Phone] = []
        self._streams: list[asyncio.Task[None]] = []

    async def ask(self, path: str, key: str = "", body: object = None) -> tuple[int, Any]:
        """A request on a connection of its own: its status and its JSON."""
        reader, writer = await self._sent(path, key, body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            (int(line.split(":")[1]) for line in head.lower().split("\r\n") if line.startswith("content-length")), 0
        )
        found = await reader.readexactly(length)
        writer.close()
        status = int(head.split(" ", 2)[1])
        return status, json.loads(found) if found and status in (200, 201) else None

    async def _sent(self, path: str, key: str, body: object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        sent = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{'GET' if body is None else 'POST'} {ROOT}/{self.code}/{path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            f"Content-Length: {len(sent)}",
            *([f"Headlight-Key: {key}"] if key else []),
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + sent)
        await writer.drain()
        return reader, writer

    async def come(self, n: int) -> None:
        """So many join and follow."""
        for _ in range(n):
            _, said = await self.ask("join", body={})
            self.all.append(Phone(said["key"]))
        self._streams = [asyncio.create_task(self._follow(phone)) for phone in self.all]

    async def _follow(self, phone: Phone) -> None:
        reader, _ = await self._sent("events", phone.key, None)
        name = b""
        while line := await reader.readline():
            if line.startswith(b"event: "):
                name = line[7:].strip()
            elif line.startswith(b"data: ") and name == b"question":
                said = json.loads(line[6:])
                if said and "stage" in said:
                    phone.seen.setdefault((said["q"], said["round"], said["stage"]), time.perf_counter())

    async def move(self, at: tuple[int, int, str], **command: Any) -> float:
        """ms from the teacher's command until 95 of a hundred have heard of the stage."""
        begun = time.perf_counter()
        status, _ = await self.ask("teach", self.teacher, command)
        assert status in (200, 204), status
        enough = int(0.95 * len(self.all))
        end = begun + PATIENCE
        while sum(at in phone.seen for phone in self.all) < enough and time.perf_counter() < end:
            await asyncio.sleep(0.005)
        return sorted(1000 * (phone.seen.get(at, end) - begun) for phone in self.all)[enough - 1]

    async def answer(self, q: int, round: int, most: int, within: float) -> None:
        """Everybody answers at a moment of their own, and before that fetches a question that is new."""

        async def one(phone: Phone) -> None:
            await asyncio.sleep(random.random() * within)
            if round == 1:
                await self.ask(f"step?q={q}", phone.key)
            begun = time.perf_counter()
            status, _ = await self.ask("vote", phone.key, {"q": q, "r": round, "a": random.randrange(most)})
            phone.acknowledged.append(1000 * (time.perf_counter() - begun))
            phone.refused += status != 204

        await asyncio.gather(*map(one, self.all))

    def leave(self) -> None:
        for stream in self._streams:
            stream.cancel()


async def lesson(port: int, code: str, teacher: str, offer: str, n: int, rounds: int = 5) -> str:
    """A step is asked of so many phones, again and again; the times, in words."""
    phones = Phones(port, code, teacher)
    await phones.come(n)
    await asyncio.sleep(2)
    stages: list[float] = []
    _, said = await phones.ask("teach", teacher, {"do": "step", "offer": offer})
    for q in range(said["q"] + 1, said["q"] + 1 + rounds):
        stages.append(await phones.move((q, 1, "ask"), do="step", offer=offer))
        for round in (1, 2):
            # In the second round phones send what they said before by themselves.
            await phones.answer(q, round, 4, WITHIN if round == 1 else KEPT_WITHIN)
            stages.append(await phones.move((q, round, "votes"), do="votes", q=q))
            if round == 1:
                stages.append(await phones.move((q, 2, "ask"), do="again", q=q))
        stages.append(await phones.move((q, 2, "answer"), do="answer", q=q))
    phones.leave()
    votes = [ms for phone in phones.all for ms in phone.acknowledged]
    refused = sum(phone.refused for phone in phones.all)
    return (
        f"{n} phones: {len(votes)} votes acknowledged, median {median(votes):.0f} ms, p95 {quantiles(votes, n=20)[-1]:.0f} ms, "
        f"longest {max(votes):.0f} ms, {refused} refused\n  {len(stages)} stages seen by 95 %: median {median(stages):.0f} ms, "
        f"longest {max(stages):.0f} ms"
    )
