"""The turn of a text's vector, in degrees, and a ruler for it: the turns of the same text without each of its words."""

from __future__ import annotations

import numpy as np
from starlette.requests import Request
from starlette.routing import Route

from app.attention import words
from app.session import service
from app.transport import messages
from app.transport.routes import cached_route
from core.run.request import Request as Asked

RULED = 24  # words of a text up to which every one is left out in turn
FEWER = 12  # of a longer one


def degrees(a: np.ndarray, b: np.ndarray) -> float:
    """The angle between two vectors that are not nothing."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return turned(float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))))


def turned(cosine: float) -> float:
    """The angle of a cosine, in degrees."""
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


@cached_route
async def ruler(request: Request) -> bytes:
    """How far the vector of a text turns without each of its words, in degrees: run. Beside it another sentence."""
    ask, key = service.service(), request.query_params.get("run", "")
    facts = await ask.facts(key)
    parts = facts.source.text.split()
    some = range(len(parts))
    if len(parts) > RULED:
        some = sorted({round(i * (len(parts) - 1) / (FEWER - 1)) for i in range(FEWER)})
    texts = [" ".join(parts[:i] + parts[i + 1 :]) for i in some] if len(parts) > 1 else []
    own = (await ask.outcome(key)).vector

    async def turn(text: str) -> float:
        other = await ask.submit(Asked(facts.spec.id, (text,)))
        return degrees(own, (await ask.outcome(other)).vector)

    marks = [[parts[i], await turn(text)] for i, text in zip(some, texts, strict=True)]
    return messages.pack({"marks": marks, "other": await turn(words.OTHER_SENTENCE)}, b"")


ROUTES = [Route("/headlight/ruler", ruler)]
