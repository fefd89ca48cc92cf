"""A sweep that begins as soon as its run is there, while the browser is still to draw the room and to ask for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress

import streamlit as st

from app.rooms.whatif import changes
from app.session import answer, service
from app.transport import rate_limits
from core.errors import HeadlightError
from core.service import Facts, SweepRequest
from core.service.queue import Accounts

BEGUN = "whatif_begun"  # in the session: the run whose sweep was begun last
PATIENCE = 2.0  # seconds in which the browser comes for it

Name = tuple[Accounts, str]  # the visitor, and the key of the run

_lock = threading.Lock()
_begun: dict[Name, Future[None]] = {}  # that no one has come for yet


def begin(said: Mapping[str, str], shown: Facts) -> None:
    """Begin what the browser is about to ask for, once for each run that comes on the screen.

    Nothing begins where another run comes before the sweep.
    """
    if st.session_state.get(BEGUN) == shown.key:
        return
    st.session_state[BEGUN] = shown.key
    name = answer.accounts(), shown.key
    if said["edits"] or said["sweep"] == "patch" or changes.has_map(said, shown) or name in _begun:
        return
    if rate_limits.balances.take(name[0], "seconds", 0):
        return
    with _lock:
        _begun[name] = service.calls().begin(_sweep(name, changes.asked(said, shown, shown.key)))


def take(visitor: Accounts, key: str) -> Future[None] | None:
    """The sweep that was begun of this run, for this visitor who now asks for it, and who cancels it when he goes."""
    with _lock:
        return _begun.pop((visitor, key), None)


async def _sweep(name: Name, asked: SweepRequest) -> None:
    """Sweep, and end where no one comes for it."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def end() -> None:
        if take(*name) is not None and task is not None:
            task.cancel()

    loop.call_later(PATIENCE, end)
    with suppress(HeadlightError, IndexError):  # the one who asks for it is told
        async with aclosing(service.service().sweep(name[1], asked)) as parts:
            async for _ in parts:
                pass
