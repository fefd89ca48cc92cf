"""What strangers send: any request to any route gets an answer and no traceback, and visitors who type at once get their own runs."""

from __future__ import annotations

import asyncio
import random
import re
import string
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlencode

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from app.session import service
from app.shell import registry, routes
from app.transport import admission, rate_limits, security_headers, visitors
from benchmarks import load
from core.run.request import Request
from tests.app.served import local
from tests.thorough import how_many

APP = "app/main.py"
REQUESTS = how_many(2000, share=8)
LINKS, STRANGERS = 200, 4
VISITORS, DOES = 4, ("type", "row", "switch", "type", "room", "tile", "type")
NAMES = [
    "run",
    "record",
    "head",
    "query",
    "key",
    "q0",
    "q1",
    "k0",
    "k1",
    "kind",
    "members",
    "hide",
    "words",
    "site",
    "stack",
    "layer",
    "step",
    "index",
    "from",
    "to",
    "format",
    "what",
    "position",
    "path",
    "n",
    "how",
    "token",
    "beams",
    "temperature",
    "top_k",
    "sweep",
    "against",
    "other",
    "edits",
    "pick",
    "text",
    "texts",
    "side",
    "batch",
    "task",
    "seed",
    "rate",
    "at",
    "by",
    "order",
]
RUN = Request(service.DEFAULT_MODEL, ("The cat sat on the mat.",))
STREAMS = {"/headlight/layers", "/headlight/train/run"}  # which go on for as long as somebody listens


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    local().engine.run(RUN)
    with TestClient(Starlette(routes=routes.ROUTES, middleware=MIDDLEWARE)) as client:
        yield client


MIDDLEWARE = [
    Middleware(security_headers.Safe, no_pages=["/headlight/"]),
    Middleware(admission.Doors),
    Middleware(visitors.Named),
    Middleware(rate_limits.Metered),
]


def value(rng: random.Random) -> str:
    """What might stand behind a name: right, out of bounds, or anything."""
    return rng.choice(
        [
            RUN.key,
            str(rng.randrange(-2, 8)),
            str(rng.randrange(10**9)),
            "9" * 5000,
            "encoder",
            "attn",
            "head",
            "0.0,1.3",
            "nan",
            "-1e309",
            "true",
            "../../../etc/passwd",
            "<script>alert(1)</script>",
            "\x00",
            "ablate:encoder.0.1",
            "".join(rng.choices(string.printable, k=rng.randrange(40))),
            "".join(chr(rng.randrange(0xA0, 0xD7FF)) for _ in range(12)),
            "",
        ]
    )


@pytest.mark.thorough
def test_hundreds_of_requests_get_an_answer_and_no_traceback(client: TestClient) -> None:
    rng = random.Random(18)
    asked_for = [route for route in routes.ROUTES if "GET" in (route.methods or ())]  # what is sent: test_classroom.py
    known = [route.path for route in asked_for if route.path not in STREAMS and "{" not in route.path]
    assert len(known) > 35
    seen: Counter[int] = Counter()
    for _ in range(REQUESTS):
        asked = {name: value(rng) for name in rng.sample(NAMES, rng.randrange(8))}
        if rng.random() < 0.6:
            asked["run"] = RUN.key
        path = rng.choice(known)
        answer = client.get(f"{path}?{urlencode(asked)}")
        seen[answer.status_code] += 1
        said = answer.content[:4000].decode("utf-8", "replace")
        assert answer.status_code in (200, 204, 400, 404), (path, asked, said)
        assert "Traceback" not in said and not re.search(r'File "|/core/|site-packages', said), (path, asked)
        if answer.status_code == 400:
            assert answer.headers["content-type"].startswith("text/plain")
            assert 3 < len(said) < 1200, (path, asked, said)
    assert seen[200] > REQUESTS // 20 and seen[400] > REQUESTS // 5


def link(rng: random.Random, names: dict[str, list[str]]) -> str:
    """A link to a room, with what may be said there and what may not."""
    room = rng.choice([*names, "nowhere", ""])
    every = sorted({name for known in names.values() for name in known})
    said = {name: value(rng) for name in rng.sample(every, 4)}
    said |= {name: value(rng) for name in rng.sample(names.get(room, []), min(3, len(names.get(room, []))))}
    for name in rng.sample(["model", "text", "target", "step", "q", "compare", "lesson", "embed"], 3):
        said[name] = value(rng)
    if rng.random() < 0.3:
        said |= {"model": rng.choice(["MiniLM", "Storyteller", "Translator"]), "text": "The cat sat on the mat."}
    return urlencode(said | {"view": room}, errors="replace")


async def open_links(address: str, links: list[str], found: load.Found) -> None:
    """A visitor who opens one after the other, in one page."""
    async with httpx2.AsyncClient() as client:
        visitor = load.Visitor(0, address, client, found, random.Random(0))
        async with visitor.line() as line:
            for one in links:
                await visitor.script(line, one)
                found.counts["opened"] += 1


async def use(address: str, number: int, found: load.Found) -> None:
    """A visitor who does all that is in DOES, however long it takes; after each the server says how it is."""
    async with httpx2.AsyncClient(timeout=load.PATIENCE) as newcomer:  # the other client would send the cookie twice
        page = await newcomer.get(f"{address}/")
    async with httpx2.AsyncClient(timeout=load.PATIENCE) as client:
        visitor = load.Visitor(number, address, client, found, random.Random(number))
        visitor.cookie = page.headers["set-cookie"].split(";")[0]
        async with visitor.line() as line:
            await visitor.script(line, "")
            for what in DOES:
                await getattr(visitor, what)(line)
                with suppress(TimeoutError):
                    await visitor.listen(line, 0.1)
                health = await client.get(f"{address}/healthz")
                found.counts["well"] += health.status_code == 200


async def visitors_and_links(address: str) -> tuple[load.Found, load.Found]:
    """What visitors see who type, and what those see who open two hundred links meanwhile."""
    rng, names, found, strange = random.Random(19), registry.params(), load.Found(), load.Found()
    links = [link(rng, names) for _ in range(LINKS)]
    opening = (open_links(address, links[i::STRANGERS], strange) for i in range(STRANGERS))
    await asyncio.gather(*opening, *(use(address, i, found) for i in range(VISITORS)))
    return found, strange


@pytest.mark.thorough
def test_visitors_get_their_own_runs_while_strangers_open_two_hundred_links(address: str) -> None:
    """In a thread of its own: the test's has Playwright's loop. That the log has no traceback `address` says."""
    with ThreadPoolExecutor(1) as pool:
        found, strange = pool.submit(asyncio.run, visitors_and_links(address)).result()
    assert len(found.pictures) == VISITORS * DOES.count("type")
    assert found.counts["well"] == VISITORS * len(DOES)
    wrong = ("foreign", "refused", "exceptions", "no picture")
    assert {name: found.counts[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert not [name for name in found.counts if name.startswith("status")]
    assert (strange.counts["opened"], strange.counts["exceptions"]) == (LINKS, 0)
