"""Heads silenced and patched, the logit lens and logit attribution, number by number against what TransformerLens found.

scripts/record_lens.py made the model and recorded its numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import core

FOLDER = Path(__file__).parent / "golden/gpt2"
MADE = json.loads((FOLDER / "found.json").read_text("utf-8"))
FOUND = load_file(FOLDER / "found.safetensors")
CLOSE = 1e-4


@cache
def run(ids: str = "ids") -> core.Trace:
    return core.trace(core.load(FOLDER), ids=MADE[ids])


def last() -> int:
    return len(MADE["ids"]) - 1


def test_the_same_logits() -> None:
    assert (run().activation("head.hook_logits", [last()])[0] - FOUND["logits"]).abs().max() < CLOSE
    assert FOUND["logits"].abs().max() > 1  # so that an absolute tolerance says something


SWEEPS: dict[str, Callable[[int], core.patching.Sweep]] = {
    "zero": lambda token: core.sweep_heads(run(), token=token),
    "mean": lambda token: core.sweep_heads(run(), "mean", token=token),
    "all": lambda token: core.patch_heads(run(), run("other"), token=token),
    "last": lambda token: core.patch_heads(run(), run("other"), "last", token=token),
}


@pytest.mark.parametrize("what", SWEEPS)
def test_ablation_and_activation_patching(what: str) -> None:
    theirs, plain = FOUND[what].numpy(), FOUND["logits"].numpy()
    for token in (MADE["token"], int(plain.argmax())):
        sweep = SWEEPS[what](token)
        assert [(place.layer, place.head) for place in sweep.places] == [(i, j) for i in range(3) for j in range(5)]  # type: ignore[union-attr]
        assert sweep.after.logit is not None and sweep.after.probability is not None and sweep.after.kl is not None
        assert np.abs(sweep.after.logit[:, 0] - theirs[:, token]).max() < CLOSE
        assert np.abs(sweep.after.probability[:, 0] - softmax(theirs)[:, token]).max() < CLOSE
        kl = (softmax(plain) * (np.log(softmax(plain)) - np.log(softmax(theirs)))).sum(-1)
        assert np.abs(sweep.after.kl - kl).max() < CLOSE
    moved = np.abs(theirs - plain).max(-1)
    assert (moved > 1e-3).all()  # every head changes something, so that a row of another one would not pass
    assert len({round(float(x), 5) for x in moved}) == 15


def zero(z: Tensor, _: Tensor, head: int) -> None:
    z[:, :, head] = 0


def mean(z: Tensor, _: Tensor, head: int) -> None:
    z[:, :, head] = z[:, :, head].mean(1, keepdim=True)


def patch(z: Tensor, other: Tensor, head: int) -> None:
    z[:, :, head] = other[:, :, head]


def patch_last(z: Tensor, other: Tensor, head: int) -> None:
    z[:, -1, head] = other[:, -1, head]


@pytest.mark.parametrize(("what", "change"), [("zero", zero), ("mean", mean), ("all", patch), ("last", patch_last)])
def test_the_hooks_that_recorded_it_give_the_same_here(
    what: str, change: Callable[[Tensor, Tensor, int], None]
) -> None:
    """The hooks of hook_z in scripts/record_lens.py, letter by letter: z is [batch, pos, head, d_head] in both."""
    model, ids = run().loaded.model, torch.tensor([MADE["ids"]])
    rows = []
    for layer in range(3):
        point = f"decoder.blocks.{layer}.attn.hook_z"
        other = run("other").activation(point)[None]
        for head in range(5):

            def hook(z: Tensor, other: Tensor = other, head: int = head) -> Tensor:
                z = z.clone()
                change(z, other, head)
                return z

            with torch.inference_mode(), core.hooked(model, {point: hook}):
                rows.append(model(ids)[0, -1])
    assert (torch.stack(rows) - FOUND[what]).abs().max() < CLOSE


@pytest.mark.parametrize("what", ["zero", "mean", "all"])
def test_parts_are_ablated_and_patched_alike(what: str) -> None:
    theirs = torch.log_softmax(FOUND[what], -1).numpy()  # [head, vocab]
    heads = [core.patching.Component("head", layer, head) for layer in range(3) for head in range(5)]
    other, to = (run("other"), "other") if what == "all" else (None, what)
    (found,) = core.patch_components(run(), other, heads, range(53), to)  # type: ignore[arg-type]
    assert np.abs(found.log_p - theirs).max() < CLOSE
    assert (found.top == theirs.argmax(-1)).all()


def test_the_logit_lens_at_every_layer_and_token() -> None:
    layers = run().logit_lens(k=53, positions=range(10))
    assert len(layers) == len(FOUND["lens"]) == 4
    for ours, theirs in zip(layers, FOUND["lens"], strict=True):
        p = torch.zeros(10, 53).scatter_(1, torch.tensor(ours.predictions.ids), torch.tensor(ours.predictions.probs))
        assert (p - theirs.softmax(-1)).abs().max() < CLOSE
    assert (FOUND["lens"][0].softmax(-1) - FOUND["lens"][3].softmax(-1)).abs().max() > 0.01


def test_direct_logit_attribution_of_every_head_mlp_and_embedding() -> None:
    found = run().logit_attribution(last(), MADE["token"])
    assert found.logit == pytest.approx(FOUND["logits"][MADE["token"]].item(), abs=CLOSE)

    def ours(part: str) -> Tensor:
        return torch.tensor([each.value for each in found.parts if each.part == part])

    for part, theirs in (("head", "heads"), ("mlp", "mlps"), ("token", "token"), ("position", "position")):
        assert (ours(part) - FOUND[theirs].view(-1)).abs().max() < CLOSE, part
    assert FOUND["heads"].abs().max() > 0.01


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
