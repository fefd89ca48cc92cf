"""What Step through asks for later: another walk, the terms of one number, the guess after every addition."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.export import offline
from app.rooms.step import message, words
from app.rooms.step.component import OFFLINE
from app.rooms.step.small import small_message
from app.rooms.step.steps import guesses_words
from app.session import service
from app.shell import style
from app.transport.routes import BadParameter, answering, cached_route, number, whole
from app.transport.routes import message as bytes_of
from core.service import WalkNumber

MOST = 1 << 30
SHOWN = 5  # terms of a sum
WORDS = 10  # of the next word's probabilities


@cached_route
async def walked(request: Request) -> bytes:
    """One token's walk through one layer: run, stack, layer, query, head."""
    key, stack, layer, query = _place(request)
    return await made(key, stack, layer, query, number(request, "head", 0, MOST))


async def made(key: str, stack: str, layer: int, query: int, head: int) -> bytes:
    """The message of a walk. Raises Refused."""
    asked = service.service()
    run = await asked.facts(key)
    if not 0 <= head < run.config.n_heads:
        raise BadParameter(words.NO_HEAD.format(head=head, last=run.config.n_heads - 1))
    walk = await asked.walk(key, stack, layer, query)
    ends = None if guesses_words(run, stack) else await asked.point(key, f"{stack}.hook_final")
    return message.packed(run, walk, await asked.additions(key, stack), head, ends)


@cached_route
async def experts(request: Request) -> bytes:
    """The experts that every token took: run, stack."""
    params = request.query_params
    return message.experts(await service.service().experts(params.get("run", ""), params.get("stack", "")[:20]))


@answering
async def terms(request: Request) -> Response:
    """One number as the sum that it is: as for a walk, with step and index, its place in that step's tensor."""
    key, stack, layer, query = _place(request)
    index = tuple(whole("index", part, 0, MOST) for part in request.query_params.get("index", "").split(".")[:4])
    of = WalkNumber(stack, layer, query, request.query_params.get("step", "")[:40], index)
    found = await service.service().terms(key, of, SHOWN)
    return JSONResponse(
        {
            "value": found.value,
            "indices": found.indices,
            "factors": found.factors,
            "products": found.products,
            "rest": found.rest,
            "n_rest": found.n_rest,
            "bias": found.bias,
            "edited": found.edited,
        }
    )


@answering
async def guesses(request: Request) -> Response:
    """What the head would make of the stream after every addition to one token, and the next word's probabilities."""
    key, query = request.query_params.get("run", ""), number(request, "query", 0, MOST)
    asked = service.service()
    found = await asked.guesses(key, query)
    return JSONResponse(message.lines_of(found, await asked.predictions(key, [query], WORDS)))


@answering
async def classes(request: Request) -> Response:
    """The answer of a classifier's head: run."""
    key = request.query_params.get("run", "")
    found = await service.service().classes(key)
    kind = (await service.service().facts(key)).spec.classes
    return JSONResponse(
        {
            "names": found.names,
            "kind": found.kind,
            "logits": found.logits,
            "chances": found.probabilities,
            "reads": "" if kind is None else kind.reads,
        }
    )


@cached_route
async def ending(request: Request) -> bytes:
    """From the last layer to the next word, at one position: run, query."""
    query = number(request, "query", 0, MOST)
    return message.ending(await service.service().ending(request.query_params.get("run", ""), query, WORDS))


@answering
async def worth(request: Request) -> Response:
    """The steps that are worth stepping through: run."""
    return JSONResponse(message.worth(await service.service().worth(request.query_params.get("run", ""))))


@answering
async def residual(_: Request) -> Response:
    """Gradients in fresh layers, with the residual connection and without, which no run decides."""
    return JSONResponse(message.residual(await service.service().residual_paths()))


async def small(_: Request) -> Response:
    """The pages of small numbers."""
    return bytes_of(small_message())


def _place(request: Request) -> tuple[str, str, int, int]:
    params = request.query_params
    layer, query = number(request, "layer", 0, MOST), number(request, "query", 0, MOST)
    return params.get("run", ""), params.get("stack", "")[:20], layer, query


ROUTES = [
    Route("/headlight/step/page", offline.answer(OFFLINE, style.page_style)),
    Route("/headlight/step/walk", walked),
    Route("/headlight/step/experts", experts),
    Route("/headlight/step/terms", terms),
    Route("/headlight/step/guesses", guesses),
    Route("/headlight/step/classes", classes),
    Route("/headlight/step/ending", ending),
    Route("/headlight/step/worth", worth),
    Route("/headlight/step/residual", residual),
    Route("/headlight/step/small", small),
]
