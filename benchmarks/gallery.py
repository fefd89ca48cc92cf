"""The application with one more model, for benchmarks/page.py: GPT-2 small's shape, random, a word a token, 4,096 of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402

import core  # noqa: E402
from core import checkpoints  # noqa: E402
from core.checkpoints import Loaded  # noqa: E402
from core.service import LocalService  # noqa: E402
from core.service.engine import Engine  # noqa: E402

NAME, N_CTX, N_WORDS = "gpt2-small-shape", 4096, 2048
SPEC = checkpoints.ModelSpec(id=NAME, title=NAME, source="built", location="")
CONFIG = core.ModelConfig(
    vocab_size=N_WORDS,
    d_model=768,
    n_heads=12,
    d_ff=3072,
    n_decoder_layers=12,
    n_ctx=N_CTX,
    position="rotary",
    activation="gelu_tanh",
    head="none",
)


def load(name: str, **options: Any) -> Loaded:
    """This model, or one of the catalog's own."""
    if name != NAME:
        return checkpoints.load(name, **options)
    words = Tokenizer(models.WordLevel({f"word{i}": i for i in range(N_WORDS)}, unk_token="word0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return replace(core.build(CONFIG, seed=0), spec=SPEC, tokenizer=words)


def sentence(n: int, i: int = 0) -> str:
    """n words that this model's tokenizer takes for n tokens, others for every i."""
    return " ".join(f"word{(i * 97 + 31 * at + at // 7) % N_WORDS}" for at in range(n))


checkpoints.CATALOG = (*checkpoints.CATALOG, SPEC)  # before the application reads it

from app import main  # noqa: E402
from app.session import service  # noqa: E402
from app.shell import errors, routes  # noqa: E402

service.service = cache(lambda: LocalService(Engine(load_model=load)))

app = st.App(
    ROOT / "app" / "ui.py",
    lifespan=main.lifespan,
    routes=routes.ROUTES,
    middleware=main.MIDDLEWARE,
    on_script_error=errors.on_script_error,
)
