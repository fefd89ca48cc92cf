"""The axes that hooks see: position before head, as in TransformerLens, for every kind of attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import core
from core.model.cache import Cache
from core.model.hooks import Hook, hook_points, hooked
from tests.core.conftest import KINDS, make_loaded
from tests.core.test_records import Custom

IDS = [3, 1, 4, 1, 5, 9, 2]
TARGET = [1, 7, 9]
GQA: dict[str, Any] = {"n_kv_heads": 2, "position": "rotary"}
LATENT: dict[str, Any] = {"position": "rotary", "rotary_fraction": 0.34, "kv_rank": 5, "q_rank": 7, "d_v": 3}
DISENTANGLED: dict[str, Any] = {
    "n_encoder_layers": 2,
    "position": "disentangled",
    "position_terms": ("c2p", "p2c"),
    "max_relative_distance": 12,
    "norm_order": "post",
    "distance_norm": True,
}
MODELS: dict[str, dict[str, Any]] = {
    "encoder": KINDS["encoder"],
    "decoder": {},
    "grouped": GQA,
    "encoder-decoder": KINDS["encoder-decoder"],
    "latent": {**LATENT, "qkv_bias": False},
    "disentangled": DISENTANGLED,
}


def silence(x: Tensor, head: int) -> Tensor:
    """As it is written for TransformerLens: x is [batch, pos, head, d_head]."""
    x[:, :, head, :] = 0
    return x


def silencing(point: str, head: int) -> Any:
    return Custom(point, lambda x: silence(x, head))


def traced(loaded: Any, *edits: Any) -> core.Trace:
    target = TARGET if loaded.config.kind == "encoder-decoder" else None
    return core.trace(loaded, ids=IDS, target_ids=target, interventions=edits)


def residual(run: core.Trace) -> Tensor:
    return run.last_residual(torch.arange(len(run.source if run.target is None else run.target)))


@pytest.mark.parametrize("model", MODELS)
def test_a_hook_for_transformer_lens_silences_one_head(model: str) -> None:
    loaded = make_loaded(**MODELS[model])
    plain = traced(loaded)
    for place, record in enumerate(plain.attention):
        if record.layer != 1:
            continue
        edit = core.edits.Ablate(record.stack, 1, 2, record.site)  # type: ignore[arg-type]
        by_hook, by_edit = traced(loaded, silencing(f"{record.name}.hook_z", 2)), traced(loaded, edit)
        assert torch.equal(residual(by_hook), residual(by_edit))
        assert not torch.allclose(residual(by_hook), residual(plain), atol=1e-3)
        z, before = by_hook.attention[place].z(), record.z()
        assert z[2].abs().max() == 0 and before[2].abs().max() > 0
        others = [0, 1, 3]
        torch.testing.assert_close(z[others], before[others], rtol=0, atol=1e-6)


def test_a_head_of_queries_keys_or_values_is_silenced_alone() -> None:
    """Four heads; two at a time share keys and values."""
    loaded = make_loaded(**GQA)
    name, before = "decoder.blocks.1.attn", traced(loaded).attention[1]

    def after(what: str, head: int) -> core.AttentionRecord:
        record = traced(loaded, silencing(f"{name}.hook_{what}", head)).attention[1]
        for other in "qkv":
            own, plain = getattr(record, other), getattr(before, other)
            touched = [head] if other == what else []
            kept = [i for i in range(len(own)) if i not in touched]
            assert torch.equal(own[kept], plain[kept]) and all(own[i].abs().max() == 0 for i in touched)
        return record

    uniform = torch.ones(len(IDS), len(IDS)).tril()
    uniform /= uniform.sum(-1, keepdim=True)
    for what, head, heads in (("q", 2, [2]), ("k", 1, [2, 3])):  # a score of 0 everywhere
        pattern = after(what, head).pattern()
        others = [i for i in range(4) if i not in heads]
        torch.testing.assert_close(pattern[heads], uniform.expand(len(heads), -1, -1))
        assert torch.equal(pattern[others], before.pattern()[others])
    record = after("v", 0)
    assert torch.equal(record.pattern(), before.pattern())
    assert record.z()[:2].abs().max() == 0 and torch.equal(record.z()[2:], before.z()[2:])


def test_before_and_after_the_rotation() -> None:
    """hook_q_pre and hook_k_pre have the order of hook_q and hook_k: a silenced head stays silent when it is rotated."""
    loaded = make_loaded(**GQA)
    for what, head in (("q", 3), ("k", 1)):
        record = traced(loaded, silencing(f"decoder.blocks.0.attn.hook_{what}_pre", head)).attention[0]
        x, plain = getattr(record, what), getattr(traced(loaded).attention[0], what)
        others = [i for i in range(len(x)) if i != head]
        assert x[head].abs().max() == 0 and torch.equal(x[others], plain[others])


def sizes_of(loaded: Any, batch: int, source: int, target: int) -> dict[str, dict[str, int]]:
    """The length of each axis, in the self-attention of each stack and in cross-attention."""
    c = loaded.config
    own = {
        "batch": batch, "head": c.n_heads, "kv_head": c.n_heads if c.kv_rank else c.n_kv_heads, "d_head": c.d_head,
        "d_model": c.d_model, "d_embed": c.embed_width, "d_ff": c.d_ff, "vocab": c.vocab_size,
        "d_rotary/2": c.d_rotary // 2,
    }  # fmt: skip

    def tokens(queries: int, keys: int) -> dict[str, int]:
        return own | {"pos": queries, "query": queries, "key": keys}

    last = target if c.kind == "encoder-decoder" else source
    return {
        "encoder": tokens(source, source),
        "decoder": tokens(last, last),
        "head": tokens(last, last),
        "cross_attn": tokens(last, source),
    }


@pytest.mark.parametrize("model", MODELS)
def test_the_axes_of_every_point_are_what_a_hook_sees(model: str) -> None:
    loaded = make_loaded(**MODELS[model])
    batch, source, target = 9, 7, 5
    lengths = sizes_of(loaded, batch, source, target)
    for named in lengths.values():  # no two axes of a tensor are of one length, so that no other order fits
        sizes = {named[axis] for axis in ("batch", "query", "head", "kv_head", "d_head", "d_model")}
        assert len(sizes) == 5 + (named["kv_head"] != named["head"])
    seen: dict[str, tuple[int, ...]] = {}
    points = hook_points(loaded.model)
    hooks: dict[str, Hook] = {
        name: lambda x, name=name: seen.__setitem__(name, tuple(x.shape))
        for name, point in points.items()
        if point.axes
    }
    ids = torch.randint(0, 61, (batch, source), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode(), hooked(loaded.model, hooks):
        loaded.model(ids, ids[:, :target] if loaded.config.kind == "encoder-decoder" else None)
    assert seen.keys() == hooks.keys()
    for name, shape in seen.items():
        axes = dict(lengths["cross_attn" if ".cross_attn." in name else name.split(".")[0]])
        if name.endswith((".hook_v", ".hook_z")):
            axes["d_head"] = loaded.config.value_width
        wanted = tuple(axes[axis] for axis in points[name].axes)
        if name.endswith(("hook_positions", "hook_angles", "hook_position")):  # those of all texts may be one row
            shape = (batch, *shape[1:])
        assert shape == wanted, (name, points[name].axes)
    attention = next(name for name in seen if name.endswith(".hook_z"))
    assert points[attention].axes == ("batch", "query", "head", "d_head")


@pytest.mark.parametrize("model", ["decoder", "grouped", "latent"])
def test_the_axes_of_a_step_with_a_cache(model: str) -> None:
    loaded = make_loaded(**MODELS[model])
    config, decoder = loaded.config, loaded.model.decoder
    assert decoder is not None
    ids = torch.tensor([IDS, IDS[::-1]])
    seen: dict[str, Tensor] = {}
    names = [f"decoder.blocks.1.attn.hook_{what}" for what in "qkvz"]
    with torch.inference_mode():
        cache = Cache(config)
        decoder(ids[:, :5], cache=cache)
        with hooked(loaded.model, {name: (lambda x, name=name: seen.__setitem__(name, x)) for name in names}):
            decoder(ids[:, 5:], cache=cache)
    kv_heads = config.n_heads if config.kv_rank else config.n_kv_heads
    q, k, v, z = (seen[name] for name in names)
    assert q.shape == (2, 2, 4, 6) and z.shape == (2, 2, 4, config.value_width)
    assert k.shape == (2, 7, kv_heads, 6) and v.shape == (2, 7, kv_heads, config.value_width)
    whole = core.trace(loaded, ids=IDS)
    for name, x in seen.items():  # activation() has the order of the hook, [pos, head, d_head]
        at = range(5, 7) if name.endswith(("q", "z")) else range(7)
        torch.testing.assert_close(x[0], whole.activation(name, at), rtol=0, atol=1e-5)


def test_generation_writes_what_a_text_with_the_silenced_head_would(tiny: Any) -> None:
    """The hook sees one position a step, and silences the head in each."""
    loaded = tiny(**GQA)
    points: dict[str, Hook] = {f"decoder.blocks.{i}.attn.hook_z": lambda z: silence(z, 1) for i in range(2)}
    ids = torch.tensor([IDS])
    decoder = loaded.model.decoder
    with torch.inference_mode(), hooked(loaded.model, points):
        whole = decoder(ids)
        cache = Cache(loaded.config)
        steps = torch.cat([decoder(ids[:, i : i + 1], cache=cache) for i in range(len(IDS))], dim=1)
    edits = [core.edits.Ablate("decoder", i, 1) for i in range(2)]
    run = core.trace(loaded, ids=IDS, interventions=edits)
    torch.testing.assert_close(steps, whole, rtol=0, atol=1e-5)
    torch.testing.assert_close(steps[0], residual(run)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("point", ["hook_q", "hook_k", "hook_v", "hook_z", "hook_q_pre", "hook_k_pre"])
def test_a_hook_that_reads_has_a_gradient_and_changes_nothing(point: str) -> None:
    loaded = make_loaded(**GQA)
    seen: list[Tensor] = []

    def read(x: Tensor) -> None:
        x.retain_grad()
        seen.append(x)

    ids = torch.tensor([IDS])
    with torch.inference_mode():
        plain = loaded.model(ids)
    for weight in loaded.model.parameters():
        weight.requires_grad_()
    with torch.enable_grad(), hooked(loaded.model, {f"decoder.blocks.0.attn.{point}": read}):
        logits = loaded.model(ids)
        logits[0, -1].max().backward()
    assert torch.equal(logits.detach(), plain)
    assert seen[0].grad is not None and seen[0].grad.shape == seen[0].shape and seen[0].grad.abs().max() > 0


def test_what_is_kept_is_a_view_of_what_was_computed() -> None:
    """Records have [head, pos, d_head], and a recorded run copies neither q nor k for it."""
    loaded = make_loaded()
    stored: dict[str, int] = {}
    names = [f"decoder.blocks.0.attn.hook_{what}" for what in "qk"]
    with hooked(loaded.model, {name: (lambda x, name=name: stored.__setitem__(name, x.data_ptr())) for name in names}):
        record = core.trace(loaded, ids=IDS).attention[0]
    assert record.batch_q.shape == (1, 4, 7, 6)
    assert [record.batch_q.data_ptr(), record.batch_k.data_ptr()] == [stored[name] for name in names]
