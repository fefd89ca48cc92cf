"""Adapters: their numbers, and what a step of training them keeps, beside real ones in a real model under autograd."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.errors import ConfigError, HeadlightError
from core.model.config import ModelConfig
from core.model.transformer import Transformer, to_dtype
from core.plan import PRESETS, Workload, live_peak_bytes, memory_plan, parameters, plan, stored_weights
from core.plan.live_memory import MeasurementSetup, measure
from core.plan.tracing import LiveBytes, attending, ran
from core.plan.training import adapter_numbers
from tests.core.plan.configs import cases
from tests.thorough import part

LLAMA = PRESETS["llama-3-8b"].config
GPT2 = PRESETS["gpt2"].config
ROTARY: dict[str, Any] = {
    "position": "rotary",
    "norm": "rms",
    "gated": True,
    "activation": "silu",
    "qkv_bias": False,
    "out_bias": False,
    "mlp_bias": False,
}
SHAPES: list[dict[str, Any]] = [
    {"n_decoder_layers": 2},
    {"n_decoder_layers": 3, "n_kv_heads": 2, **ROTARY, "tied": False},
    {"n_decoder_layers": 2, "window": 8, "qk_norm": True, **ROTARY},
    {"n_encoder_layers": 3, "head": "none"},
    {"n_encoder_layers": 2, "n_decoder_layers": 2},
    {"n_encoder_layers": 2, "n_decoder_layers": 2, "position": "relative", "norm": "rms", "activation": "relu"},
]


class Adapted(nn.Module):
    """W x + 2 B A x, where W is frozen (Hu et al. 2021, §4.1); A and B have its format."""

    def __init__(self, frozen: nn.Linear, rank: int) -> None:
        super().__init__()
        self.frozen = frozen
        self.a = nn.Parameter(torch.zeros(rank, frozen.in_features, dtype=frozen.weight.dtype))
        self.b = nn.Parameter(torch.zeros(frozen.out_features, rank, dtype=frozen.weight.dtype))

    @property
    def weight(self) -> Tensor:
        return self.frozen.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.frozen(x) + 2.0 * F.linear(F.linear(x, self.a), self.b)


def with_adapters(
    config: ModelConfig, rank: int, dtype: torch.dtype = torch.float32
) -> tuple[Transformer, list[nn.Parameter]]:
    """A model with an adapter in place of every matrix of its blocks, and what is trained of it."""
    model = to_dtype(Transformer(config), dtype)
    model.requires_grad_(False)
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and ".blocks." in name:
            place, _, letter = name.rpartition(".")
            setattr(model.get_submodule(place), letter, Adapted(module, rank))
    return model, [parameter for parameter in model.parameters() if parameter.requires_grad]


def step(config: ModelConfig, work: Workload) -> tuple[int, int]:
    """The bytes that autograd keeps of the second of two steps, and the most that was alive in either."""
    model, mine = with_adapters(config, work.rank, getattr(torch, str(work.dtype)))
    optimizer = torch.optim.AdamW(mine, fused=True)
    ids = torch.zeros(work.batch, work.source_len, dtype=torch.long)
    target = torch.zeros(work.batch, work.target_len, dtype=torch.long) if work.target_len else None
    kept = 0
    with LiveBytes() as live, attending(model, ran(config, work)):
        live.track(*model.parameters(), *model.buffers(), ids, target)
        for _ in range(2):
            before = live.live
            out = model(ids, target)
            kept = live.live - before - out.untyped_storage().nbytes() + ids.nbytes
            loss = F.cross_entropy(out.flatten(0, 1), torch.zeros(out[..., 0].numel(), dtype=torch.long))
            del out
            loss.backward()
            optimizer.step()
        return kept + (0 if target is None else target.nbytes), live.peak


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_real_step_keeps_what_is_foretold(shape: dict[str, Any], dtype: str) -> None:
    """An upper bound, and a close one. Where the processor's kernel gives z in another order than q, it is kept once more."""
    config = ModelConfig(vocab_size=97, d_model=64, n_heads=4, d_ff=256, n_ctx=300, **shape)
    ways = (("flash", 2, 64, 8), ("flash", 1, 150, 16), ("eager", 1, 150, 16), ("eager", 2, 64, 8))
    for attention, batch, n, rank in part(ways, 2, SHAPES.index(shape)):
        target = n // 2 if config.kind == "encoder-decoder" else 0
        way: dict[str, Any] = {"training": True, "rank": rank, "attention": attention, "dtype": dtype}
        work = Workload(batch=batch, source_len=n, target_len=target, **way)
        work = replace(work, attention=ran(config, work))
        kept, peak = step(config, work)
        told = memory_plan(config, work)
        copied = config.n_decoder_layers * batch * n * 64 * work.by if config.position == "rotary" else 0
        of_this_kernel = told.activations + (copied if work.attention == "flash" else 0)
        assert kept <= of_this_kernel <= 1.15 * kept, (config, work)
        assert told.activations <= 1.15 * kept
        # This step has no 32-bit copies, and averages as wide as its weights.
        absent = 0 if dtype == "float32" else told.masters + told.optimizer // 2
        assert peak <= told.total - absent + 2 * copied <= 1.6 * peak


def test_every_adapter_is_counted_as_real_ones_are() -> None:
    for case in cases(51, 20):
        for rank in (1, 8):
            _, mine = with_adapters(case.config, rank)
            assert adapter_numbers(case.config, rank) == sum(parameter.numel() for parameter in mine), case
    # rank · (in + out) of q, k, v, o, gate, up and down: 32 layers
    ends = 8192 + 2 * (4096 + 1024) + 8192 + 3 * (4096 + 14_336)
    assert adapter_numbers(LLAMA, 16) == 32 * 16 * ends == 41_943_040


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_only_adapters_have_gradients_masters_and_an_optimizer(dtype: str) -> None:
    for case in cases(52, 12):
        options: dict[str, Any] = {**case.lengths, "dtype": dtype, "training": True}
        full, lora = (memory_plan(case.config, **options, rank=rank) for rank in (0, 4))
        by, numbers = (4 if dtype == "float32" else 2), adapter_numbers(case.config, 4)
        assert lora.weights - full.weights == numbers * by
        assert (lora.gradients, lora.optimizer) == (numbers * by, 8 * numbers)
        assert lora.masters == (0 if dtype == "float32" else 4 * numbers)
        assert full.total - full.activations - full.transient >= (12 + by) * parameters(case.config).total
        wider = memory_plan(case.config, **options, rank=8)
        assert wider.total > lora.total
        assert lora.total == sum(value for name, value in lora.to_dict().items() if name != "total")


def test_a_frozen_base_may_be_quantized() -> None:
    """QLoRA: base in NF4, adapters in 16 bit with 32-bit masters: 16 bytes each with AdamW."""
    options: dict[str, Any] = {"source_len": 4096, "batch": 2, "dtype": "float16", "training": True, "rank": 16}
    plain, small = (memory_plan(LLAMA, **options, recompute="full", weight_dtype=name) for name in (None, "nf4"))
    base = stored_weights(LLAMA, dtype="float16", weight_dtype="nf4").total
    assert small.weights == base + 2 * 41_943_040
    assert small.weights - base + small.masters + small.gradients + small.optimizer == 16 * 41_943_040
    assert round(plain.total / 2**30, 2) == 23.58 and round(small.total / 2**30, 2) == 14.24
    # A matrix is unpacked where it is multiplied: that is another 112 MiB wherever a layer is the widest moment.
    short: dict[str, Any] = {**options, "source_len": 10, "batch": 1}
    packed, full = (memory_plan(LLAMA, **short, weight_dtype=name).transient for name in ("nf4", None))
    assert packed - full <= 4096 * 14_336 * 2 and packed > full


def test_flops_of_a_step() -> None:
    """Frozen weights have no gradient: of their products one goes back, not two."""
    options: dict[str, Any] = {"source_len": 100, "training": True}
    forward = plan(GPT2, source_len=100).step_flops
    full, lora = plan(GPT2, **options).step_flops, plan(GPT2, **options, rank=8).step_flops
    assert full == 3 * forward
    assert 2 * forward < lora < full
    again = plan(GPT2, **options, rank=8, recompute="full").step_flops
    assert lora < again < lora + forward + 6 * 100 * adapter_numbers(GPT2, 8)


def test_refusals() -> None:
    with pytest.raises(ConfigError, match=r"rank \(8\) is of adapters that are trained"):
        memory_plan(GPT2, source_len=5, rank=8)
    with pytest.raises(ConfigError, match=r"rank \(-1\) must be at least 1, or 0"):
        memory_plan(GPT2, source_len=5, training=True, rank=-1)
    with pytest.raises(ConfigError, match=r"unless rank gives it adapters"):
        memory_plan(GPT2, source_len=5, training=True, weight_dtype="nf4")
    with pytest.raises(HeadlightError, match=r"trains all weights: choose a rank of 0"):
        measure(MeasurementSetup(GPT2, Workload(source_len=5, training=True, rank=8)), 1 << 34)
    with pytest.raises(ConfigError, match=r"leave rank \(8\) at 0"):
        live_peak_bytes(GPT2, Workload(source_len=5, training=True, rank=8))
