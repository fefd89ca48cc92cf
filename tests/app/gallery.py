"""The application as it is, with more models to choose from: small random ones of every kind that the screen must draw.

`streamlit run tests/app/gallery.py` shows them; the end-to-end tests do the same. Their tokenizer is MiniLM's.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402

import core  # noqa: E402
from core import checkpoints  # noqa: E402
from core.engine import Engine  # noqa: E402

SMALL: dict[str, Any] = {"vocab_size": 30522, "d_model": 64, "d_ff": 64, "n_ctx": 4096, "position": "rotary", "head": "none"}
CONFIGS = {
    "pair": core.ModelConfig(**SMALL, n_heads=4, n_encoder_layers=2, n_decoder_layers=3),
    "grouped": core.ModelConfig(**SMALL, n_heads=8, n_kv_heads=2, n_decoder_layers=4, window=5, windowed_layers=(1, 3)),
    "many": core.ModelConfig(**(SMALL | {"d_model": 100}), n_heads=25, n_decoder_layers=48),
    "one": core.ModelConfig(**SMALL, n_heads=1, n_encoder_layers=1),
}

checkpoints.CATALOG = (
    *checkpoints.CATALOG,
    *(checkpoints.ModelSpec(id=name, title=name.title(), source="built", location="") for name in CONFIGS),
)


def load(name: str, **options: Any) -> checkpoints.Loaded:
    """A model of this gallery, or one of the catalog's own."""
    if name not in CONFIGS:
        return checkpoints.load(name, **options)
    spec = next(spec for spec in checkpoints.CATALOG if spec.id == name)
    tokenizer = checkpoints.load("minilm").tokenizer
    return replace(core.build(CONFIGS[name], seed=3), spec=spec, tokenizer=tokenizer)


from app import main, routes, state  # noqa: E402

state.engine = cache(lambda: Engine(load_model=load))

app = st.App(
    ROOT / "app" / "ui.py",
    lifespan=main.lifespan,
    routes=routes.ROUTES,
    middleware=[Middleware(routes.Gzipped)],
    on_script_error=state.on_script_error,
)
