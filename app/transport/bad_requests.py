"""What no browser sends to us, put aside before Streamlit reads it: it would write a traceback for it, or take seconds over it."""

from __future__ import annotations

import logging
from contextlib import suppress

from google.protobuf.message import DecodeError
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from app import languages
from app.transport import words

log = logging.getLogger("headlight")
NOT_UNDERSTOOD = 1003  # of a websocket that is closed: what came is of no kind that is read here
# What Streamlit would do for anybody: forget what it keeps for all visitors, say which repository this is, watch files. And messages
# that ask for nothing (""), which no page sends: Streamlit logs a warning for each, so anyone could fill the log.
NOT_DONE = {"clear_cache", "load_git_info", "set_run_on_save", ""}


class Strange:
    """ASGI middleware: no cookies with a backslash in them, and no messages of a websocket but Streamlit's own.

    A cookie never holds a backslash, and Python before 3.11.10 takes a time that grows with their number squared to read them in
    quotation marks: 64 KB, 20 s in which no one gets an answer (CVE-2024-7592).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = [(name, readable(value) if name == b"cookie" else value) for name, value in scope["headers"]]
        scope = {**scope, "headers": headers}
        if scope["type"] == "http":
            with suppress(ClientDisconnect):  # gone before all of the request was here: no one is left to be answered
                await self.app(scope, receive, send)
            return
        closed = False

        async def understood() -> Message:
            nonlocal closed
            while (message := await receive())["type"] == "websocket.receive":
                kind = kind_of(message.get("bytes"))
                if kind is None:
                    closed = True
                    await send({"type": "websocket.close", "code": NOT_UNDERSTOOD})
                    return {"type": "websocket.disconnect", "code": NOT_UNDERSTOOD}
                if kind not in NOT_DONE:
                    break
            return message

        async def until_closed(message: Message) -> None:
            if not closed:
                await send(message)

        await self.app(scope, understood, until_closed)


class Failing:
    """ASGI middleware: any exception of a route becomes one sentence, which the middleware around this one counts and gives headers.

    An answer that has begun cannot become another one: its connection breaks.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except ClientDisconnect:
            raise
        except Exception as error:
            if has_begun:
                raise
            log.exception("An answer of %s failed", scope["path"], exc_info=error)
            await PlainTextResponse(languages.said(words.FAILED), 500)(scope, receive, send)


def readable(cookies: bytes) -> bytes:
    """Those that hold no backslash."""
    return b";".join(cookie for cookie in cookies.split(b";") if b"\\" not in cookie) if b"\\" in cookies else cookies


def kind_of(body: bytes | None) -> str | None:
    """What a message of a page asks Streamlit for, "" for nothing; None for what is no such message. Texts, without bytes, are none."""
    try:
        return None if body is None else BackMsg.FromString(body).WhichOneof("type") or ""
    except DecodeError:
        return None
