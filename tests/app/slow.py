"""The application with two models that arrive when they are let, and runs that take long: `streamlit run tests/app/slow.py`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.responses import Response  # noqa: E402
from starlette.routing import Route  # noqa: E402

from core import checkpoints  # noqa: E402
from core.checkpoints import Loaded, ModelSpec  # noqa: E402
from core.run import chunks  # noqa: E402
from core.run.forward_pass import Pass  # noqa: E402
from core.service import LocalService, engine  # noqa: E402
from core.trace import Trace  # noqa: E402

SIZE = 90_000_000  # bytes that a distant model pretends to have
FAR = tuple(ModelSpec(id=name.lower(), title=name, source="built", location="") for name in ("Distant", "Remote"))
ARRIVED = {spec.id: threading.Event() for spec in FAR}
GO_ON = threading.Event()  # set by a test for the run that waits for it
checkpoints.CATALOG = (*checkpoints.CATALOG, *FAR)  # before the application reads it

from app import main  # noqa: E402
from app.session import service  # noqa: E402
from app.shell import errors, routes  # noqa: E402


def load(name: str, *, progress: Any = None, **options: Any) -> Loaded:
    if name in ARRIVED:
        progress("model.safetensors", SIZE * 2 // 5, SIZE)
        ARRIVED[name].wait(600)
    return checkpoints.load("minilm" if name in ARRIVED else name, **options)


IN_PARTS, ROWS = "in parts", 16
tracing: Any = sys.modules["core.run.trace"]  # core.trace itself is the function
whole = tracing.plan_chunks


def cut(forward: Pass, hold: bool, one_go: int, more: int, free: int) -> chunks.Chunks | None:
    """A text with "in parts" in it is read as one that has no room: so many tokens at a time."""
    if IN_PARTS in forward.prompt.sources[0].text and chunks.can_chunk(forward):
        return chunks.Chunks(ROWS, on_host=False, needed=one_go)
    return whole(forward, hold, one_go, more, free)


def wait(job: engine.Job) -> None:
    """Until a test asks for /go-on, or nobody waits any longer."""
    while not job.cancelled.is_set():
        if GO_ON.wait(0.02):
            GO_ON.clear()  # not by a run that was cancelled: it would keep the next one waiting
            return


real = engine.run_request
short = engine.is_short


def is_short(request: engine.Request) -> bool:
    """A text that is slow here goes into no pass with others, which would not be."""
    return short(request) and not any(word in request.texts[0] for word in ("slowly", "a while", "breaks", IN_PARTS))


def run(loaded: Loaded, job: engine.Job, on_progress: engine.ProgressFactory) -> Trace:
    """In layer 2, "slowly" in a text takes ten minutes, unless it is cancelled, and "a while" until a test asks for /go-on.

    "In parts" waits likewise in the second layer of its second part. "Let Distant arrive." lets that model arrive. "Breaks" fails.
    """
    text = job.request.texts[0]

    def slow(*asked: Any) -> Callable[[Trace], object]:
        tell = on_progress(*asked)

        def slowly(so_far: Trace) -> None:
            tell(so_far)
            if IN_PARTS in text and (job.chunk, job.layers_done) == (1, 1):
                wait(job)
            if not so_far.records or so_far.records[-1].layer != 2:
                return
            if "breaks" in text:
                raise KeyError(text)
            if "slowly" in text:
                job.cancelled.wait(600)
            if "a while" in text:
                wait(job)

        return slowly

    for spec in FAR:
        if text == f"Let {spec.title} arrive.":
            ARRIVED[spec.id].set()
    return real(loaded, job, slow)


async def go_on(_: Request) -> Response:
    """Let the run that waits for a while go on, or the next one that will."""
    GO_ON.set()
    return Response()


engine.run_request = run
engine.is_short = is_short
tracing.plan_chunks = cut
service.service = cache(lambda: LocalService(engine.Engine(load_model=load)))

app = st.App(
    ROOT / "app" / "ui.py",
    lifespan=main.lifespan,
    routes=[*routes.ROUTES, Route("/go-on", go_on)],
    middleware=main.MIDDLEWARE,
    on_script_error=errors.on_script_error,
)
