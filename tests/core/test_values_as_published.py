"""Every value of a config.json means what the published class makes of it, or is refused: transformers is the judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import core
from core.checkpoints import load
from core.errors import CheckpointError
from tests.core.published import COVERED, PUBLISHED, Published, judge, made

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


# Every key of every family, each changed alone.

DESCRIBES = {"model_type", "architectures", "transformers_version", "dtype", "torch_dtype"}
# ESM keeps its rotary frequencies among the weights, which win. DeepSeek V3 with rope_interleave=false is refused, but null is how
# a plan leaves the key out.
EXEMPT = {("esm", "rope_theta"), ("deepseek_v3", "rope_interleave")}
WORDS = ("gelu", "relu", "silu", "gelu_new")  # activations
FIRST = {case.model.config_class.model_type: case for case in reversed([*COVERED.values(), *PUBLISHED.values()])}


def changed(key: str, value: Any) -> list[Any]:
    """Other values of a key: another number, flag or activation, and null; something for what is null."""
    if value is None:
        return [2.5, 3, True]
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, float):
        return [value * 1.7 + 0.01, None]
    if isinstance(value, int):
        return [value + 1, None]
    if isinstance(value, str) and ("act" in key or key == "feed_forward_proj"):
        return [word for word in WORDS if word != value][:3]
    return [None]


def distance(folder: Path, case: Published, texts: list[tuple[Any, Any]]) -> float | None:
    """The largest difference in the results of both, relative to the results; None where either opens no such file."""
    eager = {"attn_implementation": "eager", "experts_implementation": "eager"}
    try:
        model, info = case.model.from_pretrained(folder, output_loading_info=True, **eager)
        runs = [judge(model.eval(), *text) for text in texts]
    except Exception:
        return None
    if info["missing_keys"] or info["mismatched_keys"] or not all(run.out.isfinite().all() for run in runs):
        return None
    try:
        ours = load(folder).model
    except CheckpointError:
        return None
    worst = 0.0
    for (source, target), run in zip(texts, runs, strict=True):
        with torch.inference_mode():
            out = ours(source, target)[0]
        worst = max(worst, float((out - run.out).abs().max() / (1 + run.out.abs().max())))
    return worst


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("model_type", FIRST)
def test_every_key_changed_alone_means_what_the_published_class_makes_of_it(model_type: str) -> None:
    case = FIRST[model_type]
    reference = made(case)
    texts = [(run.source, run.target) for run in reference.runs]
    path = reference.folder / "config.json"
    whole = json.loads(path.read_text())
    before = distance(reference.folder, case, texts)
    assert before is not None and before < 1e-4
    wrong = {}
    for key, value in whole.items():
        if key in DESCRIBES or (model_type, key) in EXEMPT:
            continue
        for other in changed(key, value):
            path.write_text(json.dumps(whole | {key: other}))
            found = distance(reference.folder, case, texts)
            if found is not None and found > 1e-4:
                wrong[f"{key}: {value} -> {other}"] = found
    assert not wrong
