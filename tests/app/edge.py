"""A page of Streamlit's own elements, with our scripts and style around it: what Headlight leans on, and nothing of Headlight."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402
from starlette.routing import Route  # noqa: E402

from app.streamlit_edge import page  # noqa: E402
from app.transport import routes  # noqa: E402

app = st.App(
    ROOT / "tests" / "app" / "edge_ui.py",
    routes=[Route("/healthz", routes.healthz)],
    middleware=[Middleware(page.Scripted)],
)
