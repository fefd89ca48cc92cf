"""What there is to see of a run: its picture, and of one that goes on each layer's small pictures once the pass has left it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from app.attention import picture, transform
from app.session import examples, service
from app.transport import messages
from core.run.request import Request
from core.service import AnswerCache, Facts, HeadDone, LayerDone, Sink, SiteId

PICTURE_BYTES = 64 << 20  # of all pictures that are kept

QUESTION_MARKS = ("?", "？", "؟")

PICTURES = AnswerCache(PICTURE_BYTES, lambda made: len(made.body) + 16_384)


async def made_of(request: Request) -> picture.Picture:
    """The picture of a request's run, ready to send. Raises Refused."""

    async def make() -> picture.Picture:
        run = await service.service().facts(await service.service().submit(request))
        return await _made(run, request.model_id, run.source.text if request.chat else request.texts[0])

    return await PICTURES.get(request.key, make)


async def picture_of_run(key: str) -> picture.Picture:
    """The same of a run that a visitor has asked for, by its key. Raises Unknown where no one has."""

    async def make() -> picture.Picture:
        run = await service.service().facts(key)
        return await _made(run, run.spec.id, run.source.text)

    return await PICTURES.get(key, make)


async def _made(run: Facts, model_id: str, text: str) -> picture.Picture:
    """The model's first example opens on its preset head, every other text on its own best finding."""
    asked, is_example = service.service(), examples.is_first(model_id, text)
    if picture.is_whole(run):
        whole = await asked.whole(run.key)
        openings, look = () if is_example else whole.openings, whole.look if run.non_finite is None else None
        made = picture.whole_picture(run, whole.heads, openings, whole.roles, look, whole.sinks)
    else:
        look, sinks = await asyncio.gather(asked.opening_look(run.key), _sinks(run))
        openings = () if is_example else await asked.openings(run.key)
        made = picture.larger_picture(run, openings, look if run.non_finite is None else None, sinks)
    is_question = run.conversation is None and text.rstrip().endswith(QUESTION_MARKS)
    if is_question and await asked.chats(model_id):
        made = replace(made, header={**made.header, "asks": True})
    return made


async def _sinks(run: Facts) -> dict[SiteId, Sink | None]:
    """The token that heads rest on, by kind of attention."""
    found = await asyncio.gather(*(service.service().sink(run.key, site.id) for site in run.sites))
    return {site.id: one for site, one in zip(run.sites, found, strict=True)}


async def parts(run: Facts, record: int, head: int, query: int | None) -> AsyncGenerator[bytes]:
    """Messages, each after its length as a u32, as the pass goes on: every record's thumbnails, {site, layer, at, how}.

    After those of `record` come its map and a row of it, as the routes would answer, {path, params}; and {ms} when the run
    has ended. They stop without it where the run does.
    """
    layers = picture.layers_of(picture.outline(run)["sites"])
    async with aclosing(service.service().parts(run.key, record, head, query)) as coming:
        async for part in coming:
            if isinstance(part, LayerDone):
                site, layer = layers[part.record]
                at, data = picture.drawn(site, layer, part.thumbnails)
                header = {"site": site["id"], "layer": layer, "at": at, "how": part.thumbnails.how}
                yield messages.framed(header, data)
            elif isinstance(part, HeadDone):
                for path, params, message in transform.opened(part):
                    yield messages.framed({"path": path, "params": params}, message)
            else:
                yield messages.framed({"ms": part.seconds * 1000}, b"")
