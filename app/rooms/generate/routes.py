"""Routes of Generate: a text as it is written, beams as they grow, what each layer would say, what the cache saves, and what was written
as a text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, replace
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app import languages
from app.rooms.generate import choices, message, words
from app.session import resolving, service
from app.session.screen import Screen
from app.transport import routes
from app.transport.routes import BadParameter, answering
from core.errors import HeadlightError
from core.run.request import Request as RunRequest
from core.service import MAX_WRITTEN, Continuation, Facts, PreparedText, Sampling, WrittenToken

T = TypeVar("T")
LONGEST_TIMED = 1024  # tokens
FEWEST_TIMED = 16
MOST_LAYERED = 64  # places of a text whose layers are read together


@answering
async def write(request: Request) -> Response:
    """What follows a text: run, path, n, how, t, k, p, minp, seed, also (paths whose words are named), layer and head, opened, first.

    Messages come as tokens do: message.begun first, unless `opened` is 1, then message.written for each. A reader who goes away stops
    the writing.
    """
    facts, asked = await _facts(request), request.query_params
    path = _path(facts, asked.get("path", ""))
    n = _number(request, "n", 0, MAX_WRITTEN, 0)
    also = [i for part in asked.get("also", "").split(choices.APART) for i in _path(facts, part)]
    is_open = _number(request, "opened", 0, 1, 0) == 1
    head = None
    if asked.get("head"):
        head = (
            _number(request, "layer", 0, facts.config.n_decoder_layers - 1, 0),
            _number(request, "head", 0, facts.config.n_heads - 1, 0),
        )

    def packed(answer: PreparedText | WrittenToken) -> bytes:
        if isinstance(answer, PreparedText):
            return message.begun(answer, head)
        return message.written(answer, head)

    first = _number(request, "first", 0, facts.config.vocab_size - 1, 0) if asked.get("first") else None
    how = _sampling(request, facts)
    coming = service.service().write(facts.key, path, n, how, Continuation(first) if is_open and n else also)
    return await _streamed(coming, packed)


@answering
async def beams(request: Request) -> Response:
    """The likeliest texts side by side: run, beams, n. message.beams for each step."""
    facts = await _facts(request)
    n_beams = _number(request, "beams", *choices.BEAMS, 3)
    n = _number(request, "n", 1, MAX_WRITTEN, 8)
    return await _streamed(service.service().beams(facts.key, n_beams, n), message.beams)


@answering
async def lens(request: Request) -> Response:
    """What each layer would say after one position: run, path, position, token."""
    facts = await _facts(request)
    path = _path(facts, request.query_params.get("path", ""))
    position = _number(request, "position", 0, 1 << 20, 0)
    token = _number(request, "token", 0, facts.config.vocab_size - 1, 0)
    found = await service.service().lens_at(facts.key, path, position, token)
    return JSONResponse([asdict(row) for row in found], headers=routes.KEPT)


@answering
async def what_wrote(request: Request) -> Response:
    """The heads and looks that wrote each word: run, path."""
    facts = await _facts(request)
    found = await service.service().wrote(facts.key, _path(facts, request.query_params.get("path", "")))
    return JSONResponse([asdict(word) for word in found.words], headers=routes.KEPT)


@answering
async def layers(request: Request) -> Response:
    """The words of each layer at many places at once: run, path, first, last (positions)."""
    facts = await _facts(request)
    path = _path(facts, request.query_params.get("path", ""))
    first = _number(request, "first", 0, 1 << 20, 0)
    last = _number(request, "last", 0, 1 << 20, first)
    if not first <= last < first + MOST_LAYERED:
        raise BadParameter(words.TOO_MANY_LAYERED.format(n=MOST_LAYERED))
    found = await service.service().lens_columns(facts.key, path, range(first, last + 1))
    return JSONResponse(asdict(found), headers=routes.KEPT)


@answering
async def text(request: Request) -> Response:
    """What a link to the text says that was written: run, path."""
    facts = await _facts(request)
    return JSONResponse(await wrote(facts, request.query_params), headers=routes.KEPT)


async def wrote(facts: Facts, said: Mapping[str, str]) -> dict[str, str]:
    """What a link to the run says once the words are part of its text that were taken after it. Raises BadParameter, Refused."""
    path = _path(facts, said.get("path", ""))
    if not path:
        return {}
    if facts.conversation is not None:
        before = facts.source.text.removesuffix(facts.conversation[1])
        return {"target": (await service.service().written_text(facts.key, path)).removeprefix(before)}
    return {"text" if facts.target is None else "target": await service.service().written_text(facts.key, path)}


async def run_of(linked: RunRequest, there: Screen) -> RunRequest:
    """The run that a link to the room shows: of its text with the words that were taken. Raises BadParameter, Refused.

    Whose tokens they are is the link's own model, also where another one reads the words.
    """
    facts = await resolving.facts_of(there.request)
    taken = await wrote(facts, there.params)
    texts = (taken.get("text", linked.texts[0]),)
    return replace(linked, texts=texts, target_text=taken.get("target", linked.target_text))


@answering
async def cost(request: Request) -> Response:
    """What a token takes with and without a cache, measured now: run, path, n."""
    facts = await _facts(request)
    path = _path(facts, request.query_params.get("path", ""))
    n = _number(request, "n", FEWEST_TIMED, LONGEST_TIMED, 240)
    return JSONResponse(asdict(await service.service().cache_cost(facts.key, path, n)))


async def _facts(request: Request) -> Facts:
    return await service.service().facts(request.query_params.get("run", ""))


def _path(facts: Facts, text: str) -> tuple[int, ...]:
    try:
        return choices.ids_of(text, facts)
    except ValueError:
        allowed = words.PATH_ALLOWED.format(n=MAX_WRITTEN, most=facts.config.vocab_size - 1)
        raise BadParameter(words.BAD_PATH.format(allowed=allowed)) from None


def _number(request: Request, name: str, low: int, high: int, otherwise: int) -> int:
    text = request.query_params.get(name)
    return otherwise if text is None else routes.whole(name, text, low, high)


def _sampling(request: Request, facts: Facts) -> Sampling:
    """How each word is chosen, by the same texts as in the link."""
    asked = request.query_params
    values = {"how": "greedy", "t": "1", "k": "0", "p": "1", "minp": "0", "seed": "1"}
    for param in choices.PARAMS:
        if param.name in values and param.name in asked:
            try:
                values[param.name] = param.read(asked[param.name], facts)
            except ValueError:
                allowed = param.allowed if isinstance(param.allowed, str) else param.allowed(facts)
                raise BadParameter(words.BAD_CHOICE.format(name=param.name, allowed=allowed)) from None
    if values["how"] != "sample":
        return Sampling()
    k, p = int(values["k"]), float(values["p"])
    m = float(values["minp"])
    return Sampling(float(values["t"]), k or None, p if p < 1 else None, m or None, int(values["seed"]))


async def _streamed(answers: AsyncGenerator[T], packed: Callable[[T], bytes]) -> Response:
    """Messages as answers come, b"" for one that is not sent. What is refused before the first of them is refused as a whole."""
    first = await anext(answers, None)

    async def coming() -> AsyncIterator[bytes]:
        async with aclosing(answers):
            if first is not None:
                yield packed(first)
            try:
                async for answer in answers:
                    yield packed(answer)
            except HeadlightError as error:
                yield message.refused(languages.said(error))

    # Not held on the way: a proxy that collects the answer would keep the words back until the last.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(coming(), media_type="application/octet-stream", headers=headers)


ROUTES = [
    Route("/headlight/generate/write", write),
    Route("/headlight/generate/beams", beams),
    Route("/headlight/generate/lens", lens),
    Route("/headlight/generate/wrote", what_wrote),
    Route("/headlight/generate/layers", layers),
    Route("/headlight/generate/cost", cost),
    Route("/headlight/generate/text", text),
]
