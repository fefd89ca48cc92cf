"""What there is to see of a run: its picture, and of one that goes on each layer's small pictures once the pass has left it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from app.attention import picture, transform
from app.session import examples, service
from app.transport import messages
from core.request import Request
from core.service import Facts, HeadDone, Kept, LayerDone

PICTURE_BYTES = 64 << 20  # of all pictures that are kept

PICTURES = Kept(PICTURE_BYTES, lambda made: len(made.body) + 16_384)


def picture_of(request: Request) -> picture.Picture:
    """The picture of a request's run, ready to send, for a script. Raises Refused."""
    return service.calls().result(made_of(request))


async def made_of(request: Request) -> picture.Picture:
    async def make() -> picture.Picture:
        asked = service.service()
        key = await asked.submit(request)
        run = await asked.facts(key)
        if picture.is_whole(run):
            shown = examples.texts_of(request.model_id)
            found = () if request.texts[0] in shown else await asked.openings(key)
            return picture.whole_picture(run, await asked.heads(key), found)
        return picture.small_pictures(run, await asked.thumbnails(key))

    return await PICTURES.get(request.key, make)


async def parts(run: Facts, record: int, head: int, query: int | None) -> AsyncIterator[bytes]:
    """Messages, each behind its length as a u32, as the pass goes on: every record's thumbnails, {site, layer, at, how}.

    Behind those of `record` come its map and a row of it, as the routes would answer, {path, params}; and {ms} when the run
    has ended. They stop without it where the run does.
    """
    sites = picture.outline(run)["sites"]
    layers = {i: (site, layer) for site in sites for layer, i in enumerate(site["records"])}
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
