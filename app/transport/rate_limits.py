"""What one visitor may ask for: so many runs, sweeps, trainings and bytes, which come back with time."""

from __future__ import annotations

import math
import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import wraps

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.transport import metrics, words

COOKIE = "headlight"  # random, for as long as the browser is open; it says nothing but that it is the same browser
NAME = re.compile(r"[A-Za-z0-9_-]{22}")
# In all cookies of a browser, whatever the others say.
AMONG = re.compile(rf"(?:^|;) *{COOKIE}=({NAME.pattern}) *(?:;|$)")
LIMITS = "HEADLIGHT_LIMITS"
MOST_VISITORS = 20_000  # whose accounts are remembered
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Rate:
    """So many at once, and so many more every second."""

    most: float
    per_second: float


RATES: Mapping[str, Rate] = {
    "runs": Rate(120, 4),
    "sweeps": Rate(20, 0.5),
    "trainings": Rate(8, 0.1),
    "megabytes": Rate(400, 8),
}


def rates(value: str | None = None) -> dict[str, Rate]:
    """RATES as HEADLIGHT_LIMITS changes them: "runs=60/2 megabytes=100/1", or "off". Raises ValueError for anything else."""
    asked = os.environ.get(LIMITS, "") if value is None else value
    if asked == "off":
        return {}
    found = dict(RATES)
    for part in asked.split():
        match = re.fullmatch(r"(\w+)=(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", part)
        if match is None or match[1] not in RATES or not float(match[2]) or not float(match[3]):
            raise ValueError(words.NO_LIMIT.format(name=LIMITS, value=part[:40], names=", ".join(RATES)))
        found[match[1]] = Rate(float(match[2]), float(match[3]))
    return found


class Accounts:
    """What each visitor has left; those who have not come for longest are forgotten first, and begin with all of it."""

    def __init__(self, rates: Mapping[str, Rate], clock: Callable[[], float] = time.monotonic) -> None:
        self.rates, self.clock = rates, clock
        self._lock = threading.Lock()
        self._left: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()  # (left, when it was so much)

    def take(self, visitor: str, what: str, amount: float = 1) -> float:
        """0 where the visitor may have it, and it is taken; else the seconds until there will be as much."""
        rate = self.rates.get(what)
        if rate is None:
            return 0.0
        with self._lock:
            left = self._now(visitor, what, rate)
            if left < amount:
                return (amount - left) / rate.per_second
            self._put(visitor, what, left - amount)
        return 0.0

    def spend(self, visitor: str, what: str, amount: float) -> None:
        """Charge a cost known only afterwards; the balance may become negative."""
        rate = self.rates.get(what)
        if rate is not None:
            with self._lock:
                self._put(visitor, what, self._now(visitor, what, rate) - amount)

    def _now(self, visitor: str, what: str, rate: Rate) -> float:
        left, at = self._left.get((visitor, what), (rate.most, self.clock()))
        return min(rate.most, left + (self.clock() - at) * rate.per_second)

    def _put(self, visitor: str, what: str, left: float) -> None:
        self._left[visitor, what] = left, self.clock()
        self._left.move_to_end((visitor, what))
        while len(self._left) > MOST_VISITORS * len(RATES):
            self._left.popitem(last=False)


accounts = Accounts({})  # none is limited until the server begins: see begin()


def begin() -> None:
    """From now on visitors have limits, those of HEADLIGHT_LIMITS. Raises ValueError."""
    accounts.rates = rates()


def sentence(wait: float) -> str:
    seconds = math.ceil(wait)
    return words.WAIT_ONE if seconds == 1 else words.WAIT.format(seconds=seconds)


def costing(
    what: str,
) -> Callable[[Callable[[Request], Awaitable[Response]]], Callable[[Request], Awaitable[Response]]]:
    """A route that limits the requests of a visitor; beyond the limit it says how long to wait."""

    def of(make: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        @wraps(make)
        async def answer(request: Request) -> Response:
            wait = accounts.take(visitor(request.scope), what)
            return await make(request) if wait == 0 else too_much(what, wait)

        return answer

    return of


def too_much(what: str, wait: float) -> Response:
    metrics.LIMITED.labels(what).inc()
    headers = {"Retry-After": str(math.ceil(wait)), "Cache-Control": "no-store"}
    return PlainTextResponse(sentence(wait), 429, headers=headers)


def visitor(scope: Scope) -> str:
    """The account to charge for a request: the cookie's, or without a cookie the IP address's."""
    return known(scope) or f"at {(scope.get('client') or ('nowhere',))[0]}"


def known(scope: Scope) -> str:
    """The name of the browser that asks; "" where it has none of ours."""
    return named(Headers(scope=scope).get("cookie", ""))


def named(cookies: str) -> str:
    """The name that our cookie gives among these; "" where there is none."""
    found = AMONG.search(cookies)
    return found[1] if found is not None else ""


class Named:
    """ASGI middleware: the page gives a browser its cookie, and answers below `path` count as its bytes."""

    def __init__(self, app: ASGIApp, base: str = "") -> None:
        self.app, self.base = app, base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        routes, modules = f"{self.base}/headlight/", f"{self.base}/headlight/m/"
        ours = scope["path"].startswith(routes) and not scope["path"].startswith(modules)
        who = visitor(scope) if ours else ""
        if ours and (wait := accounts.take(who, "megabytes", 0)):
            await too_much("megabytes", wait)(scope, receive, send)
            return
        sent = 0

        async def counted(message: Message) -> None:
            nonlocal sent
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                if ours:
                    metrics.ANSWERS.labels(str(message["status"])).inc()
                elif headers.get("content-type", "").startswith("text/html") and not known(scope):
                    secure = "; Secure" if scope.get("scheme") == "https" else ""
                    headers.append(
                        "Set-Cookie",
                        # Of the whole host: the path that the browser sees is not known here, and it would not send back a cookie of another.
                        f"{COOKIE}={secrets.token_urlsafe(16)}; Path=/; HttpOnly; SameSite=Lax{secure}",
                    )
            sent += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            if ours and sent:
                accounts.spend(who, "megabytes", sent / MEGABYTE)
