"""Limits of one visitor and of one network address: seconds of work, trainings, bytes and more, which come back with time."""

from __future__ import annotations

import math
import os
import re
import threading
import time
from asyncio import sleep
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import wraps

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.transport import metrics, visitors, words
from core.service.queue import VISITORS_PER_ADDRESS, Accounts

Route = Callable[[Request], Awaitable[Response]]

LIMITS = "HEADLIGHT_LIMITS"
MOST_ACCOUNTS = 20_000  # that are remembered
MEGABYTE = 1_000_000
LONGEST_WAIT = 30.0  # seconds, however much one large question has cost
# Paths below /headlight/ that do no work for which others wait: files, and classes, which have limits of their own.
FREE = ("writer/", "classroom/", "plotly.js", "preview.png", "oembed")


@dataclass(frozen=True)
class Rate:
    """So many at once, and so many more every second."""

    most: float
    per_second: float


RATES: Mapping[str, Rate] = {  # of one visitor; of one address VISITORS_PER_ADDRESS times as much
    "seconds": Rate(90, 0.5),
    "trainings": Rate(8, 0.1),
    "megabytes": Rate(400, 8),
    "requests": Rate(400, 40),  # faster ones wait, and are not refused
    "classes": Rate(8, 0.02),  # that are opened
    "codes": Rate(30, 0.5),  # of a class that are wrong; a right one is never limited
    # Runs that this server does not have. After a restart no browser has a valid name, so a class of 60 counts as one visitor, and each
    # of its open pages asks for some 20.
    "unknown": Rate(2000, 20),
}


def rates(value: str | None = None) -> dict[str, Rate]:
    """RATES as HEADLIGHT_LIMITS changes them: "seconds=60/2 megabytes=100/1", or "off". Raises ValueError for anything else."""
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


class Balances:
    """What each account has left; those that have not been used for longest are forgotten first, and begin with all of it."""

    def __init__(self, rates: Mapping[str, Rate], clock: Callable[[], float] = time.monotonic) -> None:
        self.rates, self.clock = rates, clock
        self._lock = threading.Lock()
        self._left: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()  # (left, when it was so much)

    def take(self, accounts: Accounts, what: str, amount: float = 1) -> float:
        """0 where all accounts of a visitor have so much, and it is taken; else the seconds until they will have it.

        An amount of 0 asks whether anything is left.
        """
        with self._lock:
            found = [(account, rate, self._now(account, what, rate)) for account, rate in self._rates(accounts, what)]
            wait = max((((amount - left) / rate.per_second) for _, rate, left in found), default=0.0)
            if wait > 0:
                return wait
            for account, rate, left in found:
                self._put(account, what, rate, left - amount)
        return 0.0

    def spend(self, accounts: Accounts, what: str, amount: float) -> None:
        """Charge a cost known only afterwards; the balance may become negative."""
        with self._lock:
            for account, rate in self._rates(accounts, what):
                self._put(account, what, rate, self._now(account, what, rate) - amount)

    def _rates(self, accounts: Accounts, what: str) -> list[tuple[str, Rate]]:
        rate = self.rates.get(what)
        if rate is None:
            return []
        return [
            (account, Rate(rate.most * VISITORS_PER_ADDRESS**i, rate.per_second * VISITORS_PER_ADDRESS**i))
            for i, account in enumerate(accounts)
        ]

    def _now(self, account: str, what: str, rate: Rate) -> float:
        left, at = self._left.get((account, what), (rate.most, self.clock()))
        return min(rate.most, left + (self.clock() - at) * rate.per_second)

    def _put(self, account: str, what: str, rate: Rate, left: float) -> None:
        self._left[account, what] = max(left, -LONGEST_WAIT * rate.per_second), self.clock()
        self._left.move_to_end((account, what))
        while len(self._left) > MOST_ACCOUNTS * len(RATES):
            self._left.popitem(last=False)


balances = Balances({})  # none is limited until the server begins: see begin()


def begin() -> None:
    """From now on visitors have limits, those of HEADLIGHT_LIMITS. Raises ValueError."""
    balances.rates = rates()


def sentence(wait: float) -> str:
    seconds = math.ceil(wait)
    return words.WAIT_ONE if seconds == 1 else words.WAIT.format(seconds=seconds)


def charge(accounts: Accounts, seconds: float) -> None:
    """Charge a visitor for seconds of work."""
    balances.spend(accounts, "seconds", seconds)


def costing(what: str) -> Callable[[Route], Route]:
    """Decorate a route so that each request costs one of `what`. A visitor without any left is told how long to wait."""

    def of(make: Route) -> Route:
        @wraps(make)
        async def answer(request: Request) -> Response:
            wait = balances.take(visitors.accounts_of(request.scope), what)
            return await make(request) if wait == 0 else too_much(what, wait)

        return answer

    return of


def too_much(what: str, wait: float) -> Response:
    metrics.LIMITED.labels(what).inc()
    headers = {"Retry-After": str(math.ceil(wait)), "Cache-Control": "no-store"}
    return PlainTextResponse(sentence(wait), 429, headers=headers)


class Metered:
    """ASGI middleware for paths below `base`/headlight/: charges bytes, slows down fast requests, refuses visitors without a balance.

    A run that the server does not have is a 404. A visitor who asks for many such runs gets 429 instead.
    """

    def __init__(self, app: ASGIApp, base: str = "") -> None:
        self.app, self.routes = app, f"{base}/headlight/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(self.routes):
            await self.app(scope, receive, send)
            return
        what = scope["path"].removeprefix(self.routes)
        if what.startswith("m/"):  # modules, which are the page's own
            await self.app(scope, receive, send)
            return
        accounts = visitors.accounts_of(scope)
        balances.spend(accounts, "requests", 1)
        await sleep(balances.take(accounts, "requests", 0))  # even a refusal takes time of the event loop
        for limit in ("megabytes",) if what.startswith(FREE) else ("megabytes", "seconds"):
            if wait := balances.take(accounts, limit, 0):
                await too_much(limit, wait)(scope, receive, send)
                return
        sent = 0
        is_replaced = False

        async def counted(message: Message) -> None:
            nonlocal sent
            if message["type"] == "http.response.start":
                metrics.ANSWERS.labels(str(message["status"])).inc()
            sent += len(message.get("body", b""))
            await send(message)

        async def limited(message: Message) -> None:
            nonlocal is_replaced
            is_unknown = message.get("status") == 404 and not what.startswith(FREE)
            if is_unknown and (wait := balances.take(accounts, "unknown")):
                is_replaced = True
                await too_much("unknown", wait)(scope, receive, counted)
            elif not is_replaced:
                await counted(message)

        try:
            await self.app(scope, receive, limited)
        finally:
            balances.spend(accounts, "megabytes", sent / MEGABYTE)
