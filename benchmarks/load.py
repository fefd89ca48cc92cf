"""Many visitors at once on one server: how long each waits for the picture of a sentence, and whether anybody gets another's.

    python -m benchmarks.load [--visitors 20 50 100 200] [--seconds 60] [--think 10]
    python -m benchmarks.load --burst 8 40 [--rounds 9]
    python -m benchmarks.load --soak [--visitors 50] [--seconds 1800] [--warm 600]

The server is started as the Procfile says, on one processor core, and the visitors on another. The times of pictures are given in
passes of the default model too, measured on the server's core before it starts. A visitor speaks to it as the page
does: a cookie, a websocket with Streamlit's messages, and the routes. It types sentences of its own, thinks for a while, asks for
rows of its picture, switches heads, looks at tiles, opens other rooms, moves a slider of Memory, opens longer texts and the
translator, and now and then sweeps every head; the table says how often each was done. A picture counts from
the moment in which the sentence is sent until the message with the run of exactly that sentence has come; drawing it is the
browser's work, and no part of this. Every run's key that comes to a visitor must be one that it asked for itself.

A burst is a class of which everybody presses Enter in the same moment: what its sentences wait for, and what each costs the server.

A soak writes down the server's memory every half minute: it must not grow once the caches are full. Three times as many visitors come
before it for --warm seconds and fill them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import linear_regression, median, quantiles
from urllib.parse import urlencode

import httpx2
import torch
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

import core
from app.session.service import DEFAULT_REQUEST
from core.checkpoints import Loaded
from core.run.request import Request

ROOT = Path(__file__).resolve().parents[1]
VISITORS = (20, 50, 100, 200)
KEY = re.compile(rb"[0-9a-f]{64}")
WORDS = [
    "apple",
    "bridge",
    "candle",
    "desert",
    "engine",
    "forest",
    "garden",
    "harbour",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "meadow",
    "needle",
    "orchard",
]
REFUSALS = (b"waiting already", b"more than one visitor", b"Something went wrong")
PATIENCE = 60.0  # seconds for any answer
SAMPLE = 30.0  # seconds between two looks at the memory of a soak
# What a visitor does when it has thought, and how often of a hundred times
DOES = {
    "type": 50,
    "row": 10,
    "switch": 10,
    "tile": 6,
    "room": 8,
    "slider": 4,
    "long": 4,
    "translate": 4,
    "sweep": 4,
}


@dataclass
class Found:
    """What all visitors together have seen."""

    pictures: list[float] = field(default_factory=list)  # seconds, of short sentences
    slower: list[float] = field(default_factory=list)  # of long ones and translations
    rows: list[float] = field(default_factory=list)
    switches: list[float] = field(default_factory=list)  # to another head, until its row is there
    tiles: list[float] = field(default_factory=list)
    sliders: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    rooms: list[float] = field(default_factory=list)
    sweeps: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)  # of DOES


class Visitor:
    """One browser's connection, and what it has asked for."""

    def __init__(self, number: int, address: str, client: httpx2.AsyncClient, found: Found, rng: random.Random) -> None:
        self.number, self.address, self.client, self.found, self.rng = number, address, client, found, rng
        self.asked = {DEFAULT_REQUEST.key.encode()}
        self.run = DEFAULT_REQUEST.key
        self.box, self.cookie = "", ""
        self.sentences = 0

    @contextlib.asynccontextmanager
    async def page(self) -> AsyncIterator[ClientConnection]:
        """The first page, as it is opened without a link."""
        async with httpx2.AsyncClient(timeout=PATIENCE) as newcomer:  # the others' client remembers cookies
            page = await newcomer.get(f"{self.address}/")
        self.cookie = page.headers.get("set-cookie", "").split(";")[0]
        async with self.line() as line:
            await self.script(line, "")
            yield line

    async def visit(self, until: float, think: float) -> None:
        """Come, and go on until the time is over."""
        async with self.page() as line:
            while (pause := self.rng.uniform(0.5, 1.5) * think) + time.monotonic() < until:
                with contextlib.suppress(TimeoutError):
                    await self.listen(line, pause)
                what = self.rng.choices([*DOES], [*DOES.values()])[0]
                try:
                    await getattr(self, what)(line)
                    self.found.done[what] += 1
                except TimeoutError:
                    self.found.counts["no answer"] += 1

    def line(self) -> connect:
        """A websocket such as a page opens."""
        return connect(
            f"{self.address.replace('http', 'ws')}/_stcore/stream",
            additional_headers={"Cookie": self.cookie, "Origin": self.address},
            subprotocols=[Subprotocol("streamlit")],
            max_size=None,
            open_timeout=PATIENCE,
        )

    async def listen(self, line: ClientConnection, seconds: float) -> None:
        """What comes unasked is looked through like everything else."""
        async with asyncio.timeout(seconds):
            while True:
                self.check(await line.recv(decode=False))

    async def script(self, line: ClientConnection, query: str, text: str | None = None, key: str = "") -> float | None:
        """One run of the page's script: the seconds until the picture with this key came, or None where none did."""
        asked = BackMsg()
        state = asked.rerun_script
        state.query_string = query
        if text is not None:
            widget = state.widget_states.widgets.add()
            widget.id, widget.string_value = self.box, text
        begun = time.monotonic()
        await line.send(asked.SerializeToString())
        came = None
        async with asyncio.timeout(PATIENCE):
            while True:
                body = await line.recv(decode=False)
                self.check(body)
                if key and came is None and key.encode() in body:
                    came = time.monotonic() - begun
                message = ForwardMsg.FromString(body)
                if message.WhichOneof("type") == "delta":
                    element = message.delta.new_element
                    if element.WhichOneof("type") == "text_area" and element.text_area.label == "Sentence":
                        self.box = element.text_area.id
                    if element.WhichOneof("type") == "exception":
                        self.found.counts["exceptions"] += 1
                elif message.WhichOneof("type") != "script_finished":
                    continue
                elif message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    return came

    def check(self, body: bytes) -> None:
        """Nobody else's run, and no refusal."""
        self.found.counts["bytes"] += len(body)
        self.found.counts["foreign"] += len(set(KEY.findall(body)) - self.asked)
        for refusal in REFUSALS:
            self.found.counts["refused"] += refusal in body

    def sentence(self, words: int) -> str:
        self.sentences += 1
        said = " ".join(self.rng.choice(WORDS) for _ in range(words))
        return f"Visitor {self.number} wrote {self.sentences}: {said}."

    async def picture(self, line: ClientConnection, text: str) -> float | None:
        key = Request(DEFAULT_REQUEST.model_id, (text,)).key
        self.asked.add(key.encode())
        came = await self.script(line, "", text, key)
        if came is None:
            self.found.counts["no picture"] += 1
        else:
            self.run = key
        return came

    # what a visitor does

    async def type(self, line: ClientConnection) -> None:
        came = await self.picture(line, self.sentence(8))
        self.found.pictures += [] if came is None else [came]

    async def long(self, line: ClientConnection) -> None:
        came = await self.picture(line, self.sentence(200))
        self.found.slower += [] if came is None else [came]

    async def translate(self, _: ClientConnection) -> None:
        """By a link in a tab of its own."""
        text = self.sentence(5)
        key = Request("translator", (text,)).key
        self.asked.add(key.encode())
        async with self.line() as line:
            came = await self.script(line, urlencode({"model": "translator", "text": text}), key=key)
        if came is None:
            self.found.counts["no picture"] += 1
        else:
            self.found.slower.append(came)

    async def room(self, line: ClientConnection) -> None:
        begun = time.monotonic()
        await self.script(line, f"view={self.rng.choice(['memory', 'compute', 'shapes', 'masks', 'step'])}")
        self.found.rooms.append(time.monotonic() - begun)
        await self.script(line, "")

    async def row(self, line: ClientConnection) -> None:
        self.found.rows.append(await self.get(f"row?run={self.run}&record=0&head=0&query=1"))

    def head(self) -> str:
        config = default_model().config
        return f"run={self.run}&record={self.rng.randrange(config.n_decoder_layers or config.n_encoder_layers)}&head={self.rng.randrange(config.n_heads)}"

    async def switch(self, line: ClientConnection) -> None:
        self.found.switches.append(await self.get(f"row?{self.head()}&query=1"))

    async def tile(self, line: ClientConnection) -> None:
        self.found.tiles.append(await self.get(f"tile?{self.head()}&q0=0&q1=6&k0=0&k1=6"))

    async def slider(self, line: ClientConnection) -> None:
        """Moved in Memory, as the address says it then; and back to Explore."""
        begun = time.monotonic()
        await self.script(line, f"view=memory&plan_batch={self.rng.randrange(1, 64)}")
        self.found.sliders.append(time.monotonic() - begun)
        await self.script(line, "")

    async def sweep(self, line: ClientConnection) -> None:
        key = DEFAULT_REQUEST.key
        self.found.sweeps.append(await self.get(f"whatif/sweep?run={key}&sweep=heads"))

    async def get(self, path: str) -> float:
        begun = time.monotonic()
        answer = await self.client.get(f"{self.address}/headlight/{path}", headers={"Cookie": self.cookie})
        if answer.status_code != 200:
            self.found.counts[f"status {answer.status_code}"] += 1
        return time.monotonic() - begun


async def crowd(address: str, visitors: int, seconds: float, think: float, seed: int) -> Found:
    """So many visitors for so long. The first seconds, in which they come one by one, count as well."""
    found, rng = Found(), random.Random(seed)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(timeout=PATIENCE, limits=limits) as client:
        until = time.monotonic() + seconds + think

        async def come(number: int) -> None:
            await asyncio.sleep(think * number / visitors)
            try:
                await Visitor(number, address, client, found, random.Random(f"{seed} {number}")).visit(until, think)
            except Exception as error:
                found.counts[f"failed: {type(error).__name__}"] += 1

        async def watch() -> None:
            while True:
                begun = time.monotonic()
                await client.get(f"{address}/healthz")
                found.health.append(time.monotonic() - begun)
                await asyncio.sleep(rng.uniform(0.1, 0.3))

        watching = asyncio.create_task(watch())
        await asyncio.gather(*map(come, range(visitors)))
        watching.cancel()
    return found


async def burst(address: str, process: int, visitors: int, rounds: int) -> tuple[Found, float]:
    """So many who all press Enter in the same moment, several times: what they saw, and the server's seconds for a sentence."""
    found = Found()
    async with httpx2.AsyncClient(timeout=PATIENCE) as client, contextlib.AsyncExitStack() as held:
        everybody = [Visitor(i, address, client, found, random.Random(i)) for i in range(visitors)]
        lines = [await held.enter_async_context(one.page()) for one in everybody]
        used = []
        for _ in range(rounds):
            before = processor(process)
            await asyncio.gather(*(one.type(line) for one, line in zip(everybody, lines, strict=True)))
            used.append((processor(process) - before) / visitors)
            await asyncio.sleep(1)
    return found, median(used)


@contextlib.contextmanager
def procfile(core: int | None) -> Iterator[tuple[str, int]]:
    """The server as the Procfile starts it, and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    pin = ["taskset", "-c", str(core)] if core is not None else []
    environment = {**os.environ, "PORT": str(port), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    honcho = subprocess.Popen(
        [*pin, sys.executable, "-m", "honcho", "start", "web"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            with contextlib.suppress(httpx2.HTTPError):
                if httpx2.get(f"{address}/healthz").status_code == 200:
                    break
            time.sleep(0.25)
        yield address, _process(port)
    finally:
        honcho.terminate()
        honcho.wait(30)


def _process(port: int) -> int:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"--server.port" in words and str(port).encode() in words and b"python" in words[0]:
                return int(path.parent.name)
    raise RuntimeError("the server's process is not to be found")


def memory(process: int) -> int:
    """Bytes of a process that are in memory."""
    text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", text)[0]) * 1024


def processor(process: int) -> float:
    """Seconds of processor time that it has used."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@cache
def default_model() -> Loaded:
    """The model that opens first, which the visitors type to."""
    return core.load(DEFAULT_REQUEST.model_id)


def pass_seconds(pinned: int | None, rounds: int = 9) -> float:
    """Seconds of one pass of a short sentence through the default model, on the server's core, which must have nothing else to do."""
    mine = os.sched_getaffinity(0)
    if pinned is not None:
        os.sched_setaffinity(0, {pinned})
    torch.set_num_threads(1)
    visitor = Visitor(0, "", httpx2.AsyncClient(), Found(), random.Random(0))
    took = []
    for _ in range(rounds + 1):
        text, begun = visitor.sentence(8), time.monotonic()
        core.trace(default_model(), text)
        took.append(time.monotonic() - begun)
    os.sched_setaffinity(0, mine)
    return median(took[1:])


def percentiles(seconds: list[float], unit: float = 0.001, form: str = ",.0f") -> str:
    """p50, p95 and p99, in ms or in another unit of so many seconds."""
    if len(seconds) < 3:
        return "-"
    cuts = quantiles(seconds, n=100, method="inclusive")
    return " / ".join(f"{cuts[i] / unit:{form}}" for i in (49, 94, 98))


async def soaked(address: str, process: int, visitors: int, seconds: float, think: float) -> tuple[Found, list[int]]:
    """What the visitors of a soak saw, and the server's bytes in memory every SAMPLE seconds."""
    held: list[int] = []

    async def sample() -> None:
        while True:
            held.append(memory(process))
            print(f"{SAMPLE * (len(held) - 1) / 60:5.1f} min {held[-1] / 1e6:7.0f} MB", flush=True)
            await asyncio.sleep(SAMPLE)

    sampling = asyncio.create_task(sample())
    found = await crowd(address, visitors, seconds, think, visitors)
    sampling.cancel()
    return found, held


def growth(held: list[int]) -> float:
    """Bytes an hour, by the straight line through what was held every SAMPLE seconds."""
    if len(held) < 3:
        return float("nan")
    return linear_regression(range(len(held)), held).slope * 3600 / SAMPLE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, nargs="+", help="(default: 20 50 100 200; of a soak 50)")
    parser.add_argument("--seconds", type=float, help="(default: 60; of a soak 1800)")
    parser.add_argument("--think", type=float, default=10)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--burst", type=int, nargs="+", help="so many press Enter in the same moment")
    parser.add_argument("--rounds", type=int, default=9, help="of a burst")
    parser.add_argument("--soak", action="store_true", help="many visitors for long: does memory stay flat?")
    parser.add_argument("--warm", type=float, default=600, help="seconds before a soak in which its caches are filled")
    asked = parser.parse_args()
    asked.visitors = asked.visitors or ((50,) if asked.soak else VISITORS)
    asked.seconds = asked.seconds or (1800 if asked.soak else 60)
    cores = sorted(os.sched_getaffinity(0))
    pinned = len(cores) > 1
    if pinned:
        os.sched_setaffinity(0, {cores[-1]})
    table = []
    one_pass = pass_seconds(cores[0] if pinned else None)
    print(f"times in ms: p50 / p95 / p99; one pass of {DEFAULT_REQUEST.model_id}: {1000 * one_pass:.0f} ms")
    for visitors in asked.burst or ():
        with procfile(cores[0] if pinned else None) as (address, process):
            asyncio.run(crowd(address, 1, 5, 1, 0))
            found, seconds = asyncio.run(burst(address, process, visitors, asked.rounds))
        row = {
            "at once": visitors,
            "typed to picture": percentiles(found.pictures),
            "in passes": percentiles(found.pictures, one_pass, ".2f"),
            "server's ms a sentence": round(1000 * seconds, 1),
            "its passes a sentence": round(seconds / one_pass, 2),
        }
        print(json.dumps(row | {name: found.counts[name] for name in ("foreign", "refused", "no picture")}), flush=True)
    if asked.burst:
        return
    for visitors in asked.visitors:
        with procfile(cores[0] if pinned else None) as (address, process):
            asyncio.run(crowd(address, 1, 5, 1, 0))  # every kind of thing has happened once
            before, used, begun = memory(process), processor(process), time.monotonic()
            held: list[int] = []
            if asked.soak:
                asyncio.run(crowd(address, 3 * visitors, asked.warm, asked.think, 3 * visitors))
                print(f"warm: {memory(process) / 1e6:.0f} MB", flush=True)
                found, held = asyncio.run(soaked(address, process, visitors, asked.seconds, asked.think))
            else:
                found = asyncio.run(crowd(address, visitors, asked.seconds, asked.think, visitors))
            took = time.monotonic() - begun
            row = {
                "visitors": visitors,
                "done": dict(found.done),
                "pictures": len(found.pictures),
                "typed to picture": percentiles(found.pictures),
                "in passes": percentiles(found.pictures, one_pass, ".2f"),
                "long or translated": percentiles(found.slower),
                "row": percentiles(found.rows),
                "head switched": percentiles(found.switches),
                "tile": percentiles(found.tiles),
                "slider": percentiles(found.sliders),
                "health": percentiles(found.health),
                "room": percentiles(found.rooms),
                "sweep": percentiles(found.sweeps),
                "server's processor": f"{(processor(process) - used) / took:.0%}",
                "MB a visitor": round((memory(process) - before) / visitors / 1e6, 2),
                **{
                    name: found.counts[name] for name in ("foreign", "refused", "exceptions", "no picture", "no answer")
                },
                **{name: n for name, n in found.counts.items() if name.startswith(("status", "failed"))},
            }
            if held:
                row |= {
                    "MB at the end": round(held[-1] / 1e6),
                    "MB an hour": round(growth(held) / 1e6, 1),
                    "MB an hour in the second half": round(growth(held[len(held) // 2 :]) / 1e6, 1),
                }
        table.append(row)
        print(json.dumps(row, indent=1), flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(table, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
