"""The Service that this process asks, how a script asks it, and the request that a visit begins with."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from concurrent import futures
from functools import cache
from typing import Any, TypeVar

from app.session import examples, idle, models
from app.streamlit_edge.yielding import give_way
from app.transport import metrics, work
from cluster import remote
from core.run.request import Request
from core.service import LocalService, Service, SyncCalls
from core.service.engine import Engine

T = TypeVar("T")
LOOK = 0.05  # seconds between two looks at whether the visitor has done something else
ELSEWHERE = "HEADLIGHT_SERVICE"  # http://host:port
DEFAULT_MODEL = models.DEFAULT
DEFAULT_REQUEST = Request(DEFAULT_MODEL, (examples.first_text(models.MODELS[DEFAULT_MODEL]),))


@cache
def service() -> Service:
    """The one of this process, for visitors and routes alike: its models and runs are here, or where HEADLIGHT_SERVICE says.

    Not st.cache_resource: routes run outside of any script, and "clear cache" in a visitor's menu must not drop the models
    of all the others. Raises ValueError.
    """
    if address := os.environ.get(ELSEWHERE):
        return remote.service(address)
    ended, usage = metrics.run_ended, work.USAGE
    return LocalService(Engine(load_model=models.load, on_finished=ended, usage=usage, idle_seconds=idle.seconds()))


@cache
def calls() -> SyncCalls:
    """The same for scripts, which cannot await."""
    return SyncCalls(service())


def awaited(call: Coroutine[Any, Any, T]) -> T:
    """The answer of a call that may take a while, for a script: broken off here for a visitor who has done something else.

    A script ends before the next one of its visitor begins, so one that waits without a look would hold that one up.
    """
    coming = calls().begin(call)
    while not futures.wait([coming], LOOK).done:
        give_way()
    return coming.result()
