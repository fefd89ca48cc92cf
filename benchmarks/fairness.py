"""How long a bystander waits for a sentence while another visitor keeps the server busy.

    python -m benchmarks.fairness [--sentences 15] [--connections 16] [--attacks questions typing rooms refusals]

The server is started as in the Procfile, on all cores. The bystander types one sentence a second and waits for each picture: first
alone; then while another visitor asks for the lens and for the origin of each word over `connections` connections ("questions");
then while that visitor types into as many pages ("typing"), asks questions of all rooms ("rooms"), or asks questions that are refused at
once ("refusals"). The result is the ratio to the times alone in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import httpx2

from benchmarks.load import PATIENCE, Found, Visitor, procfile

PAUSE = 1.0  # seconds between two sentences of the bystander
LEAD = 5.0  # seconds of an attack before the bystander types
TOKENS = 80  # written words that a question is about
MOST_ID = 40_000  # of a token


async def sentences(visitor: Visitor, n: int) -> list[float]:
    """Seconds until the picture of each of n new sentences."""
    took = []
    async with visitor.page() as line:
        await visitor.type(line)  # the first is not counted
        visitor.found.pictures.clear()
        for _ in range(n):
            await asyncio.sleep(PAUSE)
            await visitor.type(line)
            took.append(visitor.found.pictures[-1] if visitor.found.pictures else PATIENCE)
            visitor.found.pictures.clear()
    return took


def lens_or_words(rng: random.Random) -> str:
    """The lens, or the origin of each word, of a text that nothing is cached for."""
    path = ".".join(str(rng.randrange(100, MOST_ID)) for _ in range(TOKENS))
    return rng.choice((f"generate/wrote?path={path}", f"generate/lens?path={path}&position=60&token=5"))


def of_any_room(rng: random.Random) -> str:
    """A question of one of the rooms, with a changed edit or position, so that few answers come from a cache."""
    edits = f"temperature_{rng.uniform(0.5, 2):.4f}"
    return rng.choice(
        (
            f"whatif/sweep?sweep=heads&edits={edits}",
            f"whatif/parts?edits={edits}",
            f"whatif/side?edits={edits}",
            f"masks/edited?edits={edits}",
            "masks/ladder?",
            "positions/loss?",
            "positions/order?",
            "step/worth?",
            f"step/walk?layer={rng.randrange(30)}&position=2",
            f"correlations?record={rng.randrange(30)}&head={rng.randrange(9)}",
            "findings?",
            "export?format=npz&kind=weights",
            "generate/beams?beams=4&n=64",
            f"generate/write?n=200&how=sample&seed={rng.randrange(10_000)}",
        )
    )


def refused(rng: random.Random) -> str:
    """A question that is refused at once."""
    return f"generate/lens?path={rng.random()}"


@contextlib.asynccontextmanager
async def asking(
    make: Callable[[random.Random], str], address: str, connections: int, seen: Counter[str]
) -> AsyncIterator[None]:
    """One visitor who asks questions about a run over many connections, without a pause."""
    async with httpx2.AsyncClient(timeout=None, limits=httpx2.Limits(max_connections=None)) as client:
        attacker = Visitor(1, address, client, Found(), random.Random(1))
        async with attacker.page() as line:
            await attacker.picture(line, "My dog is very")

        async def ask(number: int) -> None:
            rng = random.Random(number)
            while True:
                url = f"{address}/headlight/{make(rng)}&run={attacker.run}"
                answer = await client.get(url, headers={"Cookie": attacker.cookie})
                seen[str(answer.status_code)] += 1

        tasks = [asyncio.create_task(ask(i)) for i in range(connections)]
        try:
            yield
        finally:
            await ended(tasks)


@contextlib.asynccontextmanager
async def typing(address: str, connections: int, seen: Counter[str]) -> AsyncIterator[None]:
    """One visitor with many pages who types into all of them."""
    async with httpx2.AsyncClient(timeout=None) as client, contextlib.AsyncExitStack() as held:
        pages = [Visitor(100 + i, address, client, Found(), random.Random(i)) for i in range(connections)]
        lines = [await held.enter_async_context(pages[0].page())]
        for page in pages[1:]:
            page.cookie = pages[0].cookie
            lines.append(await held.enter_async_context(page.line()))
            await page.script(lines[-1], "")

        async def type(page: Visitor, line: object) -> None:
            while True:
                with contextlib.suppress(TimeoutError):
                    came = await page.picture(line, page.sentence(8))  # type: ignore[arg-type]
                    seen["no picture" if came is None else "pictures"] += 1

        asking = [asyncio.create_task(type(page, line)) for page, line in zip(pages, lines, strict=True)]
        try:
            yield
        finally:
            await ended(asking)


async def ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


ATTACKS = {
    "questions": partial(asking, lens_or_words),
    "typing": typing,
    "rooms": partial(asking, of_any_room),
    "refusals": partial(asking, refused),
}


async def measured(address: str, n: int, connections: int, attacks: list[str]) -> dict[str, object]:
    """Seconds of the bystander by attack, and the counts of answers that the attackers got."""
    async with httpx2.AsyncClient(timeout=PATIENCE) as client:

        def bystander(number: int) -> Visitor:
            return Visitor(number, address, client, Found(), random.Random(number))

        found: dict[str, object] = {"alone": await sentences(bystander(7), n)}
        for i, name in enumerate(attacks):
            seen: Counter[str] = Counter()
            async with ATTACKS[name](address, connections, seen):
                await asyncio.sleep(LEAD)
                found[name] = await sentences(bystander(8 + i), n)
            found[f"{name}, others"] = dict(seen)
            await asyncio.sleep(LEAD)
    return found


def told(seconds: list[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    return median(seconds), quantiles(seconds, n=100, method="inclusive")[94]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=15)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--attacks", nargs="+", choices=[*ATTACKS], default=[*ATTACKS])
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with procfile(None) as (address, _):
        found = asyncio.run(measured(address, asked.sentences, asked.connections, asked.attacks))
    alone = told(found["alone"])  # type: ignore[arg-type]
    print(f"{'':12} {'median':>8} {'p95':>8} {'ratios to alone':>16}")
    for name in ("alone", *asked.attacks):
        now = told(found[name])  # type: ignore[arg-type]
        others = found.get(f"{name}, others", "")
        print(f"{name:12} {now[0]:7.2f}s {now[1]:7.2f}s {now[0] / alone[0]:7.1f} {now[1] / alone[1]:8.1f}   {others}")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
