"""One password for a private host (HEADLIGHT_PASSWORD), which every visitor types once.

A cookie remembers a browser until it is closed. It is the same for all visitors, is derived from the password, and so holds on every
front end and after a restart, and ends with the password. Programs, such as a collector of metrics, send the password by HTTP basic
authentication, under any name.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import os
import re
from html import escape
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app import languages
from app.transport import metrics, visitors, words
from app.transport.closed import POLICY_VIOLATION, PROBES
from app.transport.rate_limits import Balances, Rate

SETTING = "HEADLIGHT_PASSWORD"
COOKIE = "headlight_password"
AMONG = re.compile(rf"(?:^|;) *{COOKIE}=([A-Za-z0-9_-]+) *(?:;|$)")  # whatever cookies of other applications look like
FEWEST = 8  # characters
LONGEST = 4096  # bytes of a form
GUESSES = Rate(20, 0.2)  # of one network address, which may be a school's
ROUNDS = 200_000  # of PBKDF2, so that who gets hold of a cookie cannot try out passwords quickly
STYLE = (
    "body{font:1.25rem/1.5 system-ui,sans-serif;max-width:24rem;margin:20vh auto;padding:0 1rem;"
    "color-scheme:light dark;background:Canvas;color:CanvasText}"
    "input,button{font:inherit;width:100%;box-sizing:border-box;padding:.4rem;margin-top:.5rem}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors {sites}"


def required(value: str | None = None) -> str:
    """The password from HEADLIGHT_PASSWORD; "" if everybody may enter. Raises ValueError if it is too short."""
    found = os.environ.get(SETTING, "") if value is None else value
    if 0 < len(found) < FEWEST:
        raise ValueError(words.SHORT_PASSWORD.format(name=SETTING, n=FEWEST))
    return found


class Password:
    """ASGI middleware: without the password, only PROBES and a page that asks for it are answered.

    `sites` may show Headlight in a frame, where a browser keeps only cookies that are declared for that.
    """

    def __init__(
        self, app: ASGIApp, password: str, sites: tuple[str, ...] = (), balances: Balances | None = None
    ) -> None:
        self.app, self.sites = app, sites
        self.digest = _digest(password) if password else b""
        self.token = _token(password) if password else ""
        self.guesses = balances or Balances({"guesses": GUESSES})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_free = not self.digest or scope["type"] not in ("http", "websocket") or scope["path"] in PROBES
        if is_free or self._has_cookie(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        elif (guess := basic(Headers(scope=scope).get("authorization", ""))) is not None:
            await (self._refusal(scope, guess) or self.app)(scope, receive, send)
        else:
            await (await self._page(Request(scope, receive)))(scope, receive, send)

    def _has_cookie(self, scope: Scope) -> bool:
        found = AMONG.search("; ".join(Headers(scope=scope).getlist("cookie")))
        return found is not None and hmac.compare_digest(found[1], self.token)

    async def _page(self, request: Request) -> Response:
        """The page that asks for the password, or the answer to a password that was sent from it."""
        guess = await posted(request) if request.method == "POST" else None
        if guess is None:
            is_page = "text/html" in request.headers.get("accept", "")
            return self._asking("", 403) if is_page else PlainTextResponse(words.NEEDS_PASSWORD, 403)
        if refusal := self._refusal(request.scope, guess):
            return self._asking(bytes(refusal.body).decode(), refusal.status_code)
        # Without a path, since a proxy may have changed it. The query, with a link's sentence, stays.
        answer = Response(status_code=303, headers={"Location": f"?{request.url.query}", "Cache-Control": "no-store"})
        answer.headers["Set-Cookie"] = f"{COOKIE}={self.token}; Path=/; HttpOnly; {self._site(request.scope)}"
        return answer

    def _site(self, scope: Scope) -> str:
        if scope.get("scheme") != "https":
            return "SameSite=Lax"
        return "Secure; SameSite=None; Partitioned" if self.sites else "Secure; SameSite=Lax"

    def _refusal(self, scope: Scope, guess: str) -> PlainTextResponse | None:
        """None if this is the password. After too many wrong guesses of an address, none of its guesses is compared for a while."""
        who = (visitors.address_of(scope),)
        if wait := self.guesses.take(who, "guesses", 0):
            metrics.LIMITED.labels("guesses").inc()
            seconds = math.ceil(wait)
            return PlainTextResponse(words.WAIT_TO_GUESS.format(seconds=seconds), 429, {"Retry-After": str(seconds)})
        if hmac.compare_digest(_digest(guess), self.digest):
            return None
        self.guesses.spend(who, "guesses", 1)
        return PlainTextResponse(words.WRONG_PASSWORD, 403)

    def _asking(self, said: str, status: int) -> HTMLResponse:
        alert = f'<p role="alert">{escape(said)}</p>' if said else ""
        body = (
            f'<!doctype html><html lang="{languages.current()}"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">'
            f"<title>{escape(words.WAITING_TITLE)}</title><style>{STYLE}</style></head><body><main>"
            f"<h1>{escape(words.WAITING_TITLE)}</h1>"
            f'<form method="post"><label>{escape(words.PASSWORD)}'
            '<input type="password" name="password" autocomplete="current-password" required autofocus></label>'
            f"<button>{escape(words.ENTER)}</button></form>{alert}</main></body></html>"
        )
        policy = POLICY.format(sites=" ".join(["'self'", *self.sites]))
        return HTMLResponse(body, status, {"Cache-Control": "no-store", "Content-Security-Policy": policy})


def basic(header: str) -> str | None:
    """The password in an Authorization header; None if it has none."""
    kind, _, value = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except ValueError:  # neither base64 nor UTF-8
        return None


async def posted(request: Request) -> str | None:
    """The password of the page's form; None for any other body."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST:
            return None
    try:
        return parse_qs(body.decode("ascii"), max_num_fields=10).get("password", [None])[0]
    except ValueError:
        return None


def _digest(text: str) -> bytes:
    """Of one length, so that a comparison does not take a time that tells the password's."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _token(password: str) -> str:
    derived = hashlib.pbkdf2_hmac("sha256", password.encode(), b"headlight entry", ROUNDS)
    return base64.urlsafe_b64encode(derived).decode().rstrip("=")
