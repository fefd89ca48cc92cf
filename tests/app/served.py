"""A Service that holds given runs: for tests of what the application makes of its answers."""

from __future__ import annotations

from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar, cast

import torch

from app.attention import picture
from app.session import service as session_service
from core.run.request import Request
from core.service import Facts, LocalService, SyncCalls
from core.service.engine import Engine
from core.trace import Trace

T = TypeVar("T")
_numbers, _calls = count(), SyncCalls(cast(Any, None))


def ask(call: Coroutine[Any, Any, T]) -> T:
    """What a call gives; not in this thread, whose event loop may be the browser's."""
    return _calls.result(call)


def serve(run: Trace) -> tuple[LocalService, Facts]:
    """A service that has this run, and its facts, with the key under which it has it."""
    engine = Engine(device=torch.device("cpu"), dtype=torch.float32)
    request = Request("given", (f"run {next(_numbers)}",))
    with engine._lock:
        engine._remember(request)
        engine._store_trace(request.key, run, 0)
    service = LocalService(engine)
    return service, ask(service.facts(request.key))


def drawn(run: Trace) -> picture.Picture:
    """The picture of a run."""
    service, facts = serve(run)
    if picture.is_whole(facts):
        return picture.whole_picture(facts, ask(service.heads(facts.key)))
    return picture.with_small_pictures(picture.larger_picture(facts), ask(service.thumbnails(facts.key)))


def local() -> LocalService:
    """The service that the application asks in this process, with its engine."""
    found = session_service.service()
    assert isinstance(found, LocalService)
    return found
