"""The slow application, with little patience when it is asked to end: `streamlit run tests/app/ends_soon.py`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.responses import JSONResponse, Response  # noqa: E402
from starlette.routing import Route  # noqa: E402

import tests.app.slow  # noqa: E402, F401  (first: it changes the engine that the application takes)
from app import main  # noqa: E402
from app.session import service  # noqa: E402
from app.shell import closing, errors, routes  # noqa: E402
from core.run.request import Request as RunRequest  # noqa: E402

closing.PATIENCE, closing.LAST_WORDS = 2.0, 0.5
closing.LONGEST = closing.PATIENCE + closing.LAST_WORDS


async def begin(request: Request) -> Response:
    """The key of a run of this text."""
    text = (await request.body()).decode()
    return JSONResponse(await service.service().submit(RunRequest("storyteller", (text,))))


app = st.App(
    ROOT / "app" / "ui.py",
    lifespan=main.lifespan,
    routes=[*routes.ROUTES, Route("/begin", begin, methods=["POST"])],
    middleware=main.MIDDLEWARE,
    on_script_error=errors.on_script_error,
)
