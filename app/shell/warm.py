"""What is done before the port answers, so that no visitor is the first."""

from __future__ import annotations

import importlib
import logging

import torch

from app.attention import in_progress
from app.session import service
from app.shell import registry, words
from app.streamlit_edge import collection
from core.errors import HeadlightError
from core.run.request import Request
from core.service import cores

log = logging.getLogger("headlight")


def warm_up() -> None:
    """Load the default model and run the example, so that no visitor is the first."""
    # The server needs a core of its own to answer while a sentence runs.
    torch.set_num_threads(max(1, cores() - 1))
    # Tracing without allocating wants dynamo, whose import is seconds.
    for name in ("pandas", "pyarrow", "torch._dynamo", f"{__package__}.bar"):
        importlib.import_module(name)
    registry.rooms()
    try:
        # The first pass of a process is slow, and the time of the example's is on the screen.
        service.calls().submit(Request(service.DEFAULT_MODEL, (words.TITLE,))).result()
        service.calls().result(in_progress.made_of(service.DEFAULT_REQUEST))
    except HeadlightError as refusal:
        log.warning("The default model is not available: %s", refusal)
    collection.keep_out()
