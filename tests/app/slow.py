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

from core import checkpoints, engine  # noqa: E402
from core.checkpoints import Loaded, ModelSpec  # noqa: E402
from core.service import LocalService  # noqa: E402
from core.trace import Trace  # noqa: E402

SIZE = 90_000_000  # bytes that a distant model pretends to have
FAR = tuple(ModelSpec(id=name.lower(), title=name, source="built", location="") for name in ("Distant", "Remote"))
ARRIVED = {spec.id: threading.Event() for spec in FAR}
checkpoints.CATALOG = (*checkpoints.CATALOG, *FAR)  # before the application reads it

from app import main  # noqa: E402
from app.session import service  # noqa: E402
from app.shell import errors, routes  # noqa: E402


def load(name: str, *, progress: Any = None, **options: Any) -> Loaded:
    if name in ARRIVED:
        progress("model.safetensors", SIZE * 2 // 5, SIZE)
        ARRIVED[name].wait(600)
    return checkpoints.load("minilm", **options)


real = engine.run_request


def run(loaded: Loaded, job: engine.Job, watch: Callable[[engine.Job], Callable[[Trace], object]]) -> Trace:
    """In layer 2, "slowly" in a text takes ten minutes, unless it is cancelled, and "a while" three seconds.

    "Let Distant arrive." lets that model arrive.
    """
    text = job.request.texts[0]

    def slow(job: engine.Job) -> Callable[[Trace], object]:
        tell = watch(job)

        def slowly(so_far: Trace) -> None:
            tell(so_far)
            for said, seconds in (("slowly", 600), ("a while", 3)):
                if so_far.records and so_far.records[-1].layer == 2 and said in text:
                    job.cancelled.wait(seconds)

        return slowly

    for spec in FAR:
        if text == f"Let {spec.title} arrive.":
            ARRIVED[spec.id].set()
    return real(loaded, job, slow)


engine.run_request = run
service.service = cache(lambda: LocalService(engine.Engine(load_model=load)))

app = st.App(
    ROOT / "app" / "ui.py",
    lifespan=main.lifespan,
    routes=routes.ROUTES,
    middleware=main.MIDDLEWARE,
    on_script_error=errors.on_script_error,
)
