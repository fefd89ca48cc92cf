"""The shape debugger of Shapes: each of its lines does on real tensors what it says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from app.rooms.shapes import debugger
from core.labs import sizes
from core.model.config import ModelConfig
from core.plan import PRESETS


@pytest.mark.filterwarnings("ignore:The use of `x.T` on tensors")
@pytest.mark.parametrize("place", sizes.LINES)
@pytest.mark.parametrize(("batch", "n", "n_key"), [(1, 16, 16), (3, 5, 5), (2, 6, 9)])
def test_the_debugger_says_what_pytorch_says_on_real_tensors(place: str, batch: int, n: int, n_key: int):
    """Every line again, on real numbers, from the text that is on the screen."""
    config = ModelConfig(vocab_size=100, d_model=32, n_heads=4, d_ff=64, n_ctx=40, n_decoder_layers=1)
    h, d = config.n_heads, config.d_head
    given: dict[str, Any] = {
        "q": torch.randn(batch, h, n, d),
        "k": torch.randn(batch, h, n_key, d),
        "v": torch.randn(batch, h, n_key, d),
        "z": torch.randn(batch, n, h, d).transpose(1, 2).contiguous(),
        "x": torch.randn(batch, n, config.d_model),
        "scores": torch.randn(batch, h, n, n_key),
        "pattern": torch.randn(batch, h, n, n_key),
        "keep": torch.ones(batch, n_key, dtype=torch.bool),
        "table": torch.randn(config.n_ctx, config.d_model),
        "inf": torch.inf,
        "F": F,
    }

    class self_:
        o = torch.nn.Linear(h * d, config.d_model, bias=False)
        up = torch.nn.Linear(config.d_model, config.d_ff, bias=False)
        down = torch.nn.Linear(config.d_ff, config.d_model, bias=False)
        q = torch.nn.Linear(config.d_model, h * d, bias=False)
        qkv = torch.nn.Linear(config.d_model, 3 * h * d, bias=False)

    given["self"] = self_
    if place == "split":
        given["q"] = torch.randn(batch, n, h * d)
    seen = debugger.tries(config, place, batch=batch, n=n, n_key=n_key)
    assert seen[0].verdict == "right"
    for one in seen:
        if one.verdict == "error":
            with pytest.raises((RuntimeError, IndexError)) as raised:
                eval(one.code, {}, given)
            assert str(raised.value).splitlines()[0] == one.error
        else:
            assert tuple(eval(one.code, {}, given).shape) == one.shape
        assert one.verdict == "right" or one.why


def test_the_debugger_costs_nothing_at_the_size_of_gpt3():
    config = PRESETS["gpt3"].config
    seen = debugger.tries(config, "scores", batch=8, n=2048, n_key=2048)
    assert seen[0].shape == (8, 96, 2048, 2048)
    assert "[768, 128]" in seen[1].error


def test_view_after_a_transpose_says_its_strides() -> None:
    """Lesson F13: before, after, and of the copy that contiguous() makes."""
    z = torch.empty(32, 8, 50, 64)
    found = sizes.strides(PRESETS["lesson-encoder"].config, batch=32, n=50)
    assert found == {
        "z": z.stride(),
        "turned": z.transpose(1, 2).stride(),
        "copied": z.transpose(1, 2).contiguous().stride(),
    }
    _, view, *_, copied = debugger.tries(PRESETS["lesson-encoder"].config, "join", batch=32, n=50, n_key=50)
    assert view.verdict == "error" and str(list(found["turned"])) in view.why and copied.verdict == "right"


def test_a_silent_mistake_really_gives_other_numbers():
    x = torch.arange(2 * 3 * 8.0).view(2, 3, 8)
    right = x.unflatten(-1, (2, 4)).transpose(1, 2)
    assert x.view(2, 2, 3, 4).shape == right.shape and not torch.equal(x.view(2, 2, 3, 4), right)
    scores = torch.randn(1, 2, 3, 3)
    assert not torch.allclose(scores.softmax(-2).sum(-1), torch.ones(1, 2, 3))
