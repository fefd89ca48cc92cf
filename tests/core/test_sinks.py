"""The token that heads rest on, and the share of each head, against patterns computed whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import core
from core.errors import HeadlightError
from core.read.measures import Sink, sink
from core.run.request import Request
from core.service.maps import evenly_spaced
from tests.core.serving import ask, run_of, service

TEXT = "When Mary and John went to the store, John gave a drink to"
MANY = core.ModelConfig(
    vocab_size=30522, d_model=36, d_ff=36, n_ctx=512, position="rotary", head="none", n_heads=9, n_kv_heads=3, n_decoder_layers=30
)  # fmt: skip


@pytest.fixture(scope="module")
def many() -> core.Trace:
    """30 layers of 9 heads on 3 keys, tiny and random."""
    loaded = core.build(MANY, seed=2)
    return core.trace(replace(loaded, tokenizer=core.load("minilm").tokenizer), TEXT)


def test_the_share_is_the_mean_over_rows_that_may_see_another_token(many: core.Trace) -> None:
    found = sink(many.attention)
    assert found is not None and found.shares.shape == (30, 9) and found.rows == many.attention[0].n_query - 1
    patterns = torch.stack([record.pattern() for record in many.attention])[:, :, 1:]  # the first row sees itself alone
    assert np.allclose(found.shares, patterns[..., found.key].mean(-1).numpy(), atol=1e-6)
    assert (patterns[[round(i) for i in np.linspace(0, 29, 8)]].mean((0, 1, 2)).argmax()) == found.key


def test_weights_that_are_computed_already_give_the_same(many: core.Trace) -> None:
    found, again = sink(many.attention), sink(many.attention, [record.pattern() for record in many.attention])
    assert found is not None and again is not None
    assert (found.key, found.rows) == (again.key, again.rows) and np.allclose(found.shares, again.shares, atol=1e-7)


def test_the_middle_half_and_whether_it_is_a_sink() -> None:
    shares = np.linspace(0, 1, 101, dtype=np.float32).reshape(1, 101)
    assert Sink(0, shares, 3).between == pytest.approx((0.25, 0.75)) and Sink(0, shares, 3).is_sink
    assert not Sink(0, shares * 0.5, 3).is_sink


def test_an_encoder_rests_on_a_special_token_and_one_token_alone_on_none() -> None:
    run = core.trace(core.load("minilm"), TEXT)
    found = sink(run.attention)
    assert found is not None and found.rows == run.attention[0].n_query
    assert run.source.special[found.key]
    alone = core.trace(core.load("storyteller"), "e")
    assert len(alone.source) > 1 or sink(alone.attention) is None
    assert sink([]) is None


def test_one_cell_of_every_head_is_that_cell_of_its_map() -> None:
    shared = service()

    async def asked(query: int, at: int) -> np.ndarray:
        return await shared.looks_at(await shared.submit(Request("decoder", (TEXT,))), "decoder", query, at)

    key = ask(shared.submit(Request("decoder", (TEXT,))))
    heads = ask(shared.heads(key))["decoder"].weights
    assert np.allclose(ask(asked(3, 2)), heads[:, :, 3, 2], atol=1e-6)
    assert not ask(asked(2, 3)).any()
    with pytest.raises(HeadlightError, match="key"):
        ask(asked(0, 99))


@pytest.mark.parametrize("is_long", [False, True])
def test_heads_are_like_one_by_the_correlation_of_their_maps_without_the_sink(
    is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long text, over evenly spaced rows of both maps."""
    if is_long:
        monkeypatch.setattr("core.service.pictures.METRIC_ROWS", 3)
    shared, text = service(), TEXT * (9 if is_long else 1)
    key = ask(shared.submit(Request("decoder", (text,))))
    found = ask(shared.correlations(key, "decoder", 1, 0))
    run = run_of(shared, Request("decoder", (text,)))
    rest = sink(run.attention)
    assert rest is not None
    n = run.attention[0].n_query
    rows = evenly_spaced(n, 3) if is_long else list(range(n))
    cells = run.attention[1].mask(queries=rows).clone()
    if rest.is_sink:
        cells[:, rest.key] = False
    maps = torch.stack([record.pattern(queries=rows)[:, cells] for record in run.attention]).flatten(0, 1)
    wanted = torch.corrcoef(maps)[run.attention[0].n_heads].reshape(found.shape)
    assert found[1, 0] == pytest.approx(1, abs=1e-5) and found.dtype == np.float32
    assert np.allclose(found, wanted.numpy(), atol=1e-4)
    with pytest.raises(HeadlightError, match="head"):
        ask(shared.correlations(key, "decoder", 1, 99))
