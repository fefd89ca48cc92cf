"""A class on one server: how soon its followers see what the teacher changes, and the teacher what they say, while others type.

    python -m benchmarks.room [--followers 200] [--changes 40] [--typing 10]

The server is started as the Procfile says, on one processor core, and everybody else is on another. Followers hold streams as their
pages do. A change counts from the moment in which the teacher sends it until a follower's stream has said it; a vote from the moment
in which it is sent until the teacher's stream has said that so many have voted. Then the teacher goes through the rooms as a visitor
whose page tells the class: such a change counts until a follower's stream has said it, and until the follower has all that the room
is drawn from. Drawing is the browsers' work, and no part of this. Meanwhile other visitors type sentences, as benchmarks.load measures
them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
from websockets.asyncio.client import ClientConnection

from app.session.service import DEFAULT_REQUEST
from benchmarks import load

ROOT = "headlight/classroom"
SECONDS = 5.0  # in which everybody votes
PAUSE = 0.4  # seconds between two changes of the teacher
THINKS = 2.0  # seconds that a visitor thinks before the next sentence
DRAWN = re.compile(rb'"follow": ?(?:\{"room":"[a-z]+","drawn":)?"([0-9a-f]{32})"')
RUN = DEFAULT_REQUEST.key
ROOMS = {  # that the teacher goes to, and what the page of a follower asks for there beside what the room is drawn from
    "step": (f"step/walk?run={RUN}&stack=encoder&layer=3&query=10&head=0", f"proof?run={RUN}&record=3"),
    "masks": (
        f"masks/edited?run={RUN}&site=encoder&mask=model&window=3&when=before&fill=inf&scope=all"
        "&forbid=10-2&allow=&layer=3&part=1&ids=",
    ),
    "positions": (f"positions/order?run={RUN}&order=drop&stack=encoder&site=encoder",),
    "shapes": (f"shapes/values?run={RUN}&stack=encoder&layer=0&site=attn&what=weights&head=0",),
    "memory": (),
    "compute": (),
    "whatif": (f"whatif/sweep?run={RUN}&sweep=heads&by=zero&only=all&where=all",),
}


@dataclass
class Stream:
    """What one stream has said, and when."""

    heard: list[tuple[float, str, Any]] = field(default_factory=list)
    size: int = 0

    async def listen(self, address: str, code: str, key: str) -> None:
        """Until the class is over. Read by hand: 200 clients of a library would be measured instead of the server."""
        where = urlsplit(address)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        ask = f"GET /{ROOT}/{code}/events HTTP/1.1\r\nHost: {where.netloc}\r\nHeadlight-Key: {key}\r\n\r\n"
        writer.write(ask.encode())
        name = ""
        while line := await reader.readline():
            if line.startswith(b"event: "):
                name = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                self.heard.append((time.monotonic(), name, json.loads(line[6:])))
                self.size = max(self.size, len(line) + len(name) + 9)
                if name == "ended":
                    break
        writer.close()

    def first(self, name: str, *, after: float, **least: int) -> float | None:
        """When it first said so much, after a moment; None where it never did."""
        for at, said, data in self.heard:
            if said == name and at >= after and data and all(data[part] >= value for part, value in least.items()):
                return at
        return None


class Teacher(load.Visitor):
    """A visitor who hears under which name a room that the page got can be shown to others."""

    drawn = ""

    def check(self, body: bytes) -> None:
        super().check(body)
        for found in DRAWN.findall(body):
            self.drawn = found.decode()


async def cookies(address: str, code: str, n: int) -> list[str]:
    """Of so many who open the page of the class: by them the server tells apart what each may ask for."""
    found = []
    async with httpx2.AsyncClient(timeout=load.PATIENCE) as newcomer:
        for _ in range(n):
            page = await newcomer.get(f"{address}/r/{code}")
            found.append(page.headers["set-cookie"].split(";")[0])
            newcomer.cookies.clear()
    return found


async def fetched(address: str, path: str, headers: str) -> int:
    """The bytes of an answer, headers and all, read by hand as streams are. Raises RuntimeError for a refusal."""
    where = urlsplit(address)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    ask = f"GET /headlight/{path} HTTP/1.1\r\nHost: {where.netloc}\r\n{headers}Accept-Encoding: gzip\r\nConnection: close\r\n\r\n"
    writer.write(ask.encode())
    answer = await reader.read(-1)
    writer.close()
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{path}: {answer[:100]!r}")
    return len(answer)


async def see(address: str, phone: Stream, headers: str, n: int, asks: Sequence[str]) -> tuple[float, float, int]:
    """When a follower heard of the n-th screen and had all that it is drawn from, and the bytes of that."""
    await until(lambda: phone.first("screen", after=0, n=n), pause=0.002)
    heard = time.monotonic()
    sizes = await asyncio.gather(*(fetched(address, ask, headers) for ask in asks))
    return heard, time.monotonic(), sum(sizes)


async def until(come: Any, seconds: float = 60, pause: float = 0.01) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not come():
        if time.monotonic() > end:
            raise TimeoutError("what the class should have heard did not come")
        await asyncio.sleep(pause)


@asynccontextmanager
async def teaching(address: str, client: httpx2.AsyncClient) -> AsyncIterator[tuple[Teacher, ClientConnection]]:
    """The teacher's own page, beside the class."""
    visitor = Teacher(0, address, client, load.Found(), random.Random(0))
    async with httpx2.AsyncClient(timeout=load.PATIENCE) as newcomer:
        visitor.cookie = (await newcomer.get(f"{address}/")).headers.get("set-cookie", "").split(";")[0]
    async with visitor.line() as line:
        await visitor.script(line, "")
        yield visitor, line


async def lesson(address: str, followers: int, changes: int, client: httpx2.AsyncClient) -> dict[str, Any]:
    """Everybody joins, the teacher changes the screen, everybody votes."""

    def screen(layer: int) -> dict[str, Any]:
        chosen = {"site": "encoder", "layer": str(layer % 6), "head": str(layer % 12), "query": "10"}
        return {"view": "explore", "run": DEFAULT_REQUEST.key, "with": chosen, "cover": ""}

    async def post(path: str, body: object, key: str = "") -> httpx2.Response:
        answer = await client.post(f"{address}/{ROOT}/{path}", json=body, headers={"Headlight-Key": key})
        answer.raise_for_status()
        return answer

    opened = (await post("open", {"screen": screen(0)})).json()
    code, teacher = opened["code"], opened["key"]
    board, phones = Stream(), [Stream() for _ in range(followers)]
    keys = [(await post(f"{code}/join", {})).json()["key"] for _ in phones]
    pairs = [(board, teacher), *zip(phones, keys, strict=True)]
    listening = [asyncio.create_task(stream.listen(address, code, key)) for stream, key in pairs]
    await until(lambda: board.heard and board.first("class", after=0, of=followers))

    follow: list[float] = []
    for n in range(2, changes + 2):
        begun = time.monotonic()
        await post(f"{code}/teach", {"do": "screen", "screen": screen(n)}, teacher)
        await until(lambda n=n, begun=begun: all(phone.first("screen", after=begun, n=n) for phone in phones))
        follow += [(phone.first("screen", after=begun, n=n) or begun) - begun for phone in phones]
        await asyncio.sleep(PAUSE)

    told: dict[str, str] = {}
    known = zip(keys, await cookies(address, code, followers), strict=True)
    names = [f"Headlight-Key: {key}\r\nCookie: {cookie}\r\n" for key, cookie in known]
    phones_by_name, n = [*zip(phones, names, strict=True)], changes + 1
    async with teaching(address, client) as (visitor, line):
        for room, routes in ROOMS.items():
            visitor.drawn = ""
            await visitor.script(line, f"view={room}")
            for route in routes:
                await fetched(address, route, f"Cookie: {visitor.cookie}\r\n")
            if not visitor.drawn:
                raise RuntimeError(f"{room} said nothing that a class could be shown")
            shown = {"view": room, "run": visitor.drawn, "with": {}, "cover": ""}
            begun, n = time.monotonic(), n + 1
            await post(f"{code}/teach", {"do": "screen", "screen": shown}, teacher)

            asks = (f"classroom/{code}/picture/{visitor.drawn}", *routes)
            seen = await asyncio.gather(*(see(address, phone, name, n, asks) for phone, name in phones_by_name))
            told[room] = " | ".join(
                (
                    *(load.percentiles([moment[i] - begun for moment in seen]) for i in (0, 1)),
                    f"{seen[0][2] / 1000:.0f} kB",
                )
            )
            await asyncio.sleep(PAUSE)

    asked = {"do": "ask", "run": DEFAULT_REQUEST.key, "site": "encoder", "layer": 3, "head": 1, "query": 10}
    q = (await post(f"{code}/teach", asked, teacher)).json()["q"]
    sent: list[float] = []
    begun = time.monotonic()

    async def say(key: str, place: int, after: float) -> None:
        await asyncio.sleep(after)
        sent.append(time.monotonic())
        await post(f"{code}/vote", {"q": q, "t": place}, key)

    draw = random.Random(0)
    await asyncio.gather(*[say(key, i % 16, draw.uniform(0, SECONDS)) for i, key in enumerate(keys)])
    await until(lambda: board.first("votes", after=begun, said=followers))
    shown = [(board.first("votes", after=begun, said=i + 1) or begun) - at for i, at in enumerate(sorted(sent))]
    begun = time.monotonic()
    await post(f"{code}/teach", {"do": "reveal", "q": q}, teacher)
    await until(lambda: all(phone.first("votes", after=begun, said=followers) for phone in phones))
    revealed = [(phone.first("votes", after=begun, said=followers) or begun) - begun for phone in phones]
    counts = (await client.get(f"{address}/{ROOT}/{code}/votes?q={q}", headers={"Headlight-Key": teacher})).json()
    await post(f"{code}/teach", {"do": "end"}, teacher)
    await asyncio.gather(*listening)
    return {
        "followers": followers,
        "a change is followed": load.percentiles(follow),
        "a room is heard of | has come | with": told,
        "a vote is shown": load.percentiles(shown),
        "a reveal is seen": load.percentiles(revealed),
        "votes sent": followers,
        "votes counted": sum(n for _, n in counts["votes"]),
        "largest message, bytes": max(stream.size for stream in (board, *phones)),
    }


async def beside(address: str, followers: int, changes: int, typing: int) -> dict[str, Any]:
    """The lesson, and visitors who type meanwhile."""
    found = load.Found()
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(timeout=load.PATIENCE, limits=limits) as client:

        async def type_on(number: int) -> None:
            draw = random.Random(number)
            visitor = load.Visitor(number, address, client, found, draw)
            async with httpx2.AsyncClient(timeout=load.PATIENCE) as newcomer:
                page = await newcomer.get(f"{address}/")
            visitor.cookie = page.headers.get("set-cookie", "").split(";")[0]
            async with visitor.line() as line:
                await visitor.script(line, "")
                while True:
                    await asyncio.sleep(draw.uniform(0.5, 1.5) * THINKS)
                    await visitor.type(line)

        visitors = [asyncio.create_task(type_on(number)) for number in range(typing)]
        await asyncio.sleep(THINKS)
        row = await lesson(address, followers, changes, client)
        for visitor in visitors:
            if visitor.done():
                visitor.result()
            visitor.cancel()
    return row | {
        "typing": typing,
        "sentences": len(found.pictures),
        "typed to picture": load.percentiles(found.pictures),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--followers", type=int, default=200)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--typing", type=int, default=10)
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, {cores[-1]})
    with load.procfile(cores[0] if len(cores) > 1 else None) as (address, process):
        used, begun = load.processor(process), time.monotonic()
        row = asyncio.run(beside(address, asked.followers, asked.changes, asked.typing))
        row["server's processor"] = f"{(load.processor(process) - used) / (time.monotonic() - begun):.0%}"
    print("times in ms: p50 / p95 / p99")
    print(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
