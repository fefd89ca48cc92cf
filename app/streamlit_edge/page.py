"""Puts scripts of ours into Streamlit's page, before any other: steps for Back, light or dark by the address, its language,
Enter in a box, and whether its websocket comes through; and a title for who reads no script.

Streamlit has no setting for a script in its page. Without this none of scripts/ reaches a visitor.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import languages

HERE = Path(__file__).with_name("scripts")
IN_ORDER = ("handshakes.js", "history.js", "spoken.js", "theme.js", "enter.js", "menus.js", "landmark.js")
SCRIPTS = tuple(HERE / name for name in IN_ORDER)
PLAIN = "identity"  # the encoding that a page says which Streamlit shall not compress on its way to here
TITLE = re.compile(rb"<title>.*?</title>", re.DOTALL)  # in Streamlit's page, before any script of its own
LANGUAGE = b'<html lang="en"'  # of Streamlit's page
INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)  # ours and Streamlit's; all others in its page are files


class Scripted:
    """ASGI middleware: SCRIPTS, and the text that `more` gives, at the top of the page, and of nothing else.

    `base` is the path at which the page is served ("" or "/lab"), and what is no page is below it. `policy` gets the hashes of all
    scripts that stand in the page and gives its Content-Security-Policy. `head` gives the elements that stand for the title until a
    script says another. Where they are edited (`is_edited`), they are read for
    every page, and else once.
    """

    def __init__(
        self,
        app: ASGIApp,
        more: Sequence[Callable[[], str]] = (),
        policy: Callable[[Iterable[str]], str] | None = None,
        is_edited: bool = False,
        base: str = "",
        head: Callable[[Scope], str] = lambda _: "",
    ) -> None:
        self.app = app
        self.head = head
        self.no_pages = (f"{base}/static/", f"{base}/headlight/")
        self.policy = policy
        self.more = more
        self.is_edited = is_edited
        self.kept: dict[str, bytes] = {}  # by language

    def top(self) -> bytes:
        """The scripts, in the language of who asks."""
        if self.is_edited:
            return self.read()
        language = languages.current()
        if language not in self.kept:
            self.kept[language] = self.read()
        return self.kept[language]

    def read(self) -> bytes:
        sources = (*(path.read_text(encoding="utf-8") for path in SCRIPTS), *(text() for text in self.more))
        return "".join(f"<script>\n{source}</script>\n" for source in sources).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not asked or scope["path"].startswith(self.no_pages):
            await self.app(scope, receive, send)
            return
        # The headers of HEAD are those of the page, which the server does not send then.
        scope = {**scope, "method": "GET"}
        start: Message | None = None
        body = b""

        async def through(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                is_plain = headers.get("content-encoding", PLAIN) == PLAIN
                if is_plain and headers.get("content-type", "").startswith("text/html") and message["status"] == 200:
                    del headers["content-encoding"]
                    start = message
                    return
            elif start is not None and message["type"] == "http.response.body":
                body += message.get("body", b"")
                if message.get("more_body"):
                    return
                top, title = self.top(), self.head(scope).encode()
                body = body.replace(LANGUAGE, f'<html lang="{languages.current()}"'.encode(), 1)
                found, page = TITLE.search(body), body
                if found is not None:
                    page = body[: found.start()] + top + (title or found[0]) + body[found.end() :]
                headers = MutableHeaders(raw=start["headers"])
                headers["content-length"] = str(len(page))
                for name in ("etag", "last-modified"):  # they are the file's, which may stay when a script changes
                    del headers[name]
                if self.policy is not None:
                    headers["content-security-policy"] = self.policy(inline(top + body))  # what all links share
                await send(start)
                await send({"type": "http.response.body", "body": page})
                return
            await send(message)

        await self.app(scope, receive, through)


@lru_cache(maxsize=8)
def inline(page: bytes) -> tuple[str, ...]:
    """The hash of every script that stands in a page, as a Content-Security-Policy writes it."""
    digests = (hashlib.sha256(match[1]).digest() for match in INLINE.finditer(page))
    return tuple(f"sha256-{base64.b64encode(digest).decode()}" for digest in digests)
