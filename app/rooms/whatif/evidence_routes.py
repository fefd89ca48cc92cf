"""Routes of What if about single heads: three tests of one, paths between several, and what each of them reads."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import date
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from app import languages
from app.rooms.whatif import changes, evidence_export, words
from app.rooms.whatif.routes import UNKEPT, Both, read, run_of
from app.session import service
from app.transport import messages, routes
from app.transport.routes import ANSWERS, BadParameter, answering, message
from core.errors import HeadlightError
from core.service import HeadPlace, PatchRequest, PathEdges, PathRequest


async def asked_of(request: Request) -> tuple[Both, str, PatchRequest]:
    """The question, the key of its run, and its lead. Raises BadParameter, Refused."""
    both = await read(request)
    if not changes.has_parts(both.a):
        raise BadParameter(words.NO_PARTS)
    key = await run_of(both, both.edits, other=False)
    other = await run_of(both, both.edits, other=True) if both.said["against"] else None
    return both, key, changes.asked_parts(both.said, both.a, other)


@answering
async def tests(request: Request) -> Response:
    """One head or MLP taken from the other sentence, silent, and at its mean: the lead and the answer after each, and a verdict."""
    both, key, asked = await asked_of(request)
    try:
        part = changes.part_of(request.query_params.get("tested", "-"), both.a)
    except (KeyError, ValueError, IndexError):
        part = None
    if part is None or part.kind == "resid":
        raise BadParameter(words.TESTED_ALLOWED)
    found = await service.service().part_tests(key, asked, part)
    facts = await service.service().facts(key)
    theirs = None if asked.other is None else await service.service().facts(asked.other)
    header = {
        "tests": [list(one) for one in zip(found.names, found.changes, found.p, strict=True)],
        "lead": found.lead,
        "verdict": found.verdict,
        **evidence_export.of_tests(facts, theirs, asked, found, date.today()),
    }
    return message(messages.pack(header, b""))


@answering
async def notes(request: Request) -> Response:
    """Every head by the token that it reads where it acts, and by the words that it pushes up and down."""
    _, key, asked = await asked_of(request)
    known = await service.service().part_estimates(key, asked)
    found = await service.service().head_notes(key, asked)
    body = messages.Body()
    arrays = {"acts": known.acts, "keys": found.key, "weights": found.weight, "firsts": found.first}
    if found.pushes is not None:
        arrays |= {"pushes": found.pushes}
    header = {
        "each": known.acts.shape[1],
        "layers": known.acts.shape[0],
        **{f"{name}_at": body.add(messages.float32(x)) for name, x in arrays.items()},
    }
    return message(messages.pack(header, body.bytes()))


@answering
async def paths(request: Request) -> Response:
    """Paths between some heads, or of them into one, as their runs come; at the end what the files say."""
    place = routes.asked(request)
    if (done := ANSWERS.known(place)) is not None:
        return routes.as_read(request, done, UNKEPT)
    both, key, asked = await asked_of(request)
    if asked.other is None or asked.to != "other":
        raise BadParameter(words.PATHS_NEED_TEXT)
    try:
        heads = tuple(_head(both, text) for text in request.query_params.get("heads", "").split(",") if text)
        into = _head(both, both.said["into"]) if both.said["into"] else None
    except (KeyError, ValueError, IndexError):
        raise BadParameter(words.INTO_ALLOWED) from None
    between = PathRequest(heads, into)
    edges = service.service().path_edges(key, asked, between)
    first = await anext(edges)  # what it is refused for comes before anything is sent

    async def stream() -> AsyncGenerator[bytes]:
        found, sent = [first], [of_edges(first)]
        yield sent[0]
        try:
            async for some in edges:
                found.append(some)
                sent.append(of_edges(some))
                yield sent[-1]
            facts, theirs = [await service.service().facts(one) for one in (key, asked.other or key)]
            said = evidence_export.of_paths(facts, theirs, asked, between, found, date.today())
            sent.append(messages.framed(said, b""))
            ANSWERS.put(place, await routes.packed(b"".join(sent)))  # a class asks for it at once
            yield sent[-1]
        except (HeadlightError, IndexError) as error:
            yield messages.framed({"refused": languages.said(error)}, b"")
        finally:
            await edges.aclose()

    return StreamingResponse(stream(), media_type="application/octet-stream", headers=UNKEPT)


def _head(both: Both, text: str) -> tuple[int, int]:
    """Raises ValueError, KeyError."""
    part = changes.part_of(f"z{text}", both.a)
    assert part is not None
    return part.layer, part.at


def of_edges(found: PathEdges) -> bytes:
    """One message: from where, to where, by which input, and by how much the lead changes."""

    def name(place: HeadPlace | None) -> str:
        return "" if place is None else f"z{place.layer}.{place.head}"

    edges: list[list[Any]] = [[name(edge.sender), name(edge.receiver), edge.input, edge.change] for edge in found.edges]
    return messages.framed({"first": found.first, "of": found.of, "edges": edges}, b"")


ROUTES = [
    Route("/headlight/whatif/tests", tests),
    Route("/headlight/whatif/notes", notes),
    Route("/headlight/whatif/paths", paths),
]
