"""The models that other programs of a machine of one's own have: where they are shown, and what opening one takes."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from app.session import service, settings
from app.transport import loopback
from core.checkpoints import local_models
from core.checkpoints.local_models import Found

BYTES_OF = {"float16": 2, "bfloat16": 2}  # of a number; 4 of any other kind
KEPT = 1000  # models that are not looked into a second time

_lock = threading.Lock()
_looked: dict[tuple[str, str, int, float], Found] = {}


def is_owner(headers: Mapping[str, str]) -> bool:
    """Whether a visitor is the person whose machine this is: the server was told so, no other machine reaches it, the models run
    in this process, and the page was asked for here, not through a proxy."""
    if os.environ.get(settings.OWN_MACHINE) != "1" or os.environ.get(service.ELSEWHERE):
        return False
    return loopback.is_own(headers, st.get_option("server.address"))


def offered() -> bool:
    """Whether the visitor of this script is that person."""
    return is_owner(st.context.headers)


def named() -> tuple[Found, ...]:
    """All of them by name and size, as they are on the disk now."""
    return local_models.list_models(local_models.usual_folders())


def places() -> tuple[str, ...]:
    """The folders in which they are looked for."""
    return tuple(str(place) for places in local_models.usual_folders().values() for place in places)


def looked_into(found: Found) -> Found:
    """Whether one opens, with its numbers counted. A file that did not change is looked into once."""
    try:
        changed = Path(found.path).stat().st_mtime if found.path else 0.0
    except OSError:
        changed = 0.0
    key = (found.program, found.path or found.name, found.n_bytes, changed)
    with _lock:
        known = _looked.get(key)
    if known is None or not found.path:
        known = local_models.inspect_file(found)
        with _lock:
            _looked[key] = known
            while len(_looked) > KEPT:
                del _looked[next(iter(_looked))]
    return known


@dataclass(frozen=True)
class Room:
    """The memory of the device on which models run."""

    free: int
    bytes_of_number: int

    def needed(self, found: Found) -> int:
        """Bytes of its weights in memory, in the kind of numbers that this device computes in."""
        return found.n_params * self.bytes_of_number


def room() -> Room:
    """The memory that there is now."""
    status = service.calls().result(service.service().status())
    return Room(int(status["free_bytes"]), BYTES_OF.get(str(status["dtype"]), 4))
