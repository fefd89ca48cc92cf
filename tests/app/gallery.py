"""The application as it is, with more models to choose from: `streamlit run tests/app/gallery.py` shows them all."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

from core import checkpoints  # noqa: E402
from core.service import LocalService  # noqa: E402
from core.service.engine import Engine  # noqa: E402
from tests.app import models  # noqa: E402

checkpoints.CATALOG = (*checkpoints.CATALOG, *models.SPECS)  # before the application reads it

from app import main  # noqa: E402
from app.session import service  # noqa: E402
from app.shell import errors, routes  # noqa: E402

service.service = cache(lambda: LocalService(Engine(load_model=models.load)))

app = st.App(
    ROOT / "app" / "ui.py",
    lifespan=main.lifespan,
    routes=routes.ROUTES,
    middleware=main.MIDDLEWARE,
    on_script_error=errors.on_script_error,
)
