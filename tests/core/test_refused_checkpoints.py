"""Folders that we do not compute, damaged ones and hostile ones: each is refused by a sentence that names what is wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.checkpoints import load
from core.checkpoints.files import INDEX, SINGLE
from core.errors import CheckpointError
from tests.core.folders import Config, Tensors, change_config, change_tensors, plus, without
from tests.core.published import VOCAB, reference

# --- refused by name -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("llama gqa", {"model_type": "dbrx"}, "'dbrx' is not supported.*experts.*llama"),
        ("llama gqa", {"model_type": "granitemoe"}, "'granitemoe' is not supported.*experts"),
        ("llama gqa", {"model_type": "gemma3n"}, "and the text half of gemma3, got_ocr2"),
        ("llama gqa", {"model_type": "mamba"}, "'mamba' is not supported.*bert.*t5"),
        ("llama gqa", {"model_type": None}, "no model_type"),
        ("llama gqa", {"model_type": ["llama"]}, "not supported"),
        ("llama gqa", {"model_type": "../../etc/passwd"}, "not supported"),
        ("llama gqa", {"hidden_act": "mish"}, "hidden_act='mish' is not supported.*silu"),
        ("llama gqa", {"rope_parameters": {"rope_type": "longer", "factor": 2.0}}, "'longer'.*yarn"),
        ("llama gqa", {"rope_scaling": {"type": "mrope"}}, "'mrope'"),
        ("llama gqa", {"rope_parameters": {"rope_type": "linear"}}, "no factor"),
        ("llama gqa", {"rope_parameters": {"rope_type": "linear", "factor": 0.5}}, "at least 1"),
        ("llama gqa", {"rope_parameters": {"rope_type": "default", "rope_theta": 0.0}}, "rope_theta"),
        ("llama gqa", {"rope_parameters": "yarn"}, "rope_parameters.*braces"),
        ("llama gqa", {"quantization_config": {"bits": 4}}, "quantized"),
        ("phi3", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "'linear'.*default"),
        ("phi3", {"rope_scaling": {"type": "yarn", "factor": 2.0}}, "no short_factor"),
        (
            "phi3",
            {"rope_scaling": {"type": "su", "short_factor": [1, -1, 1], "long_factor": [1, 1, 1]}},
            "short_factor is .*a list of positive numbers",
        ),
        ("phi3", {"rope_scaling": {"type": "su", "short_factor": [1, 2], "long_factor": [1, 1, 1]}}, "one of each for"),
        ("gemma2", {"attn_logit_softcapping": -50.0}, "score_softcap.*positive"),
        ("gemma2", {"final_logit_softcapping": "much"}, "final_logit_softcapping"),
        ("gemma2", {"use_bidirectional_attention": True}, "use_bidirectional_attention=True.*false"),
        ("gemma3_text", {"layer_types": ["full_attention"] * 2}, "2 layers.*3"),
        ("gemma3_text", {"layer_types": ["chunked_attention"] * 3}, "chunked_attention"),
        ("bert", {"add_cross_attention": True}, "add_cross_attention=True"),
        ("bert", {"position_embedding_type": "relative_key"}, "relative_key.*absolute"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ("opt", {"do_layer_norm_before": False}, "do_layer_norm_before"),
        ("opt", {"word_embed_proj_dim": 16}, "word_embed_proj_dim is 16.*35"),
        ("bart", {"decoder_attention_heads": 7}, r"different numbers of heads \(5 and 7\)"),
        ("marian", {"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings"),
        ("t5 v1.0", {"dense_act_fn": "mish"}, "dense_act_fn='mish'"),
    ],
)
def test_what_we_do_not_compute_is_refused_by_name(
    name: str, changes: Config, says: str, folder: Callable[[str], Path]
) -> None:
    with pytest.raises(CheckpointError, match=f"(?s){says}"):
        load(change_config(folder(name), **changes))


# --- damaged and hostile -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[1]", "must hold an object"),
        (b'"llama"', "must hold an object"),
        (b"\xff\xfe{}", "not valid JSON"),
        (b'{"a": 1, "a": 2}', "'a' is there twice"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"model_type": "gpt2", "n_embd": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"model_type": "gpt2"}', "has no vocab_size"),
    ],
)
def test_config_that_is_none(content: bytes, says: str, folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / "config.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"config\.json.*{says}"):
        load(place)


@pytest.mark.thorough(but=14)
@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -1, 0, 1.5, "35", True, [35], {}, 10**9, 2**31, 10**40, None]
)
@pytest.mark.parametrize(
    "key", ["n_embd", "n_head", "n_layer", "vocab_size", "n_positions", "n_inner", "layer_norm_epsilon"]
)
def test_config_numbers_that_cannot_be(key: str, value: Any, folder: Callable[[str], Path]) -> None:
    """Wrong types, and sizes that would take all memory: refused before a tensor is made."""
    defaults = {"n_inner": (None, 0), "layer_norm_epsilon": (None, 1.5, 10**9, 2**31)}
    place = change_config(folder("gpt2"), **{key: value})
    if value in defaults.get(key, ()) and not isinstance(value, bool):
        if key == "layer_norm_epsilon":
            assert load(place).config.norm_eps == (1e-5 if value is None else value)
        else:
            with pytest.raises(CheckpointError, match=r"\[35, 140\]"):  # four times as wide as the model, by default
                load(place)
        return
    with pytest.raises(CheckpointError, match=r"config\.json|hold no tensor"):
        load(place)


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("name", ["bert", "gemma3_text", "gpt_neox parallel", "marian", "t5 v1.0"])
def test_no_config_value_gets_past_as_another_error(name: str, folder: Callable[[str], Path]) -> None:
    """Every key of a real config, replaced by what does not belong there, loads or is refused by a sentence."""
    place = folder(name)
    config = json.loads((place / "config.json").read_text())
    n_refused = 0
    for key in config:
        for value in (float("nan"), 10**40, "x", [], 0):
            (place / "config.json").write_text(json.dumps(config | {key: value}))
            try:
                load(place)
            except CheckpointError as error:
                n_refused += 1
                assert str(place) not in str(error)
    assert n_refused > 20


def test_sizes_that_lie_cost_nothing(folder: Callable[[str], Path]) -> None:
    lies: Config = {"n_layer": 10**8, "vocab_size": 10**9, "n_embd": 10**9, "n_positions": 10**9}
    stated = (reference("gpt2").folder / "config.json").read_text()
    for key, value in lies.items():
        with pytest.raises(CheckpointError):
            load(change_config(folder("gpt2"), **(json.loads(stated) | {key: value})))
    with pytest.raises(CheckpointError, match="sinusoidal"):
        load(change_config(folder("marian"), max_position_embeddings=10**9))


def truncated(place: Path) -> None:
    data = (place / SINGLE).read_bytes()
    (place / SINGLE).write_bytes(data[:-100])


def lying_length(place: Path) -> None:
    data = (place / SINGLE).read_bytes()
    (place / SINGLE).write_bytes((2**60).to_bytes(8, "little") + data[8:])


def edit_header(change: Callable[[Config], None]) -> Callable[[Path], None]:
    def spoil(place: Path) -> None:
        data = (place / SINGLE).read_bytes()
        n = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + n])
        change(header)
        new = json.dumps(header).encode()
        (place / SINGLE).write_bytes(len(new).to_bytes(8, "little") + new + data[8 + n :])

    return spoil


def overlap(header: Config) -> None:
    header["transformer.h.0.attn.c_attn.weight"]["data_offsets"] = header["transformer.h.1.attn.c_attn.weight"][
        "data_offsets"
    ]


def huge_shape(header: Config) -> None:
    header["transformer.wte.weight"]["shape"] = [2**40, 2**40]


def negative_shape(header: Config) -> None:
    header["transformer.wte.weight"]["shape"] = [-53, -35]


def odd_dtype(header: Config) -> None:
    header["transformer.wte.weight"]["dtype"] = "PICKLE"


@pytest.mark.parametrize(
    "spoil",
    [
        truncated,
        lying_length,
        edit_header(overlap),
        edit_header(huge_shape),
        edit_header(negative_shape),
        edit_header(odd_dtype),
        lambda place: (place / SINGLE).write_bytes(b""),
        lambda place: (place / SINGLE).write_bytes(b"\x80\x04cos\nsystem\n(S'x'\ntR."),
        lambda place: (place / SINGLE).write_bytes((9).to_bytes(8, "little") + b"not json!"),
    ],
)
def test_damaged_weight_files(spoil: Callable[[Path], None], folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    spoil(place)
    with pytest.raises(CheckpointError, match=r"model\.safetensors is not a whole safetensors file"):
        load(place)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("gpt2", without("h.1.ln_2.bias"), r"no tensor h\.1\.ln_2\.bias.*decoder\.blocks\.1\.mlp_norm\.bias"),
        ("gpt2", without("wte"), r"no tensor wte\.weight"),
        ("llama gqa", without("lm_head"), r"no tensor lm_head\.weight"),
        ("bert", without("cls."), "no tensor cls"),
        ("t5 v1.0", without("decoder.block.0.layer.0.SelfAttention.rel"), "relative_attention_bias"),
        ("gpt2", plus(transformer__wpe__weight=torch.ones(38, 35)), r"wpe\.weight is \[38, 35\].*\[37, 35\]"),
        ("gpt2", plus(transformer__h__0__attn__c_attn__weight=torch.ones(105, 35)), r"\[105, 35\].*\[35, 105\]"),
        ("gpt2", plus(transformer__ln_f__bias=torch.full((35,), torch.nan)), r"ln_f\.bias.*not finite"),
        ("gpt2", plus(transformer__ln_f__bias=torch.full((35,), -torch.inf)), r"ln_f\.bias.*not finite"),
        ("gpt2", plus(transformer__ln_f__bias=torch.ones(35, dtype=torch.int8)), "stored as I8"),
        ("gpt2", plus(wpe__weight=torch.ones(37, 35)), r"both transformer\.wpe\.weight and wpe\.weight"),
        ("bart", plus(encoder__embed_tokens__weight=torch.ones(VOCAB, 35)), "must be the same tensor"),
        ("llama gqa", plus(model__layers__2__self_attn__q_proj__weight=torch.ones(60, 41)), r"\[60, 41\].*\[60, 42\]"),
    ],
)
def test_tensors_that_do_not_belong(
    name: str, change: Callable[[Tensors], Tensors], says: str, folder: Callable[[str], Path]
) -> None:
    with pytest.raises(CheckpointError, match=says):
        load(change_tensors(folder(name), change))


def test_another_familys_config_is_noticed(folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    shutil.copy(reference("opt").folder / "config.json", place / "config.json")
    with pytest.raises(CheckpointError, match=r"hold no tensor decoder\.embed_tokens\.weight"):
        load(place)


def test_numbers_too_large_for_half_precision(folder: Callable[[str], Path]) -> None:
    place = change_tensors(folder("gpt2"), plus(transformer__ln_f__bias=torch.full((35,), 1e6)))
    assert load(place).dtype == torch.float32
    with pytest.raises(CheckpointError, match="too large for float16"):
        load(place, dtype=torch.float16)


@pytest.fixture
def shards(tmp_path: Path) -> tuple[Path, Config]:
    reference("gpt2").model.save_pretrained(tmp_path, max_shard_size="20KB")
    return tmp_path, json.loads((tmp_path / INDEX).read_text())


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        "a/b.safetensors",
        "a\\b.safetensors",
        "pytorch_model.bin",
        "x\0.safetensors",
        "",
        "-\n.safetensors",
    ],
)
def test_an_index_that_points_elsewhere(name: str, shards: tuple[Path, Config]) -> None:
    place, index = shards
    index["weight_map"]["transformer.wte.weight"] = name
    (place / INDEX).write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=r"must be a \.safetensors file in the same folder"):
        load(place)


def test_damaged_indexes(shards: tuple[Path, Config]) -> None:
    place, index = shards
    names = sorted(set(index["weight_map"].values()))
    wte = "transformer.wte.weight"
    elsewhere = next(name for name in names if name != index["weight_map"][wte])
    cases: list[tuple[Any, str]] = [
        ({}, "no weight_map"),
        ({"weight_map": []}, "no weight_map"),
        ({"weight_map": {"a": 3}}, "no weight_map"),
        ({"weight_map": {"a": "missing.safetensors"}}, "missing.safetensors, which is not there"),
        ({"weight_map": index["weight_map"] | {wte: elsewhere}}, f"{wte} is in {elsewhere}, but it is not"),
        ({"weight_map": index["weight_map"] | {"ghost": names[0]}}, "ghost"),
    ]
    for content, says in cases:
        (place / INDEX).write_text(json.dumps(content))
        with pytest.raises(CheckpointError, match=says):
            load(place)


def test_a_tensor_in_two_shards(shards: tuple[Path, Config]) -> None:
    place, index = shards
    other = next(name for name in index["weight_map"].values() if name != index["weight_map"]["transformer.wte.weight"])
    save_file(load_file(place / other) | {"transformer.wte.weight": torch.ones(VOCAB, 35)}, place / other)
    with pytest.raises(CheckpointError, match=r"wte\.weight is both in"):
        load(place)


def test_pickles_are_not_opened(folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / SINGLE).rename(place / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin, a Python pickle.*safe_serialization"):
        load(place)


def test_other_formats_are_named(folder: Callable[[str], Path]) -> None:
    place = folder("gpt2")
    (place / SINGLE).rename(place / "model.onnx")
    with pytest.raises(CheckpointError, match=r"no model\.safetensors.*model\.onnx"):
        load(place)
