"""Heads silenced in one batch, and two runs side by side: the same numbers as one by one and by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import core
from core import device
from core.checkpoints import Loaded
from core.errors import StaleTrace, TextError, TooLarge
from core.model.text import from_ids, pad
from core.patching import edited_runs
from tests.core.conftest import KINDS, make_loaded
from tests.core.test_invariants import SAMPLE, name
from tests.core.test_records import Custom, doubled, texts
from tests.thorough import part

Tiny = Callable[..., Loaded]
IDS = [3, 1, 4, 1, 5, 9, 2, 6]


@pytest.mark.parametrize("config", part(SAMPLE[::6]), ids=name)
@pytest.mark.parametrize("batch_bytes", [1 << 28, 1])
def test_a_batch_of_silenced_heads_is_what_each_alone_gives(
    config: dict[str, Any], batch_bytes: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr(edited_runs, "BATCH_BYTES", batch_bytes)
    loaded = make_loaded(**config)
    sources, targets = texts(loaded.config.kind, "right", random.Random(5))
    stack = loaded.config.stacks[0][0]
    edits: Any = (core.edits.Temperature(0.7), Custom(f"{stack}.blocks.1.attn.hook_pattern", lambda p: p.flip(-1)))
    run = core.trace_tokens(loaded, sources, targets, edits).text(1)
    told: list[tuple[int, int]] = []
    found = run.ablate_heads(watch=lambda done, of: told.append((done, of)))
    n = len(run.attention) * 4
    assert len(found.heads) == n and told[-1] == (n, n) and len(told) == (1 if batch_bytes > 1 else n)
    tokens = run.source if run.target is None else run.target
    real = [i for i, padding in enumerate(tokens.padding) if not padding]
    encoder = loaded.config.kind == "encoder"
    assert (found.position is None) == encoder and (encoder or found.position == real[-1])
    for effect in found.heads:
        cut = core.edits.Ablate(effect.stack, effect.layer, effect.head, effect.site)  # type: ignore[arg-type]
        single = core.trace_tokens(loaded, sources, targets, (*edits, cut)).text(1)
        if encoder:
            a, b = (r.last_residual(torch.tensor(real))[1].mean(0) for r in (run, single))
            assert effect.distance == pytest.approx(1 - torch.cosine_similarity(a, b, dim=0).item(), abs=1e-4)
            assert effect.logit is effect.kl is None
            continue
        assert found.token is not None and found.logit is not None and found.probability is not None
        before, after = (r.activation("head.hook_logits", real[-1:])[0] for r in (run, single))
        assert found.token == int(before.argmax()) and found.logit == pytest.approx(before.max().item(), abs=1e-4)
        assert effect.logit == pytest.approx((after - before)[found.token].item(), abs=1e-4)
        change = after.softmax(-1) - before.softmax(-1)
        assert effect.probability == pytest.approx(change[found.token].item(), abs=1e-4)
        p, q = before.log_softmax(-1), after.log_softmax(-1)
        assert effect.kl == pytest.approx((p.exp() * (p - q)).sum().item(), abs=1e-4)
    assert max(abs(effect.distance if encoder else effect.kl or 0) for effect in found.heads) > 1e-3  # type: ignore[type-var]


def test_an_encoder_that_predicts_can_be_asked_about_a_word(tiny: Tiny) -> None:
    run = core.trace(tiny(n_encoder_layers=2, head="mlm"), ids=IDS)
    found = run.ablate_heads(position=3, token=7)
    assert (found.position, found.token) == (3, 7)
    assert all(effect.kl is not None and effect.kl >= -1e-6 and effect.distance is None for effect in found.heads)
    with pytest.raises(TextError, match="no head"):
        core.trace(tiny(n_encoder_layers=1, head="none"), ids=IDS).ablate_heads(position=3)
    with pytest.raises(TextError, match="0 to 60"):
        run.ablate_heads(token=99)


def test_silencing_can_be_ended_and_refused(tiny: Tiny, monkeypatch: Any) -> None:
    loaded = tiny()
    run = core.trace(loaded, ids=IDS)

    def enough(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.ablate_heads(watch=enough)
    with monkeypatch.context() as patch:
        patch.setattr(device, "SMALL", 0)
        patch.setattr(device, "free_bytes", lambda device: 10)
        with pytest.raises(TooLarge, match="Silencing a head in a run of 8 tokens would need"):
            run.ablate_heads()
    with torch.no_grad():
        loaded.model.get_parameter("decoder.norm.weight").mul_(2)
    with pytest.raises(StaleTrace):
        run.ablate_heads()


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_like_itself_and_unlike_an_edited_one(tiny: Tiny, kind: str) -> None:
    loaded = tiny(**KINDS[kind], head="mlm" if kind == "encoder" else "lm")
    target = [1, 2, 3] if kind == "encoder-decoder" else None
    stack = loaded.config.stacks[-1][0]
    edit: Any = Custom(f"{stack}.blocks.1.hook_resid_pre", doubled)
    a, same = core.trace(loaded, ids=IDS, target_ids=target), core.trace(loaded, ids=IDS, target_ids=target)
    b = core.trace(
        loaded, ids=IDS, target_ids=target, interventions=[core.edits.Ablate(stack, 0, 1), core.edits.NoScale(stack, 1)]
    )
    alike = core.compare(a, same)
    assert all(head.largest == head.moved == 0 for head in alike.heads) and alike.kl == pytest.approx(0, abs=1e-6)
    assert all(point.largest == 0 for point in alike.stream)
    found = core.compare(a, b)
    assert len(found.heads) == 4 * len(a.attention)
    assert found.predictions == (a.predictions(), b.predictions()) and found.kl is not None and found.kl > 0
    for head in found.heads:
        x, y = (r.attention[[m.name for m in r.attention].index(head.name)].pattern(head.head)[0] for r in (a, b))
        assert (y - x)[head.query, head.key].item() == pytest.approx(head.largest, abs=1e-6)
        assert (y - x).abs().max().item() == pytest.approx(abs(head.largest), abs=1e-6)
        assert ((y - x).abs().sum(-1) / 2).mean().item() == pytest.approx(head.moved, abs=1e-6)
    assert found.most_different(1)[0].moved == max(head.moved for head in found.heads)
    streams = {point.point: point for point in found.stream}
    behind = streams[f"{stack}.blocks.0.hook_resid_post"]
    x, y = (r.activation(behind.point) for r in (a, b))
    ratios = (y - x).norm(dim=-1) / x.norm(dim=-1)
    assert behind.largest == pytest.approx(ratios.max().item(), rel=1e-4) and behind.position == int(ratios.argmax())
    assert streams[f"{stack}.embed.hook_embed"].largest == 0 < behind.mean
    moved = core.compare(a, core.trace(loaded, ids=IDS, target_ids=target, interventions=[edit]))
    assert {p.point for p in moved.stream if p.largest} == {f"{stack}.blocks.1.hook_resid_post", f"{stack}.hook_final"}


def test_texts_of_one_batch_are_compared_where_both_are(tiny: Tiny) -> None:
    sources = pad([from_ids(None, IDS), from_ids(None, IDS[:5])], 0, "[PAD]", "right")
    run = core.trace_tokens(tiny(), sources, None, ())
    found = core.compare(run.text(0), run.text(1))
    assert all(head.moved <= 1e-6 and head.query < 5 for head in found.heads)  # a decoder's first five see no further
    assert all(point.largest <= 1e-5 for point in found.stream) and found.kl is not None and found.kl > 1e-4


def test_what_cannot_be_compared_says_why(tiny: Tiny) -> None:
    a = core.trace(tiny(), ids=IDS)
    with pytest.raises(TextError, match="8 and 7 tokens"):
        core.compare(a, core.trace(tiny(), ids=IDS[:7]))
    with pytest.raises(TextError, match="no attention in common"):
        core.compare(a, core.trace(tiny(n_encoder_layers=1), ids=IDS))
    wider = core.compare(a, core.trace(tiny(d_model=24, vocab_size=70), ids=IDS))
    assert wider.stream == () and wider.kl is None and wider.predictions is not None and wider.heads
