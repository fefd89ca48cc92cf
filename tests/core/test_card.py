"""Facts that a graphics card has to show as well: `pytest -m cuda` on one. The processor shows the same at every run."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import core
from benchmarks.card import parity
from benchmarks.card.clock import peak_bytes
from benchmarks.card.tiles import record_of
from core.checkpoints import Loaded
from core.device import MiB, dtype_name, oom_guard
from core.model import rules
from core.model.rules import MaskRule, ScoreRule, attend, attend_per_group
from core.patching import atlas
from core.plan import chunked_run_bytes, run_bytes
from core.run.chunks import Chunks
from core.run.recorder import HELD_BYTES
from tests.thorough import THOROUGH

SHAPE: dict[str, Any] = {
    "vocab_size": 97,
    "d_model": 64,
    "n_heads": 4,
    "n_kv_heads": 2,
    "d_ff": 96,
    "n_decoder_layers": 3,
    "position": "rotary",
}
ABOVE = 1.02  # of what was predicted: scratch space inside a kernel


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> torch.device:
    """The processor, or the card; without one, a reason to skip."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA card on this machine")
    return torch.device(request.param)


@pytest.fixture(params=[torch.float32, torch.bfloat16, torch.float16], ids=dtype_name)
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


def built(device: torch.device, dtype: torch.dtype = torch.float32, **config: Any) -> Loaded:
    return core.build(core.ModelConfig(**(SHAPE | config)), seed=1, device=device, dtype=dtype)


def test_a_trace_changes_nothing_and_shows_what_the_pass_did(device: torch.device, dtype: torch.dtype) -> None:
    loaded = built(device, dtype)
    ids = [i * 7 % 97 for i in range(211)]
    with torch.inference_mode():
        plain = loaded.model.last_residual(torch.tensor([ids], device=device))
    run = core.trace(loaded, ids=ids)
    everywhere = torch.arange(len(ids), device=device)
    assert torch.equal(run.last_residual(everywhere), plain)
    seen: dict[str, torch.Tensor] = {}
    hooks = {
        name: lambda x, name=name: seen.__setitem__(name, x)
        for name in core.hook_points(loaded.model)
        if name.endswith("hook_pattern")
    }
    with torch.inference_mode(), core.hooked(loaded.model, hooks):
        loaded.model.last_residual(torch.tensor([ids], device=device))
    assert len(seen) == 3
    # In steps each layer rounds as its format does, so that what reaches the next one differs by so much.
    bound = 1e-5 if dtype == torch.float32 else 8 * torch.finfo(dtype).eps
    for record in run.attention:
        pattern = record.pattern()
        assert pattern.sum(-1).sub(1).abs().max() <= 1e-5
        assert (pattern - seen[f"{record.name}.hook_pattern"][0].float()).abs().max() <= bound


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"position": "alibi"},
        {"position": "relative", "norm": "rms"},
        {"window": 64, "gated": True},
        {"n_decoder_layers": 0, "n_encoder_layers": 2, "position": "learned", "n_ctx": 1500, "head": "mlm"},
    ],
    ids=lambda config: " ".join(map(str, config.values())) or "rotary",
)
@pytest.mark.parametrize("n", [300, 1500])
def test_a_trace_takes_no_more_than_was_predicted(
    device: torch.device, dtype: torch.dtype, config: dict[str, Any], n: int
) -> None:
    if device.type == "cpu" and not THOROUGH:
        n //= 4
    loaded = built(device, dtype, **config)
    shape = loaded.config
    last = n * shape.d_model * dtype.itemsize
    hold = run_bytes(shape, source_len=n, dtype=dtype).values + last <= HELD_BYTES
    predicted = run_bytes(shape, source_len=n, dtype=dtype, keep_values=hold)
    given = [*loaded.model.parameters(), *loaded.model.buffers()]
    taken = peak_bytes(lambda: core.trace(loaded, ids=[0] * n), device, given)
    assert taken <= ABOVE * predicted.total
    assert taken > predicted.total / 2  # what was measured is a run, and not nothing


@pytest.mark.parametrize("position", ["rotary", "learned"])
def test_heads_of_a_group_in_turns_take_no_more_than_was_predicted(
    position: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a card for float32, taken here by the processor."""
    monkeypatch.setattr(rules, "shares_keys", lambda q, k: q.shape[1] == k.shape[1])
    monkeypatch.setattr(rules, "supports_is_causal", lambda q, k, v: True)
    loaded = built(torch.device("cpu"), dtype, position=position, n_ctx=700)
    given = [*loaded.model.parameters(), *loaded.model.buffers()]
    taken = peak_bytes(lambda: core.trace(loaded, ids=[0] * 700), loaded.device, given)
    assert taken <= ABOVE * run_bytes(loaded.config, source_len=700, dtype=dtype).total


def test_an_atlas_reads_what_a_card_ran(device: torch.device) -> None:
    """Its rows are of the processor, wherever the model ran."""
    table = atlas.table_of(core.trace(built(device), ids=[i * 7 % 97 for i in range(60)]), text=0)
    assert table.num_rows == 3 * 4
    assert all(0 <= entropy <= 6 for entropy in table["entropy"].to_pylist())


@pytest.mark.parametrize("n_texts", [1, 2])
def test_heads_of_a_group_in_turns_give_what_copies_of_their_keys_give(device: torch.device, n_texts: int) -> None:
    n, d_head = 333, 16
    q = torch.randn(n_texts, 6, n, d_head, device=device)
    k, v = (torch.randn(n_texts, 2, n, d_head, device=device) for _ in range(2))
    keys, values = (x.repeat_interleave(3, dim=1) for x in (k, v))
    expected = F.scaled_dot_product_attention(q, keys, values, is_causal=True, scale=0.4)
    assert (attend_per_group(q, k, v, 0.4) - expected).abs().max() <= 1e-5


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA card on this machine")
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_the_last_rows_of_a_very_long_text_are_the_textbook_s(kv_heads: int) -> None:
    """One of torch's kernels was wrong beyond 65,536 tokens, without an error."""
    n, d_head = 70_000, 64
    q = torch.randn(1, 2, n, d_head, device="cuda")
    k, v = (torch.randn(1, kv_heads, n, d_head, device="cuda") for _ in range(2))
    rule = ScoreRule(MaskRule(2, n, n, causal=True), scale=d_head**-0.5)
    found = attend(q, k, v, rule)
    for row in (0, 1_000, 65_535, 65_536, n - 1):
        weights = (q[0, :, row : row + 1] @ k[0, :, : row + 1].mT * rule.scale).softmax(-1)
        assert (found[0, :, row] - (weights @ v[0, :, : row + 1])[:, 0]).abs().max() <= 1e-5


@pytest.mark.parametrize("wide", [True, False], ids=["float32", "bfloat16"])
def test_keys_that_heads_share_are_not_copied(device: torch.device, wide: bool) -> None:
    """Eight query heads over one key head: beside what comes out, there is less than a copy of keys and values for each head."""
    n, heads, d_head = 2048, 8, 64
    dtype = torch.float32 if wide else torch.bfloat16
    q = torch.randn(1, heads, n, d_head, device=device, dtype=dtype)
    k, v = (torch.randn(1, 1, n, d_head, device=device, dtype=dtype) for _ in range(2))
    rule = ScoreRule(MaskRule(heads, n, n, causal=True), scale=d_head**-0.5)

    def work() -> None:
        with torch.inference_mode():
            attend(q, k, v, rule)

    taken = peak_bytes(work, device, [q, k, v]) - sum(tensor.nbytes for tensor in (q, k, v))
    log_sum_exp = heads * n * 4
    assert taken - q.nbytes - log_sum_exp < heads * k.nbytes + MiB // 2


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *((name, "cpu") for name in parity.SOME),
        *(pytest.param(name, "cuda", marks=pytest.mark.cuda) for name in parity.names()),
    ],
    indirect=["device"],
)
def test_logits_are_those_of_transformers_in_every_format(name: str, device: torch.device, dtype: torch.dtype) -> None:
    error = parity.error_of(name, device, dtype)
    assert error.within(dtype), error


def test_what_does_not_fit_is_refused_and_not_a_fault(device: torch.device) -> None:
    with (
        pytest.raises(core.errors.TooLarge, match=r"^This needed .* (more|memory), and .* are free\."),
        oom_guard(device, "This"),
    ):
        torch.empty(1 << 46, device=device)
    assert torch.ones(3, device=device).sum() == 3  # the device still works


def test_a_tile_of_a_very_long_text_is_exact_and_small(device: torch.device) -> None:
    n, side = 20_000 if device.type == "cpu" and not THOROUGH else 100_000, 256
    record = record_of(n, device, heads=2)
    given = [record.batch_q, record.batch_k]
    for start in (0, (n - side) // 2, n - side):
        window = slice(start, start + side)
        held: list[torch.Tensor] = []
        taken = peak_bytes(lambda w=window, held=held: held.append(record.pattern(1, w, w)), device, given)
        assert (
            taken - sum(tensor.nbytes for tensor in given) <= 256 * MiB
        )  # the whole map of 100,000 tokens takes 37 GiB
        queries = record.q[1, window].double()
        scores = queries @ record.k[1].double().T / 8
        hidden = torch.arange(n, device=device) > torch.arange(start, start + side, device=device)[:, None]
        expected = scores.masked_fill(hidden, float("-inf")).softmax(-1)[:, window]
        assert (held[-1][0].double() - expected).abs().max() <= 1e-6


@pytest.mark.parametrize("on_host", [False, True])
def test_a_run_in_chunks_is_the_run_in_one_go(
    device: torch.device, on_host: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = built(device, window=50, windowed_layers=(1,))
    ids = [i * 7 % 97 for i in range(211)]
    whole = core.trace(loaded, ids=ids)
    needed = chunked_run_bytes(loaded.config, rows=60, source_len=211, on_host=on_host)
    monkeypatch.setattr(sys.modules["core.run.trace"], "plan_chunks", lambda *_: Chunks(60, on_host, needed.total))
    run = core.trace(loaded, ids=ids)
    every = torch.arange(len(ids), device=device)
    torch.testing.assert_close(run.last_residual(every), whole.last_residual(every), rtol=1e-4, atol=1e-5)
    for one, other in zip(run.attention, whole.attention, strict=True):
        assert {t.device.type for t in (one.q, one.k, one.v)} == {"cpu" if on_host else device.type}
        assert one.pattern().device.type == one.z().device.type == device.type
        torch.testing.assert_close(one.pattern(), other.pattern(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(one.z(), other.z(), rtol=1e-4, atol=1e-5)
        assert one.thumbnail(16).values.shape == (4, 16, 16)
        receipt = one.receipt()
        assert receipt.fused_error is not None and receipt.fused_error < 1e-4
