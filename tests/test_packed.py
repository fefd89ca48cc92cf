"""Weights in the bits of their file: the same products as float32, within the bound that is stated, and never in their place once they differ."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import core
from benchmarks.packed import FORMS, MOST_ROWS, ROUNDING, PackedLinear, PackedWeight, pack, unpack, with_packed
from benchmarks.packed import build as kernels
from benchmarks.packed.build import kernel
from core.checkpoints import Loaded

pytestmark = pytest.mark.skipif(kernel() is None, reason="this machine has no compiler")


def in_form(form: str, rows: int, width: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random weights as the bytes of a file, uint8 [rows, bytes], and as float32 [rows, width], by GGUF's description."""
    random = np.random.default_rng(seed)
    blocks = rows * width // 32
    scale = (random.standard_normal(blocks) * 0.01).astype(np.float16)
    low = (random.standard_normal(blocks) * 0.05).astype(np.float16)
    if form == "Q8_0":
        q = random.integers(-128, 128, (blocks, 32)).astype(np.int8)
        parts = [scale.view(np.uint8).reshape(-1, 2), q.view(np.uint8)]
        w = scale.astype(np.float32)[:, None] * q
    else:
        q = random.integers(0, 16, (blocks, 32)).astype(np.uint8)
        parts = [scale.view(np.uint8).reshape(-1, 2), low.view(np.uint8).reshape(-1, 2), q[:, :16] | q[:, 16:] << 4]
        if form == "Q4_0":
            del parts[1]
            w = scale.astype(np.float32)[:, None] * (q.astype(np.float32) - 8)
        else:
            w = scale.astype(np.float32)[:, None] * q + low.astype(np.float32)[:, None]
    data = np.concatenate(parts, axis=1).reshape(rows, -1)
    return torch.from_numpy(data), torch.from_numpy(w.astype(np.float32).reshape(rows, width))


def packed_of(form: str, rows: int, width: int, seed: int = 0) -> tuple[PackedWeight, Tensor]:
    data, weight = in_form(form, rows, width, seed)
    packed = pack(form, data)
    assert packed is not None
    return packed, weight


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 11, 12, 13, 24, 37, 64])
def test_product_is_that_of_float32_within_the_bound(form: str, n: int) -> None:
    for rows, width in ((8, 32), (24, 576), (192, 1536)):
        packed, weight = packed_of(form, rows, width, seed=n)
        x = torch.randn(n, width, generator=torch.Generator().manual_seed(n))
        exact = x.double() @ weight.double().T
        bound = ROUNDING * x.double().abs().sum(-1, keepdim=True) * weight.double().abs().amax(-1)
        assert ((packed.product(x).double() - exact).abs() <= bound).all()


@pytest.mark.parametrize("form", FORMS)
def test_every_weight_is_where_it_belongs(form: str) -> None:
    packed, weight = packed_of(form, 40, 96)
    each = packed.product(torch.eye(96)).T
    alone = torch.stack([packed.product(row) for row in torch.eye(96)], dim=1)
    assert torch.allclose(each, weight, rtol=0, atol=2e-7)
    assert torch.allclose(alone, weight, rtol=0, atol=2e-7)


@pytest.mark.parametrize("form", FORMS)
def test_the_package_of_the_format_reads_the_same(form: str) -> None:
    quants = pytest.importorskip("gguf.quants")
    kinds = pytest.importorskip("gguf.constants").GGMLQuantizationType
    numbers = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    data = quants.quantize(numbers, kinds[form])
    packed = pack(form, torch.from_numpy(data))
    assert packed is not None
    weight = torch.from_numpy(quants.dequantize(data, kinds[form]))
    assert torch.allclose(packed.product(torch.eye(64)).T, weight, rtol=0, atol=2e-6)


def test_what_cannot_be_packed_is_left_as_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = in_form("Q4_1", 16, 64)
    assert pack("Q4_K", data) is None
    assert pack("Q4_1", data[:12]) is None
    assert pack("Q8_0", data) is None
    not_finite = data.clone()
    not_finite[3, :2] = torch.tensor([0, 0x7C], dtype=torch.uint8)  # infinity
    assert pack("Q4_1", not_finite) is None
    monkeypatch.setenv("CC", "no-compiler-of-this-name")
    kernels.kernel.cache_clear()
    try:
        assert pack("Q4_1", data) is None
    finally:
        monkeypatch.undo()
        kernels.kernel.cache_clear()


def layer(bias: bool = False) -> PackedLinear:
    """A layer whose packed weight is NOT its float32 one, so that an output shows which was used."""
    packed, weight = packed_of("Q4_1", 16, 64)
    linear = nn.Linear(64, 16, bias=bias).requires_grad_(False)
    linear.weight.copy_(weight + 1)
    return PackedLinear(linear, packed)


def uses_packed(module: PackedLinear, x: Tensor) -> bool:
    return not torch.allclose(module(x), nn.functional.linear(x, module.weight, module.bias), atol=1e-3)


def test_few_rows_read_the_packed_weight_and_many_the_other() -> None:
    module = layer(bias=True)
    assert uses_packed(module, torch.ones(MOST_ROWS, 64))
    assert uses_packed(module, torch.ones(2, 3, 128)[..., ::2])
    assert not uses_packed(module, torch.ones(MOST_ROWS + 1, 64))
    assert module(torch.ones(0, 64)).shape == (0, 16)


def test_a_weight_that_is_written_to_is_read_again() -> None:
    x = torch.ones(1, 64)
    written, replaced, trained = layer(), layer(), layer()
    written.weight.mul_(2)
    replaced.weight = nn.Parameter(replaced.weight.clone(), requires_grad=False)
    trained.weight.requires_grad_()
    for module in (written, replaced, trained):
        assert not uses_packed(module, x)
    trained.weight.requires_grad_(False)
    assert not uses_packed(trained, x), "it may have been trained meanwhile"
    double = layer().double()
    assert not uses_packed(double, x.double())


def test_gradients_flow_through_the_float32_weight() -> None:
    module, x = layer(), torch.ones(1, 64, requires_grad=True)
    module(x).sum().backward()
    assert x.grad is not None
    assert torch.allclose(x.grad[0], module.weight.sum(0))


def test_a_copy_reads_float32_and_leaves_the_original_as_it_is() -> None:
    module = layer()
    other = copy.deepcopy(module)
    assert not uses_packed(other, torch.ones(1, 64)), "a copy is made to be changed"
    assert uses_packed(module, torch.ones(1, 64))
    assert other.state_dict().keys() == nn.Linear(64, 16, bias=False).state_dict().keys()


def both(n_layers: int = 2) -> tuple[Loaded, Loaded]:
    """One small model of Llama's kind twice: with float32 weights, and with the same ones packed."""
    config = core.ModelConfig(
        vocab_size=128,
        d_model=64,
        n_heads=4,
        n_kv_heads=2,
        d_ff=96,
        n_decoder_layers=n_layers,
        n_ctx=256,
        position="rotary",
        norm="rms",
        activation="silu",
        gated=True,
        tied=False,
    )
    plain = core.build(config)
    packed = {}
    with torch.no_grad():
        for seed, (name, module) in enumerate(plain.model.named_modules()):
            if isinstance(module, nn.Linear):
                packed[name], weight = packed_of("Q4_1", *module.weight.shape, seed=seed)
                module.weight.copy_(weight)
    other = copy.deepcopy(plain)
    with_packed(other.model, packed)
    return plain, other


def test_a_trace_of_packed_weights_is_that_of_float32() -> None:
    plain, packed = both()
    ids = list(range(1, 30))
    edits = [core.edits.ScaleHead(-2.0, "decoder", 0, 1)]
    for interventions in ([], edits):
        runs = [core.trace(each, ids=ids, interventions=interventions) for each in (plain, packed)]
        for mine, theirs in zip(runs[0].attention, runs[1].attention, strict=True):
            assert torch.allclose(mine.pattern(), theirs.pattern(), rtol=0, atol=1e-5)
        one, two = (run.activation("decoder.hook_final") for run in runs)
        assert torch.allclose(one, two, rtol=1e-4, atol=1e-4)
        # The pattern is that of the pass that ran: times its own values it gives its own z.
        record = runs[1].attention[1]
        values = record.values().repeat_interleave(2, dim=1)[0]
        z = runs[1].activation("decoder.blocks.1.attn.hook_z").transpose(0, 1)
        assert torch.allclose(record.pattern() @ values, z, atol=1e-5)


def test_both_write_the_same() -> None:
    plain, packed = both()
    texts = [core.generate(each, ids=[5, 6, 7], max_tokens=12, stop=())[0].ids for each in (plain, packed)]
    assert texts[0] == texts[1]


def test_unpacked_layers_read_float32() -> None:
    plain, packed = both(1)
    unpack(packed.model)
    ids = torch.tensor([[3, 4, 5]])
    with torch.inference_mode():
        assert torch.equal(plain.model(ids), packed.model(ids))
