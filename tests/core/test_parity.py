"""Our logits and every head's pattern against transformers, family by family, through real folders on disk."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from core import trace
from core.checkpoints import Loaded, load
from core.model.attention import RMSNorm
from core.model.hooks import hook_points, hooked
from core.model.positions import rotary_frequencies
from tests.core.published import LLAMA, NEOX, PUBLISHED, VOCAB, Run, judge, reference, scaled

LOGITS, PATTERNS = 1e-5, 1e-6

every = pytest.mark.parametrize("name", PUBLISHED)


@cache
def ours(name: str) -> Loaded:
    return load(reference(name).folder)


def watched(loaded: Loaded, **inputs: Tensor | None) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits, and the pattern at every hook_pattern."""
    seen: dict[str, Tensor] = {}
    names = [name for name in hook_points(loaded.model) if name.endswith("hook_pattern")]
    hooks = {name: lambda x, name=name: seen.__setitem__(name, x) for name in names}
    with torch.inference_mode(), hooked(loaded.model, hooks):
        return loaded.model(**inputs), seen


def distance(a: Tensor, b: Tensor) -> float:
    assert a.shape == b.shape
    return (a - b).abs().max().item()


def assert_agrees(loaded: Loaded, theirs: Run) -> None:
    logits, patterns = watched(loaded, ids=theirs.source, target_ids=theirs.target)
    assert patterns.keys() == theirs.patterns.keys()
    assert distance(logits[0], theirs.out) <= LOGITS
    for key, pattern in patterns.items():
        assert distance(pattern[0], theirs.patterns[key]) <= PATTERNS, key


@every
def test_alone(name: str) -> None:
    for theirs in reference(name).runs:
        assert 0.5 < theirs.out.abs().max() < 20  # so that an absolute tolerance means something
        assert_agrees(ours(name), theirs)


@every
def test_traced(name: str) -> None:
    """What a trace shows, recomputed from the queries and keys of the fused run, is what transformers computed."""
    theirs = reference(name).runs[0]
    target = None if theirs.target is None else theirs.target[0].tolist()
    run = trace(ours(name), ids=theirs.source[0].tolist(), target_ids=target)
    assert {f"{record.name}.hook_pattern" for record in run.attention} == theirs.patterns.keys()
    for record in run.attention:
        assert distance(record.pattern(), theirs.patterns[f"{record.name}.hook_pattern"]) <= PATTERNS, record.name


@every
def test_fused(name: str) -> None:
    """The same logits without hooks, when attention takes the fused kernel."""
    theirs = reference(name).runs[0]
    with torch.inference_mode():
        logits = ours(name).model(theirs.source, theirs.target)
    assert distance(logits[0], theirs.out) <= LOGITS


def real(n: int, longest: int, side: str) -> slice:
    """Where the real tokens of a padded text are."""
    return slice(longest - n, longest) if side == "left" else slice(0, n)


def padded(rows: Sequence[Tensor], side: str, pad: int = 0) -> tuple[Tensor, Tensor]:
    """ids and keep [batch, pos] of texts [1, pos], the shorter ones filled up with the token `pad`."""
    longest = max(row.shape[1] for row in rows)
    ids, keep = torch.full((len(rows), longest), pad), torch.zeros(len(rows), longest, dtype=torch.bool)
    for i, row in enumerate(rows):
        at = real(row.shape[1], longest, side)
        ids[i, at], keep[i, at] = row[0], True
    return ids, keep


@pytest.mark.parametrize("name", [name for name, case in PUBLISHED.items() if not case.grows])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded(name: str, side: str) -> None:
    """In a padded batch each text is what it is alone, whichever side the padding is on."""
    runs = reference(name).runs
    targets = [run.target for run in runs if run.target is not None]
    inputs: dict[str, Tensor | None] = dict(
        zip(("ids", "keep"), padded([run.source for run in runs], side, ours(name).pad_id), strict=True)
    )
    if targets:
        inputs |= dict(zip(("target_ids", "target_keep"), padded(targets, side), strict=True))
    logits, patterns = watched(ours(name), **inputs)
    for i, theirs in enumerate(runs):
        source = target = real(theirs.source.shape[1], runs[0].source.shape[1], side)
        if targets:
            target = real(targets[i].shape[1], targets[0].shape[1], side)
        assert distance(logits[i, target], theirs.out) <= LOGITS
        for key, pattern in patterns.items():
            rows = source if key.startswith("encoder") else target
            columns = source if key.startswith("encoder") or "cross_attn" in key else target
            assert distance(pattern[i, :, rows, columns], theirs.patterns[key]) <= PATTERNS, key


@pytest.mark.parametrize("name", ["bert", "llama gqa", "mistral", "gemma3_text", "opt", "t5 v1.0", "bart"])
def test_padded_batch_of_transformers(name: str) -> None:
    """Their own padded batch gives our numbers on every real token."""
    runs, loaded = reference(name).runs, ours(name)
    ids, keep = padded([run.source for run in runs], "right")
    words: dict[str, Tensor] = {}
    if loaded.config.kind == "encoder-decoder":
        words["decoder_input_ids"] = torch.cat([run.target[:, :5] for run in runs if run.target is not None])
    with torch.inference_mode():
        theirs = reference(name).model(ids, attention_mask=keep.long(), **words).logits
        mine = loaded.model(ids, words.get("decoder_input_ids"), keep=keep)
    at = ... if words else keep
    assert distance(mine[at], theirs[at]) <= LOGITS


@pytest.mark.parametrize("name", ["llama dynamic", "llama yarn", "t5 v1.1", "gemma3_text", "qwen2"])
def test_in_double_precision(name: str) -> None:
    """What is left between us in float32 is rounding: in float64 most of it goes away."""
    theirs = reference(name).runs[0]
    exact = judge(copy.deepcopy(reference(name).model).double(), theirs.source, theirs.target)
    loaded = load(reference(name).folder, dtype=torch.float64)
    logits, patterns = watched(loaded, ids=theirs.source, target_ids=theirs.target)
    assert logits.dtype == torch.float64
    # Norms, rotary angles and distance buckets stay in float32 on both sides, so not all of it does.
    assert distance(logits[0], exact.out) <= LOGITS / 4
    for key, pattern in patterns.items():
        assert distance(pattern[0], exact.patterns[key]) <= PATTERNS / 2, key


# What rounding may do in 16 bits, in units of the format's rounding error u (2⁻⁸ in bfloat16, 2⁻¹¹ in float16): a score is
# the sum of a few dozen numbers that were each rounded once, on the way through three blocks of which each rounds the
# stream three times. Such errors add up like a random walk, to some √50·u of the largest score. Measured: at most 7.0 u of
# the largest logit and 5.7 u of a weight, and as much for transformers' own half precision, 7.4 u and 5.5 u.
HALF = 10
HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


@pytest.mark.thorough(but=20)
@pytest.mark.parametrize("half", HALVES)
@every
def test_in_half_precision(name: str, half: str) -> None:
    """As near to the numbers of float32 as 16 bits let them be, and no further from them than transformers in 16 bits."""
    exact, dtype = reference(name).runs[0], HALVES[half]
    unit = torch.finfo(dtype).eps / 2
    half_of = copy.deepcopy(reference(name).model)
    torch.nn.Module.to(half_of, dtype)
    theirs = judge(half_of, exact.source, exact.target)
    logits, patterns = watched(load(reference(name).folder, dtype=dtype), ids=exact.source, target_ids=exact.target)
    assert logits.dtype == dtype

    def assert_near(mine: Tensor, other: Tensor, truth: Tensor) -> None:
        off, theirs_off = (distance(x.float(), truth) / truth.abs().max().clamp(min=1).item() for x in (mine, other))
        assert off <= HALF * unit
        assert off <= 2 * theirs_off + unit

    assert_near(logits[0], theirs.out, exact.out)
    weights = [torch.cat([x.flatten() for x in run.values()]) for run in (theirs.patterns, exact.patterns)]
    assert_near(torch.cat([patterns[key].flatten() for key in exact.patterns]), *weights)


@pytest.mark.parametrize("name", ["gemma2", "gemma3_text", "llama gqa", "t5 v1.0"])
def test_weights_of_rms_norms_are_not_rounded(name: str) -> None:
    """Gemma keeps a norm's distance from one, and 1 + w in bfloat16 would lose most of w."""
    whole, half = ours(name).model, load(reference(name).folder, dtype=torch.bfloat16).model
    exact = {key: module.weight for key, module in whole.named_modules() if isinstance(module, RMSNorm)}
    assert len(exact) >= 3
    for key, module in half.named_modules():
        if isinstance(module, RMSNorm):
            assert module.weight.dtype == torch.float32
            assert torch.equal(module.weight, exact[key])
    assert half.stacks[0].embed.token.weight.dtype == torch.bfloat16


SCALINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"factor": 3.0},
    "dynamic": {"factor": 2.5},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 16},
    "yarn, bounds": {"factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 2.0, "beta_slow": 0.5},
    "yarn, not rounded": {"factor": 4.0, "original_max_position_embeddings": 16, "truncate": False},
    "yarn, stated factor": {"factor": 4.0, "original_max_position_embeddings": 16, "attention_factor": 1.3},
    "yarn, two scales": {"factor": 4.0, "original_max_position_embeddings": 16, "mscale": 0.7, "mscale_all_dim": 1.1},
    "llama3": {
        "factor": 8.0,
        "original_max_position_embeddings": 16,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    },
}


@pytest.mark.parametrize("older", [False, True], ids=["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize("name", SCALINGS)
def test_scaled_rotary_angles(name: str, older: bool, tmp_path: Path) -> None:
    """Frequencies and the factor on q and k, from files old and new, are those of transformers' modeling_rope_utils."""
    kind = name.split(",")[0]
    config = hf.LlamaConfig(**scaled(kind, **SCALINGS[name]), vocab_size=VOCAB)
    hf.LlamaForCausalLM(config).save_pretrained(tmp_path)
    if older:
        stated = json.loads((tmp_path / "config.json").read_text())
        rope = stated.pop("rope_parameters")
        stated["rope_theta"] = rope.pop("rope_theta")
        stated["rope_scaling"] = {"type": rope.pop("rope_type"), **rope} if kind != "default" else None
        (tmp_path / "config.json").write_text(json.dumps(stated))
    mine = load(tmp_path).config
    for n_pos in (5, 64, 100):
        frequencies, factor = rotary_frequencies(mine, n_pos)
        if kind == "default":
            expected, expected_factor = 100.0 ** -(torch.arange(0, 10, 2) / 10), 1.0
        else:
            expected, expected_factor = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=n_pos)
        torch.testing.assert_close(frequencies, expected, rtol=1e-6, atol=0)
        assert factor == pytest.approx(expected_factor, rel=1e-7)


@pytest.mark.parametrize("name", ["llama linear", "llama dynamic", "llama yarn", "llama llama3"])
def test_scaling_matters(name: str, tmp_path: Path) -> None:
    """The same weights without the scaling are noticed, so that its parity above is no accident."""
    shutil.copytree(reference(name).folder, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": 100.0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    theirs = reference(name).runs[0]
    logits, _ = watched(load(tmp_path), ids=theirs.source)
    assert distance(logits[0], theirs.out) > 10 * LOGITS


def neox_of_version_4(config: dict[str, Any]) -> None:
    rope = config.pop("rope_parameters")
    config |= {"rotary_pct": rope["partial_rotary_factor"], "rotary_emb_base": rope["rope_theta"], "rope_scaling": None}


def gemma3_of_version_4(config: dict[str, Any]) -> None:
    rope = config.pop("rope_parameters")
    config |= {
        "rope_theta": 1000.0,
        "rope_local_base_freq": 100.0,
        "rope_scaling": {"rope_type": "linear", "factor": 3.0},
    }
    assert rope["full_attention"]["rope_theta"] == config["rope_theta"]
    del config["layer_types"]
    config["sliding_window_pattern"] = 2


def gemma2_of_version_4(config: dict[str, Any]) -> None:
    del config["layer_types"]
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]


OLDER = {"gpt_neox parallel": neox_of_version_4, "gemma3_text": gemma3_of_version_4, "gemma2": gemma2_of_version_4}


@pytest.mark.parametrize("name", OLDER)
def test_configs_of_version_4(name: str, tmp_path: Path) -> None:
    """The keys that older files use, read by transformers and by us."""
    shutil.copytree(reference(name).folder, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    OLDER[name](config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    theirs = type(reference(name).model).from_pretrained(tmp_path, attn_implementation="eager").eval()
    assert_agrees(load(tmp_path), judge(theirs, reference(name).runs[0].source, None))


def test_the_sizes_tell_axes_apart() -> None:
    assert (
        len({LLAMA["hidden_size"], LLAMA["head_dim"] * 6, LLAMA["head_dim"] * 3, LLAMA["intermediate_size"], VOCAB})
        == 5
    )
    assert NEOX["hidden_size"] != NEOX["intermediate_size"] != VOCAB
