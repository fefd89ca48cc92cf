"""Published models as GGUF files against transformers: patterns, logits and what the metadata say of rotary positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from core.checkpoints import Loaded, load
from core.errors import CheckpointError
from tests.core.gguf.written import (
    arrays_of,
    bert,
    config_of,
    gemma,
    gpt2,
    llama,
    llama_values,
    neox,
    phi3,
    qwen,
    t5,
    write,
)
from tests.core.published import PUBLISHED, Reference, Run, made, reference
from tests.core.test_parity import distance, watched

LOGITS, PATTERNS = 1e-4, 1e-5

WRITTEN: dict[str, Callable[[Path, Path], Path]] = {
    "llama mha": llama,
    "llama gqa": llama,
    "llama mqa, tied": llama,
    "llama biased": llama,
    "llama linear": llama,
    "llama yarn": llama,
    "llama llama3": llama,
    "qwen2": qwen,
    "qwen3": qwen,
    "gemma2": gemma,
    "gemma3_text": gemma,
    "phi3": phi3,
    "phi3 windowed": phi3,
    "gpt2": gpt2,
    "gpt_neox parallel": neox,
    "gpt_neox in turn, no bias": neox,
    "bert without head": bert,
    "t5 v1.0": t5,
    "t5 v1.1": t5,
}


# Sizes that the format has no place for, so that llama.cpp takes those of the published models.
FIXED: dict[str, dict[str, int]] = {
    "gemma2": {"query_pre_attn_scalar": 10},
    "gemma3_text": {"query_pre_attn_scalar": 10},
    "t5 v1.0": {"relative_attention_max_distance": 128},
    "t5 v1.1": {"relative_attention_max_distance": 128},
}


@cache
def judge(name: str) -> Reference:
    case = PUBLISHED[name]
    return made(replace(case, sizes=case.sizes | FIXED[name])) if name in FIXED else reference(name)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_CACHE", "off")


def assert_agrees(loaded: Loaded, theirs: Run) -> None:
    logits, patterns = watched(loaded, ids=theirs.source, target_ids=theirs.target)
    assert patterns.keys() == theirs.patterns.keys()
    assert distance(logits[0], theirs.out) <= LOGITS
    for key, pattern in patterns.items():
        assert distance(pattern[0], theirs.patterns[key]) <= PATTERNS, key


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_is_the_model_that_it_was_made_from(name: str, tmp_path: Path) -> None:
    file = WRITTEN[name](judge(name).folder, tmp_path / "model.gguf")
    loaded = load(file)
    assert not loaded.unused and not loaded.notices
    for theirs in judge(name).runs:
        assert_agrees(loaded, theirs)


def test_a_folder_with_one_file_is_that_model(tmp_path: Path) -> None:
    file = llama(reference("llama gqa").folder, tmp_path / "tiny-Q8_0.gguf")
    (tmp_path / "mmproj-tiny.gguf").write_bytes(b"GGUF")  # what reads pictures for a model is none itself
    assert load(str(file)).spec.title == "tiny-Q8_0"
    assert load(tmp_path).config == load(file).config
    llama(reference("llama gqa").folder, tmp_path / "tiny-F32.gguf")
    with pytest.raises(
        CheckpointError, match=r"holds 2 models as GGUF files: tiny-F32\.gguf, tiny-Q8_0\.gguf\. Open one"
    ):
        load(tmp_path)


def test_rotary_factors_that_are_not_llama_3s_are_refused(tmp_path: Path) -> None:
    folder = reference("llama gqa").folder
    values, arrays = llama_values(config_of(folder)), arrays_of(folder, "llama", config_of(folder))
    arrays["rope_freqs.weight"] = arrays["output_norm.weight"][:5].abs() + 1
    with pytest.raises(CheckpointError, match="scales rotary frequencies otherwise than Llama 3"):
        load(write(tmp_path / "a.gguf", "llama", values, arrays))
    arrays["rope_freqs.weight"] = arrays["output_norm.weight"][:4]
    with pytest.raises(CheckpointError, match=r"\[4\] numbers that are no factors of the 5 rotary"):
        load(write(tmp_path / "b.gguf", "llama", values, arrays))


@pytest.mark.parametrize(
    ("arch", "values", "sentence"),
    [
        ("mamba", {}, "architecture 'mamba' is not supported.* Supported in GGUF files are .*llama"),
        ("qwen3moe", {}, "'qwen3moe' is not supported. A mixture of experts has no single MLP"),
        ("clip", {}, "It reads pictures or sound for another model"),
        ("llama", {".expert_count": 8}, "llama.expert_count is 8, but a mixture of experts"),
        ("llama", {".block_count": 4}, r"hold no tensor layers.3"),
        ("llama", {".block_count": 5000}, "speaks of 5,000 layers, but holds only 30 tensors"),
        ("llama", {".attention.head_count": 4}, "'blk.0.attn_q.weight' of 60 × 42 numbers does not divide"),
        ("llama", {".embedding_length": 43}, r"embed_tokens.weight is \[53, 42\], but model.gguf makes it \[53, 43"),
        ("llama", {".attention.head_count": 0}, "head_count is 0, but it must be at least 1"),
        (
            "llama",
            {".attention.head_count": "six"},
            "llama.attention.head_count is 'six', but it must be a whole number",
        ),
        ("llama", {".rope.freq_base": 0.5}, "model.gguf: rope_theta is 0.5"),
        ("llama", {".rope.dimension_count": 6}, "partial_rotary_factor is 0.6"),
        ("llama", {".rope.scaling.type": "longrope"}, "'longrope', but supported are none, linear and yarn"),
        ("llama", {".attention.value_length": 4}, "value_length is 4, but queries and keys are 10 wide"),
        (
            "llama",
            {".attention.head_count_kv": [3, 3, 3]},
            r"head_count_kv is \[3, 3, 3\], but it must be a whole number",
        ),
    ],
)
def test_metadata_that_make_no_model_are_refused(arch: str, values: dict, sentence: str, tmp_path: Path) -> None:
    folder = reference("llama gqa").folder
    config = config_of(folder)
    said = {key.replace("llama.", f"{arch}."): value for key, value in llama_values(config).items()} | values
    with pytest.raises(CheckpointError, match=sentence):
        load(write(tmp_path / "model.gguf", arch, said, arrays_of(folder, "llama", config)))


@pytest.mark.parametrize(
    ("said", "caps"),
    [
        ({}, (50.0, 30.0)),  # llama.cpp caps where the file does not say
        ({"attn_logit_softcapping": 0.0}, (None, 30.0)),
        ({"final_logit_softcapping": 0.0}, (50.0, None)),
        ({"attn_logit_softcapping": 0.5, "final_logit_softcapping": 2.0}, (0.5, 2.0)),
    ],
    ids=str,
)
def test_the_caps_of_a_gemma_2_are_the_file_s(
    said: dict[str, float], caps: tuple[float | None, float | None], tmp_path: Path
) -> None:
    case = PUBLISHED["gemma2"]
    meant = dict(zip(("attn_logit_softcapping", "final_logit_softcapping"), caps, strict=True))
    theirs = made(replace(case, sizes=case.sizes | FIXED["gemma2"] | meant))
    config = config_of(theirs.folder)
    arrays = {
        name: tensor + 1 if name.endswith("norm.weight") else tensor
        for name, tensor in arrays_of(theirs.folder, "gemma2", config).items()
    }
    values = llama_values(config) | {".attention.sliding_window": config["sliding_window"]}
    values |= {f".{name}": value for name, value in said.items()}
    loaded = load(write(tmp_path / "model.gguf", "gemma2", values, arrays))
    assert (loaded.config.score_softcap, loaded.config.logit_softcap) == caps
    for run in theirs.runs:
        assert_agrees(loaded, run)


@pytest.mark.parametrize("tensors", [("long", "short"), ("long",), ("short",)], ids=str)
def test_a_phi_3_for_long_texts_is_refused(tensors: tuple[str, ...], tmp_path: Path) -> None:
    folder = judge("phi3").folder
    config = config_of(folder)
    arrays = arrays_of(folder, "phi3", config)
    width = config["hidden_size"] // config["num_attention_heads"]
    turned = int(width * config["rope_parameters"]["partial_rotary_factor"])
    for name in tensors:
        arrays[f"rope_factors_{name}.weight"] = torch.linspace(1, 4, turned // 2)
    values = llama_values(config) | {".rope.dimension_count": turned}
    with pytest.raises(CheckpointError, match="longrope"):
        load(write(tmp_path / "model.gguf", "phi3", values, arrays))
