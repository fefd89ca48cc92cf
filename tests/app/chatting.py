"""The application with a small chat model of random weights: `streamlit run tests/app/chatting.py`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

from tests.core.chats import write_chat_model  # noqa: E402

MODEL = "chatter"
_folder = tempfile.TemporaryDirectory()
os.environ["HEADLIGHT_MODELS"] = str(write_chat_model(Path(_folder.name) / MODEL))  # before the application reads it

from app import main  # noqa: E402
from app.shell import errors, routes  # noqa: E402

app = st.App(
    ROOT / "app" / "ui.py",
    lifespan=main.lifespan,
    routes=routes.ROUTES,
    middleware=main.MIDDLEWARE,
    on_script_error=errors.on_script_error,
)
