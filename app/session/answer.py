"""A visitor's request: run it, wait for it, and keep the last picture that worked."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import streamlit as st

from app import languages
from app.session import resolving, service, words
from app.session.session_state import ANSWERED, Side
from app.streamlit_edge.departures import when_gone
from app.streamlit_edge.yielding import give_way
from app.transport import metrics, rate_limits, visitors
from core.errors import HeadlightError, RunCancelled, ServerBusy, TextError
from core.run.request import Request
from core.service import Facts, RunHandle
from core.service.queue import Accounts

log = logging.getLogger("headlight")

SIDES = ("", "b")  # of a room: the run that the request box asks for, and one beside it
AT_ONCE = 0.8  # seconds that a script waits for a run before it says that it runs
Picture = TypeVar("Picture")
Draw = Callable[[Request], Coroutine[Any, Any, Picture]]

LOOK = 0.1  # seconds between two looks at whether the visitor has done something else meanwhile


@dataclass(frozen=True)
class Answer(Generic[Picture]):
    """What there is to show: the last run that worked, and a sentence when the newest did not."""

    request: Request | None
    facts: Facts | None
    picture: Picture | None
    sentence: str | None
    waiting: RunHandle[None] | None = None  # for the newest, where it is still under way
    stopped: bool = False  # the visitor cancelled the newest
    unreadable: bool = False  # the model cannot read the newest text


async def no_picture(_: Request) -> None:
    """For a room that makes its picture itself, or has none."""


def answer(request: Request, draw: Draw[Picture], patience: float = AT_ONCE, side: str = "") -> Answer[Picture]:
    """Run a request for this visitor, wait for it for so many seconds, and draw it.

    Whatever happens, the last good picture stays, also while a long one runs. Each of SIDES has a run and a last good picture
    of its own.
    """
    sentence, stopped, unreadable = None, False, False
    of = Side(side)
    ANSWERED.put((ANSWERED.get() or frozenset()) | {side})
    try:
        waiting = _begun(request, side)
        if waiting is None:
            return _last_good(draw, words.STOPPED, side, stopped=True)
        if not ended(waiting, patience):
            return _last_good(draw, None, side, waiting=waiting)
        waiting.result()
        result = Answer(request, *service.awaited(_drawn(request, draw)), None)
        last = of.last_good.get()
        of.last_good.put(request)
        of.waiting.take()  # a script that is broken off before leaves it to the next
        if last is not None and last != request:
            service.calls().begin(service.service().release(last.key))
        return result
    except RunCancelled:
        sentence, stopped = words.STOPPED, True
    except HeadlightError as refusal:
        sentence, unreadable = languages.said(refusal), isinstance(refusal, TextError)
    except Exception:
        log.exception("A request failed")
        sentence = words.BROKEN
    of.waiting.take()
    return _last_good(draw, sentence, side, stopped=stopped, unreadable=unreadable)


async def _drawn(request: Request, draw: Draw[Picture]) -> tuple[Facts, Picture]:
    """A run that has ended, with its picture; it is run again where it was dropped."""
    return await resolving.facts_of(request), await draw(request)


def begin_early(request: Request) -> None:
    """Have a request run while the script does something else; answer() joins the run, or says why there is none."""
    with suppress(Exception):
        _begun(request, "")


def _begun(request: Request, side: str) -> RunHandle[None] | None:
    """The run of a request, which is the only one of its side; None if the visitor cancelled it. Raises Busy."""
    of = Side(side)
    if of.stopped.get() == request:
        return None
    of.stopped.take()
    before = of.waiting.get()
    if before is not None and before.request == request and not before.cancelled:
        return before
    leave(side)  # nobody looks at what it would have shown
    return _submitted(request, side)


def _submitted(request: Request, side: str) -> RunHandle[None]:
    """A run for this visitor, which ends when nobody waits for it: also where the script is broken off just now. Raises Busy."""
    if Side(side).last_good.get() != request and (wait := rate_limits.balances.take(accounts(), "seconds", 0)):
        metrics.LIMITED.labels("seconds").inc()
        raise ServerBusy(rate_limits.sentence(wait))
    waiting = service.calls().submit(request)
    try:
        when_gone(waiting.cancel)
        Side(side).waiting.put(waiting)
    except BaseException:
        waiting.cancel()
        raise
    return waiting


def name() -> str:
    """This visitor's browser, in a script; "" where it has no name of ours."""
    return visitors.named(f"{visitors.COOKIE}={st.context.cookies.get(visitors.COOKIE, '')}")


def accounts() -> Accounts:
    """What this visitor's work is charged to, in a script: as visitors.accounts_of() says it of a request."""
    return visitors.accounts(name(), visitors.network(st.context.ip_address or "127.0.0.1"))


@contextmanager
def room() -> Iterator[None]:
    """A room is drawn. For a side that it asks no run for, what was asked before is no longer wanted."""
    ANSWERED.take()
    yield
    answered = ANSWERED.take() or frozenset()
    for side in SIDES:
        if side not in answered:
            leave(side)


def leave(side: str = "") -> None:
    """Nobody looks any longer at what the newest request of a side will show."""
    waiting = Side(side).waiting.take()
    if waiting is not None:
        waiting.cancel()


def ended(waiting: RunHandle[None], seconds: float, look: float = LOOK) -> bool:
    """Whether a run has ended, after at most this long, with a look every so many seconds.

    To look into the session is to let Streamlit break off here for a visitor who has cancelled, or typed something else.
    """
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if waiting.wait(min(left, look)):
            return True
        give_way()
    return waiting.done()


def stop(side: str = "") -> None:
    """The visitor waits no longer for the newest request of a side."""
    waiting = Side(side).waiting.get()
    if waiting is not None:
        Side(side).stopped.put(waiting.request)
        leave(side)


def start_again(side: str = "") -> None:
    """The visitor wants what was stopped after all."""
    Side(side).stopped.take()


def _last_good(
    draw: Draw[Picture],
    sentence: str | None,
    side: str,
    *,
    waiting: RunHandle[None] | None = None,
    stopped: bool = False,
    unreadable: bool = False,
) -> Answer[Picture]:
    """What was on the screen before, with what there is to say."""
    last = Side(side).last_good.get()
    if last is None:
        return Answer(None, None, None, sentence, waiting, stopped, unreadable)
    try:
        said = sentence and f"{sentence} {words.LAST_PICTURE}"
        return Answer(last, *service.awaited(_drawn(last, draw)), said, waiting, stopped, unreadable)
    except Exception:
        log.exception("The last good request failed too")
        return Answer(None, None, None, sentence, waiting, stopped, unreadable)


def last_facts(side: str = "") -> Facts | None:
    """The run of a side that was drawn last; None where none was, or it cannot be had any more."""
    last = Side(side).last_good.get()
    try:
        return None if last is None else service.awaited(resolving.facts_of(last))
    except HeadlightError:
        return None
