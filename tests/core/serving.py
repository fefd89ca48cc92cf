"""A LocalService with tiny models, for tests of what it answers and of who waits for whom."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch

from core.checkpoints import Loaded
from core.run.request import Request
from core.service import LocalService
from core.service.engine import Engine
from core.trace import Trace
from tests.core.conftest import make_loaded
from tests.core.test_engine import word_tokenizer

T = TypeVar("T")
TEXT = "the cat sat on a mat and the cat ran far away from all of us"
REQUEST = Request("one", (TEXT,))
CONFIGS: dict[str, dict[str, Any]] = {
    "encoder": {"n_encoder_layers": 2},
    "decoder": {"n_decoder_layers": 3, "window": 4, "windowed_layers": (1,)},
    "grouped": {"n_decoder_layers": 2, "n_kv_heads": 2, "position": "rotary"},
    "pair": {"n_encoder_layers": 2, "n_decoder_layers": 2, "head": "lm"},
}


def loader(name: str, **_: Any) -> Loaded:
    loaded = make_loaded(seed=3, **({"n_heads": 4, "n_ctx": 512} | CONFIGS.get(name, {"n_decoder_layers": 2})))
    return replace(loaded, tokenizer=word_tokenizer())


def service(load: Callable[..., Loaded] = loader, **options: Any) -> LocalService:
    return LocalService(Engine(device=torch.device("cpu"), load_model=load, **options))


def ask(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


def run_of(shared: LocalService, request: Request = REQUEST) -> Trace:
    return shared.engine.run(request)


def assert_plain(value: object, path: str = "answer") -> None:
    """Refuses everything but frozen records of text, numbers, bytes, tuples, dicts and numpy arrays."""
    if value is None or isinstance(value, str | int | float | bool | bytes):
        return
    if isinstance(value, np.ndarray):
        assert value.dtype.kind in "fiub", f"{path}: {value.dtype}"
    elif isinstance(value, tuple):
        for i, part in enumerate(value):
            assert_plain(part, f"{path}[{i}]")
    elif isinstance(value, dict):
        for key, part in value.items():
            assert isinstance(key, str), path
            assert_plain(part, f"{path}[{key!r}]")
    else:
        assert is_dataclass(value) and type(value).__dataclass_params__.frozen, f"{path} is a {type(value)}"  # type: ignore[attr-defined]
        for field in fields(value):
            assert_plain(getattr(value, field.name), f"{path}.{field.name}")


def close(found: np.ndarray, true: torch.Tensor) -> bool:
    return found.shape == tuple(true.shape) and bool(np.abs(found - true.float().numpy()).max() < 1e-6)
