"""Values of config.json that the published class reads otherwise than their word says, or never reads: transformers is the judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import core

SIZES: dict[str, Any] = {
    "vocab_size": 53,
    "hidden_size": 42,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 41,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
}
DECODER = SIZES | {"num_key_value_heads": 3, "head_dim": 10}
IDS = torch.randint(3, 53, (1, 16), generator=torch.Generator().manual_seed(1))


def written(
    folder: Path, published: Any, sizes: dict[str, Any], stated: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    """A folder of the published class with random weights, whose config.json states more."""
    torch.manual_seed(0)
    model = published(published.config_class(**sizes)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    model.save_pretrained(folder)
    path = folder / "config.json"
    values = {key: value for key, value in json.loads(path.read_text()).items() if key not in left_out}
    path.write_text(json.dumps(values | stated))


@pytest.mark.parametrize(
    ("published", "sizes", "stated", "left_out"),
    [
        (transformers.GemmaForCausalLM, DECODER, {"hidden_act": "gelu"}, ()),
        (transformers.GemmaForCausalLM, DECODER, {"hidden_act": "gelu", "hidden_activation": "relu"}, ()),
        (transformers.GemmaForCausalLM, DECODER, {"hidden_act": "relu"}, ()),
        (transformers.Gemma3ForCausalLM, DECODER, {"attn_logit_softcapping": 2.0}, ()),
        (transformers.Gemma3ForCausalLM, DECODER, {"final_logit_softcapping": 2.0}, ()),
        (transformers.MPNetForMaskedLM, SIZES, {"pad_token_id": 5}, ()),
        (transformers.MPNetForMaskedLM, SIZES, {}, ("pad_token_id",)),
    ],
)
def test_a_value_means_what_the_published_class_makes_of_it(
    tmp_path: Path, published: Any, sizes: dict[str, Any], stated: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    written(tmp_path, published, sizes, stated, left_out)
    theirs = published.from_pretrained(tmp_path, attn_implementation="eager").eval()
    with torch.no_grad():
        expected = theirs(IDS, output_attentions=True)
    loaded = core.load(tmp_path)
    assert loaded.model.head is not None
    run = core.trace(loaded, ids=IDS[0].tolist())
    for ours, weights in zip(run.attention, expected.attentions, strict=True):
        torch.testing.assert_close(ours.pattern(), weights[0], atol=1e-5, rtol=0)
    with torch.no_grad():
        logits = loaded.model.head(run.last_residual(torch.arange(IDS.shape[1]))[0])
    torch.testing.assert_close(logits, expected.logits[0], atol=2e-4, rtol=0)
