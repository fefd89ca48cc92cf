"""Answering: the Service of one process behind HTTP, for front ends on other machines. It knows no Ray: any ASGI server runs it.

POST /NAME with the packed arguments of Service.NAME answers with frames (wire.py); a refusal is an answer too. With the arguments
come the requests whose keys they name, where the front end has reason to think that they are not known here. While nothing is
found yet a beat says that somebody is there.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from cluster import token, wire
from core.errors import Refused
from core.run.request import Request
from core.service import LocalService
from core.service.queue import Askers, asked_from_now_on

LARGEST = 64 << 20  # bytes of a question: a painted mask of thousands of tokens is a few
BEAT = 5.0  # seconds

log = logging.getLogger("headlight")


async def answer(service: LocalService, asked: HttpRequest, secret: str = "") -> Response:
    """Answer one call of the service. 401, 404 and 400 are for callers that are no front end of ours."""
    name = asked.url.path.rpartition("/")[2]
    if name == "healthz":
        return PlainTextResponse("ok")
    if not token.is_right(asked.headers.get(token.HEADER, ""), secret):
        return PlainTextResponse(f"The token is wrong, or missing ({token.SETTING}).", token.DENIED)
    if asked.method != "POST" or name not in wire.CALLS:
        return PlainTextResponse("This is where models run; there is no page here.", 404)
    body = bytearray()
    async for part in asked.stream():
        body += part
        if len(body) > LARGEST:
            return PlainTextResponse(f"A question has at most {LARGEST:,} bytes.", 413)
    try:
        arguments, requests = wire.unpacked(bytes(body))
        wire.CALLS[name].bind(None, **arguments)
        askers = Askers(*map(tuple, json.loads(asked.headers.get(wire.ASKERS, "[[]]"))))
    except (TypeError, ValueError) as error:
        return PlainTextResponse(str(error), 400)
    asked_from_now_on(askers)
    frames = _frames(service, name, arguments, requests)
    return StreamingResponse(_beating(frames), media_type="application/octet-stream")


async def _frames(
    service: LocalService, name: str, arguments: dict[str, Any], requests: tuple[Request, ...]
) -> AsyncGenerator[bytes]:
    try:
        for request in requests:
            await service.submit(request)
        if name in wire.STREAMS:
            async with aclosing(getattr(service, name)(**arguments)) as found:
                async for value in found:
                    yield wire.frame(wire.VALUE, wire.packed(value))
            yield wire.frame(wire.END)
        else:
            yield wire.frame(wire.VALUE, wire.packed(await getattr(service, name)(**arguments)))
    except (Refused, IndexError) as error:
        yield wire.refusal(error)
    except Exception as error:
        log.exception("A call of %s failed", name)
        yield wire.refusal(error)


async def _beating(frames: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The same frames, with a beat whenever none has come for a while."""
    async with aclosing(frames):
        while True:
            coming = asyncio.ensure_future(anext(frames, None))
            try:
                while not (await asyncio.wait({coming}, timeout=BEAT))[0]:
                    yield wire.frame(wire.BEAT)
            finally:
                if not coming.done():  # nobody listens any more
                    coming.cancel()
                    await asyncio.wait({coming})
            found = coming.result()
            if found is None:
                return
            yield found
