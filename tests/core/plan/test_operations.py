"""FLOPs against torch's own counter and the tracer, traffic against a count of what operations read and write."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from core.model.config import ModelConfig
from core.model.transformer import Transformer
from core.plan import (
    DEVICES,
    PRESETS,
    decode,
    parameters,
    plan,
    prefill,
    roofline,
    stored_weights,
    total_bytes,
    total_flops,
    trace_shapes,
)
from core.plan.operations import device_named, ideal_bytes
from tests.core.plan.configs import cases
from tests.thorough import part

PATHS: tuple[Literal["spelled_out", "fused"], ...] = ("spelled_out", "fused")


def test_flops_are_torchs_count() -> None:
    for case in cases(9, 60, 12):
        with torch.device("meta"):
            model = Transformer(case.config).eval()
            ids = torch.zeros(case.batch, case.source_len, dtype=torch.long)
            target = torch.zeros(case.batch, case.target_len, dtype=torch.long) if case.target_len else None
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(ids, target)
        assert total_flops(prefill(case.config, **case.lengths)) == counter.get_total_flops(), case


def test_flops_are_the_tracers_on_either_path() -> None:
    """torch 2.13 counts nothing for the fused kernel on CPU; the tracer does."""
    for i, case in enumerate(cases(10, 12)):
        for path in part(PATHS, 2, i):
            traced = trace_shapes(case.config, **case.lengths, path=path)
            assert total_flops(prefill(case.config, **case.lengths)) == traced.flops, (case, path)
            assert sum(step.flops for step in traced.steps) == traced.flops


def test_training_is_three_times_the_forward_pass() -> None:
    for case in cases(11, 20):
        traced = trace_shapes(case.config, **case.lengths, training=True)
        planned = plan(case.config, **case.lengths, training=True)
        assert traced.flops + traced.backward_flops == planned.step_flops == 3 * planned.flops, case
        full = plan(case.config, **case.lengths, training=True, recompute="full")
        head = sum(op.flops for op in full.prefill if not op.stack)
        assert full.step_flops == 4 * full.flops - head


class Traffic(TorchDispatchMode):
    """Bytes in and out of every operation that is not a view."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        outputs = [x for x in tree_leaves(out) if isinstance(x, Tensor)]
        if not func.is_view and func is not torch.ops.aten._unsafe_view.default:
            self.total += sum(x.numel() * x.element_size() for x in (*inputs, *outputs))
        return out


def traffic(work: Any, *shapes: tuple[int, ...]) -> int:
    tensors = [torch.empty(shape, dtype=torch.float16, device="meta") for shape in shapes]
    with Traffic() as counted:
        work(*tensors)
    return counted.total


@pytest.mark.parametrize(("b", "n", "keys", "d", "m"), [(2, 256, 256, 512, 8), (1, 50, 50, 64, 4), (3, 1, 256, 512, 8)])
def test_lesson_e7_rows(b: int, n: int, keys: int, d: int, m: int) -> None:
    """Exact FLOPs and traffic of each row, in 16 bits and without biases: prefill, then one decoded token."""
    config = ModelConfig(
        vocab_size=100,
        d_model=d,
        n_heads=m,
        d_ff=4 * d,
        n_decoder_layers=1,
        qkv_bias=False,
        out_bias=False,
        mlp_bias=False,
        activation="relu",
    )
    if n == 1:
        rows = decode(config, batch=b, cached=keys, dtype="float16", attention="eager")
    else:
        rows = prefill(config, batch=b, source_len=n, dtype="float16", attention="eager")
    by_name = {op.name: op for op in rows}
    tokens, head = b * n, d // m
    q, k = (b, m, n, head), (b, m, keys, head)
    cells = b * m * n * keys

    def row(*names: str) -> tuple[int, int]:
        return sum(by_name[name].flops for name in names), sum(by_name[name].bytes for name in names)

    three = 3 * traffic(lambda x, w: x @ w, (tokens, d), (d, d))
    assert row("attn q", "attn k", "attn v") == (6 * tokens * d * d, three)
    assert three == 2 * (6 * tokens * d + 3 * d * d)
    scores = traffic(lambda q, k: torch.bmm(q, k.mT), (b * m, n, head), (b * m, keys, head))
    assert row("attn scores") == (2 * b * n * keys * d, scores)
    assert scores == 2 * (b * n * d + b * keys * d + cells)
    softmax = traffic(lambda s: (s / 8).softmax(-1), (b, m, n, keys))
    assert row("attn scale", "attn softmax") == (0, softmax)
    assert softmax == 2 * 4 * cells  # the lesson's row has one
    mixed = traffic(torch.bmm, (b * m, n, keys), (b * m, keys, head))
    assert row("attn weights × v") == (2 * b * n * keys * d, mixed)
    assert row("attn o") == (2 * tokens * d * d, 2 * (2 * tokens * d + d * d))
    ffn = traffic(lambda x, up, down: (x @ up).relu() @ down, (tokens, d), (d, 4 * d), (4 * d, d))
    assert row("mlp up", "mlp activation", "mlp down") == (16 * tokens * d * d, ffn)
    assert ffn == 2 * (18 * tokens * d + 8 * d * d)
    layer = sum(op.flops for op in rows if op.stack)
    assert layer == 24 * tokens * d * d + 4 * b * n * keys * d
    assert q[2] == n and k[2] == keys


def test_flash_writes_no_map() -> None:
    """LLM-Viewer's flash writes its output as n × n, and reads keys for every query head."""
    config = PRESETS["llama-3-8b"].config
    n = 8192
    fused = next(
        op for op in prefill(config, source_len=n, dtype="float16", attention="flash") if op.name == "attn fused"
    )
    assert fused.writes == n * 4096 * 2
    assert fused.reads == n * 4096 * 2 + 2 * n * 1024 * 2
    assert fused.flops == 4 * 32 * n * n * 128
    eager = total_bytes(prefill(config, source_len=n, dtype="float16", attention="eager"))
    assert eager > 5 * total_bytes(prefill(config, source_len=n, dtype="float16", attention="flash"))


def test_half_of_a_causal_map_is_useful() -> None:
    for n in (1, 7, 100):
        rows = {op.name: op for op in prefill(PRESETS["gpt2"].config, source_len=n, attention="eager")}
        assert rows["attn scores"].useful_flops * 2 * n == rows["attn scores"].flops * (n + 1)
    free = {op.name: op for op in prefill(PRESETS["bert-base"].config, source_len=50, attention="eager")}
    assert free["attn scores"].useful_flops == free["attn scores"].flops


def test_useful_cells_are_the_masks() -> None:
    """What the rule of core.model.rules allows, counted cell by cell."""
    from core.model.rules import MaskRule

    for n in (1, 2, 5, 20):
        for window in (None, 1, 3, 19, 30):
            for decoder in (False, True):
                config = ModelConfig(
                    vocab_size=10,
                    d_model=8,
                    n_heads=1,
                    d_ff=8,
                    window=window,
                    n_encoder_layers=0 if decoder else 1,
                    n_decoder_layers=1 if decoder else 0,
                )
                row = next(op for op in prefill(config, source_len=n, attention="eager") if op.name == "attn scores")
                mask = MaskRule(1, n, n, causal=decoder, window=window).block(torch.arange(n), torch.arange(n))
                assert row.useful_flops == 2 * 8 * int(mask.sum())


def test_gpt2_at_1024() -> None:
    """2.91648e11, which fvcore and calflops put at 0.868 of it for a model that calls the fused kernel."""
    assert total_flops(prefill(PRESETS["gpt2"].config, source_len=1024)) == 291_648_307_200


def test_lesson_e10_each_term() -> None:
    """Encoder n², decoder m², cross-attention n·m, each with its measured FLOPs."""
    config, n, m = PRESETS["transformer-base"].config, 30, 20
    rows = {(op.stack, op.name): op for op in prefill(config, source_len=n, target_len=m, attention="eager")}
    assert rows["encoder", "attn scores"].flops == 2 * n * n * 512
    assert rows["decoder", "attn scores"].flops == 2 * m * m * 512
    assert rows["decoder", "cross attn scores"].flops == 2 * n * m * 512
    assert rows["decoder", "cross attn k"].flops == 2 * n * 512 * 512
    cached = decode(config, cached=m, memory_len=n)
    assert not {"cross attn k", "cross attn v"} & {op.name for op in cached}
    assert "cross attn q" in {op.name for op in cached}


def test_decoding_is_bound_by_memory() -> None:
    config = PRESETS["llama-3-8b"].config
    rows = decode(config, batch=32, cached=8192)
    intensity = total_flops(rows) / ideal_bytes(rows)
    assert round(intensity, 1) == 12.5
    fused = next(op for op in rows if op.name == "attn fused")
    assert fused.intensity == pytest.approx(config.n_heads / config.n_kv_heads, rel=0.01)  # whatever batch and length
    card = next(device for device in DEVICES if device.name == "A100 80 GB")
    assert round(card.ridge) == 153
    assert {bound.limit for bound in roofline(rows, card)} == {"memory"}
    text = prefill(config, source_len=4096, dtype="float16", attention="flash")
    assert {b.limit for b in roofline(text, card) if b.operation.name in ("mlp up", "attn q")} == {"compute"}


def test_encoders_do_not_decode() -> None:
    assert decode(PRESETS["bert-base"].config, cached=10) == ()
    assert prefill(PRESETS["gpt2"].config, source_len=10)[0].to_dict()["bytes"] > 0


@pytest.mark.parametrize(
    ("name", "batch", "n", "intensity"), [("minilm", 1, 13, 12.3), ("lesson-encoder", 32, 50, 241.6)]
)
def test_a_table_that_is_only_looked_up_is_not_read_whole(name: str, batch: int, n: int, intensity: float) -> None:
    """Lesson E8: encoders have no unembedding, so that their table of words is tied to nothing that would read it."""
    rows = prefill(PRESETS[name].config, batch=batch, source_len=n, dtype="bfloat16")
    assert round(total_flops(rows) / ideal_bytes(rows), 1) == intensity


def test_minilm_on_an_a100() -> None:
    card = next(device for device in DEVICES if device.name == "A100 80 GB")
    rows = prefill(PRESETS["minilm"].config, source_len=13, dtype="bfloat16")
    seconds = ideal_bytes(rows) / (card.gigabytes_per_second * 1e9)
    assert round(seconds * 1e6, 1) == 11.1
    assert round(100 * total_flops(rows) / ideal_bytes(rows) / card.ridge, 1) == 8.0


def test_every_weight_is_read_once_and_tables_by_row() -> None:
    for case in cases(51, 40):
        rows = prefill(case.config, **case.lengths, dtype="float16")
        count = stored_weights(case.config, dtype="float16")
        config = case.config
        looked_up = 0 if config.tied and config.head != "none" else count.each["", "token"]
        stacks = len(config.stacks)
        if config.has_position_table:  # learned or sinusoids, a table a stack
            places = config.n_ctx + (config.position_offset if config.position == "learned" else 0)
            looked_up += stacks * places * config.d_model * 2
        looked_up += stacks * config.n_token_types * config.d_model * 2
        once = sum(op.times * op.weights for op in rows if op.name != "embedding")
        assert once == count.total - looked_up, case
        assert all(op.weights == op.reads for op in rows if op.name == "embedding")


def test_an_encoder_is_not_read_again_for_each_word() -> None:
    config = PRESETS["transformer-base"].config
    rows = decode(config, cached=20, memory_len=30)
    encoder = parameters(config).encoder.total
    assert sum(op.times * op.weights for op in rows) < 2 * (parameters(config).total - encoder)


def test_cards_are_binary_and_what_the_driver_takes_is_not_offered() -> None:
    cards = {device.name: device for device in DEVICES}
    assert round(cards["RTX 4090"].mebibytes / 1024, 2) == 23.99
    assert cards["A100 80 GB"].mebibytes / 1024 == 80
    assert 79 < cards["A100 80 GB"].memory / (1 << 30) < 80
    for card in DEVICES:
        assert 0 < card.kept_mebibytes < card.mebibytes // 3 and card.memory_source
    assert device_named("rtx-4090") is cards["RTX 4090"] and device_named("abacus") is None
