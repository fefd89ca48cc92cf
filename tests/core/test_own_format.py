"""Headlight's own format: what is saved is what is loaded, and what is not understood is refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import core
from core import ModelConfig
from core.checkpoints import Loaded, load, save_model
from core.checkpoints.native_format import HEADLIGHT, MODULES, TokenIds
from core.errors import CheckpointError
from core.model.config import RotaryScaling
from tests.core.test_invariants import SAMPLE, name
from tests.thorough import part

RICH: list[dict[str, Any]] = [
    {"position": "rotary", "rotary_scaling": RotaryScaling(kind="yarn", factor=4.0, n_ctx_original=16, mscale=0.7)},
    {"position": "rotary", "window": 4, "windowed_layers": (0, 1), "rotary_base_windowed": 50.0},
    {"n_encoder_layers": 2, "n_decoder_layers": 1, "position": "relative", "tied": False, "head_bias": True},
    {"n_encoder_layers": 1, "n_token_types": 2, "embed_norm": True, "head": "mlm"},
    {"n_encoder_layers": 1, "head": "none", "qkv_bias": False, "logit_scale": 0.5, "attn_scale": 1.0},
    {"n_encoder_layers": 2, "shared_layers": True, "d_embed": 7, "head": "mlm", "norm_bias": False},
    {"n_encoder_layers": 2, "relative_bias": True, "relative_per_layer": True, "activation": "xielu", "head": "mlm"},
    {
        "n_experts": 3,
        "n_experts_per_token": 2,
        "sinks": True,
        "gated": True,
        "router_correction": True,
        "activation": "xielu",
    },
    {"n_experts": 3, "n_experts_per_token": 1, "d_shared": 5, "dense_layers": (0,), "d_dense": 9},
    {
        "n_experts": 3,
        "n_experts_per_token": 1,
        "d_shared": 5,
        "gated": True,
        "activation": "xielu",
        "norm_order": "after",
    },
    {"position": "rotary", "kv_rank": 5, "q_rank": 6, "d_v": 3, "rotary_fraction": 0.34, "norm": "rms"},
    {"position": "rotary", "norm_weight": False, "qk_norm": True, "qk_norm_place": "turned", "unturned_layers": (1,)},
    {"position": "rotary", "parallel": True, "shared_norm": True, "qk_norm": True, "qk_norm_place": "full"},
    {
        "position": "rotary",
        "query_growth": 0.1,
        "query_growth_length": 4,
        "score_softcap": 2.0,
        "logit_softcap": 3.0,
        "rotary_scaling": RotaryScaling(
            kind="longrope", factor=2.0, n_ctx_original=8, short_factors=(1.0, 1.5, 2.0), long_factors=(1.0, 2.0, 4.0)
        ),
    },
]


# Its gate is one row, whose product a processor adds up in another order where it lies elsewhere in memory.
GATED: dict[str, Any] = {"n_experts": 2, "n_experts_per_token": 1, "d_shared": 5, "shared_gate": True}


def logits(loaded: Loaded) -> torch.Tensor:
    ids = torch.arange(3, 14)[None]
    with torch.inference_mode():
        return loaded.model(ids, ids[:, :7] if loaded.config.kind == "encoder-decoder" else None)


@pytest.mark.parametrize("config", [*part(SAMPLE[::3], 3), *RICH], ids=name)
def test_saved_and_loaded_is_the_same_to_the_last_bit(
    tiny: Callable[..., Loaded], tmp_path: Path, config: dict[str, Any]
) -> None:
    model = tiny(**config)
    save_model(model.model, tmp_path)
    again = load(tmp_path)
    assert again.config == model.config
    assert again.spec.family == "headlight"
    assert again.unused == ()
    kept, loaded = model.model.state_dict(), again.model.state_dict()
    assert kept.keys() == loaded.keys() and all(torch.equal(kept[key], loaded[key]) for key in kept)
    torch.testing.assert_close(
        logits(again), logits(model), rtol=0, atol=1e-6
    )  # a processor may add up in another order


def test_every_row_is_some_module_of_ours(tiny: Callable[..., Loaded]) -> None:
    """And every parameter of any config has a row: else the test above would fail to load."""
    rows: set[str] = set()
    for config in (*SAMPLE, *RICH, GATED):
        for parameter in tiny(**config).model.state_dict():
            parts = parameter.rsplit(".", 1)[0].split(".")
            if parameter.endswith(("sinks", "correction", "alpha_p", "alpha_n")):
                continue  # no module's weight or bias: they are in TENSORS
            if "blocks" in parts or "relative_biases" in parts:
                parts[2] = "{i}"
            if "experts" in parts:
                parts[parts.index("experts") + 1] = "{e}"
            if parts[0] != "head":
                parts[0] = "{stack}"
            rows.add(".".join(parts))
    assert rows == set(MODULES)


def test_every_field_is_read() -> None:
    assert HEADLIGHT.fields.keys() == {f.name for f in dataclasses.fields(ModelConfig)}


def test_what_the_loaded_model_knows_of_its_tokens(tiny: Callable[..., Loaded], tmp_path: Path) -> None:
    save_model(tiny(n_encoder_layers=1, n_decoder_layers=1).model, tmp_path, ids=TokenIds(pad=5, start=7, end=(2, 9)))
    loaded = load(tmp_path)
    assert (loaded.pad_id, loaded.start_id, loaded.end_ids) == (5, 7, (2, 9))


def test_shared_tensors_are_stored_once(tiny: Callable[..., Loaded], tmp_path: Path) -> None:
    model = tiny(n_encoder_layers=1, n_decoder_layers=1).model
    save_model(model, tmp_path)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        names = set(file.keys())
    assert "encoder.embed.token.weight" in names
    assert not names & {"decoder.embed.token.weight", "head.unembed.weight"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves(tiny: Callable[..., Loaded], tmp_path: Path, dtype: torch.dtype) -> None:
    model = tiny().model
    save_model(model, tmp_path, dtype=dtype)
    for key, value in load(tmp_path).model.state_dict().items():
        assert torch.equal(value, model.state_dict()[key].to(dtype).float())


def test_int8_is_a_quarter(tiny: Callable[..., Loaded], tmp_path: Path) -> None:
    """A scale of its own for each row of a matrix; vectors are float16. Rounded numbers stay what they are when they are saved again."""
    model = tiny(d_model=64, d_ff=256, n_heads=4, norm="rms").model
    with torch.no_grad():
        model.get_parameter("decoder.blocks.0.mlp.up.weight")[3] = 0.0
    save_model(model, tmp_path, dtype=torch.int8)
    again = load(tmp_path)
    assert again.notices == () and again.unused == ()
    for key, value in again.model.state_dict().items():
        exact = model.state_dict()[key]
        if exact.dim() == 1:
            assert torch.equal(value, exact.half().float())
        else:
            step = exact.abs().amax(-1, keepdim=True) / 127
            assert bool(((value - exact).abs() <= 0.501 * step).all())
    assert (tmp_path / "model.safetensors").stat().st_size < 1.2 * again.spec.n_params
    save_model(again.model, tmp_path / "again", dtype=torch.int8)
    numbers, others = (load_file(folder / "model.safetensors") for folder in (tmp_path, tmp_path / "again"))
    assert all(torch.equal(numbers[name], others[name]) for name in numbers if not name.endswith("_scale"))


def test_numbers_too_large_for_a_half(tiny: Callable[..., Loaded], tmp_path: Path) -> None:
    model = tiny(seed=3).model
    with torch.no_grad():
        model.get_parameter("decoder.blocks.0.mlp.up.weight")[0, 0] = 1e6
    with pytest.raises(CheckpointError, match=r"mlp\.up\.weight holds numbers too large for float16"):
        save_model(model, tmp_path, dtype=torch.float16)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"d_model": None}, "has no d_model"),
        ({"d_modle": 4}, "'d_modle' is not a field of a Headlight model"),
        ({"d_model": "wide"}, "d_model is 'wide', but it must be a whole number"),
        ({"position": "relativ"}, "position .'relativ'. must be one of"),
        ({"windowed_layers": [0.5], "window": 3}, "must be a list of whole numbers"),
        ({"rotary_scaling": {"kind": "linear", "factor": 2.0, "base": 1}}, "'base' is not a field"),
        ({"rotary_scaling": {"kind": "linear"}}, "has no factor"),
        ({"rotary_scaling": 3}, "must be an object in braces"),
        ({"n_decoder_layers": 3}, "hold no tensor decoder.blocks.2"),
        ({"tied": False}, "hold no tensor head.unembed.weight"),
        ({"d_ff": 24}, r"is \[23, 20\], but config.json makes it \[24, 20\]"),
    ],
)
def test_a_config_that_lies(tiny: Callable[..., Loaded], tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    save_model(tiny().model, tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | change))
    with pytest.raises(CheckpointError, match=sentence):
        core.load(tmp_path)
