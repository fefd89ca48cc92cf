"""What teachers and followers may send, read strictly: anything else is no message, and changes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from app.classroom import sentences

MOST_BYTES = 2048
MOST_SCREEN = 900  # bytes of a screen as JSON: with its number it still travels in less than a kilobyte
VIEW = re.compile(r"[a-z]{1,20}")
COVERS = re.compile(
    r"|head|row|code|step|lesson:[a-z]{1,20}:\d{0,4}"
)  # of the last: the part of the room, and the row if it is of one
LARGEST = 1 << 31


class BadMessage(ValueError):
    """No message of a class; the text says why."""


class TooLong(BadMessage):
    """More than any message of a class has."""


@dataclass(frozen=True)
class Shown:
    """The screen as the teacher's browser tells it."""

    view: str
    run: str
    chosen: Mapping[str, str]
    cover: str
    said: str = ""  # why there is no picture, in the words that stand on the teacher's page


@dataclass(frozen=True)
class Question:
    """The row and the head that the class is asked about."""

    run: str
    site: str
    layer: int
    head: int
    query: int


async def body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; never more of it is read than a message may have."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise BadMessage(sentences.NOT_JSON)
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > MOST_BYTES:
            raise TooLong(sentences.TOO_LONG)
    try:
        said = json.loads(found)
    except (ValueError, RecursionError):
        raise BadMessage(sentences.NOT_JSON) from None
    return _object(said, "it must be an object")


def fields(said: Mapping[str, Any], /, **kinds: type) -> list[Any]:
    """The values of exactly these fields, of these kinds, in this order."""
    if said.keys() != kinds.keys():
        raise BadMessage(sentences.NOT_KNOWN.format(what=f"its fields must be {', '.join(kinds)}"))
    for name, kind in kinds.items():
        value = said[name]
        if type(value) is not kind or (kind is int and not 0 <= value < LARGEST):
            raise BadMessage(sentences.NOT_KNOWN.format(what=f"{name} is of another kind"))
    return [said[name] for name in kinds]


def shown(said: object) -> Shown:
    """A screen. `cover` and `said` may be left out."""
    told = {"cover": "", "said": "", **_object(said, "a screen must be an object")}
    view, run, chosen, cover, why = fields(told, **{"view": str, "run": str, "with": dict, "cover": str, "said": str})
    if len(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")) > MOST_SCREEN:
        raise TooLong(sentences.TOO_LONG)
    if not VIEW.fullmatch(view):
        raise BadMessage(sentences.NOT_KNOWN.format(what="its view must be the id of one"))
    if not COVERS.fullmatch(cover):
        raise BadMessage(
            sentences.NOT_KNOWN.format(what="its cover must be head, row, code, step, of a lesson or empty")
        )
    if not all(isinstance(part, str) for pair in chosen.items() for part in pair):
        raise BadMessage(sentences.NOT_KNOWN.format(what="what is chosen must be text"))
    if why and run:
        raise BadMessage(sentences.NOT_KNOWN.format(what="what is said stands in for a picture"))
    return Shown(view, run, chosen, cover, why)


def question(said: Mapping[str, Any]) -> Question:
    return Question(*fields(said, run=str, site=str, layer=int, head=int, query=int))


def step(said: Mapping[str, Any]) -> str:
    """The key of what a room offers to ask."""
    (key,) = fields(said, offer=str)
    return key


def answer(said: Mapping[str, Any]) -> tuple[int, int, object]:
    """Of a step: the question's number, its round, and what is said."""
    number, round = fields({name: value for name, value in said.items() if name != "a"}, q=int, r=int)
    return number, round, said["a"]


def vote(said: Mapping[str, Any]) -> tuple[int, int]:
    """The question's number, and the place of the word in the sentence."""
    number, place = fields(said, q=int, t=int)
    return number, place


def _object(said: object, otherwise: str) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise BadMessage(sentences.NOT_KNOWN.format(what=otherwise))
    return said
