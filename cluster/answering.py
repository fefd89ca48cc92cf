"""HTTP server of the Service of one process, for front ends on other machines. It is independent of Ray: any ASGI server runs it.

POST /NAME with the packed arguments of Service.NAME is answered with frames (wire.py); a refusal is an answer too. The arguments are
sent with the requests of the keys that they contain if this machine may not know them. A beat is sent while there is no answer yet.
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
from core.errors import HeadlightError
from core.run.request import Request
from core.service import LocalService
from core.service.queue import Askers, asked_from_now_on

MAX_BODY_BYTES = 64 << 20  # a painted mask of thousands of tokens has a few MiB
BEAT_SECONDS = 5.0

log = logging.getLogger("headlight")


async def answer(service: LocalService, request: HttpRequest, secret: str = "") -> Response:
    """Answer one call of the service. 400, 401 and 404 are for callers that are not a front end."""
    name = request.url.path.rpartition("/")[2]
    if name == "healthz":
        return PlainTextResponse("ok")
    if not token.is_right(request.headers.get(token.HEADER, ""), secret):
        return PlainTextResponse(f"The token is wrong, or missing ({token.SETTING}).", token.DENIED)
    if request.method != "POST" or name not in wire.CALLS:
        return PlainTextResponse("This is where models run; there is no page here.", 404)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            return PlainTextResponse(f"A question has at most {MAX_BODY_BYTES:,} bytes.", 413)
    try:
        arguments, requests = wire.unpacked(bytes(body))
        wire.CALLS[name].bind(None, **arguments)
        askers = Askers(*map(tuple, json.loads(request.headers.get(wire.ASKERS, "[[]]"))))
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
    except (HeadlightError, IndexError) as error:
        yield wire.refusal(error)
    except Exception as error:
        log.exception("A call of %s failed", name)
        yield wire.refusal(error)


async def _beating(frames: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The same frames, with a beat whenever none has been sent for a while."""
    async with aclosing(frames):
        while True:
            coming = asyncio.ensure_future(anext(frames, None))
            try:
                while not (await asyncio.wait({coming}, timeout=BEAT_SECONDS))[0]:
                    yield wire.frame(wire.BEAT)
            finally:
                if not coming.done():  # the connection was closed
                    coming.cancel()
                    await asyncio.wait({coming})
            found = coming.result()
            if found is None:
                return
            yield found
