"""Thumbnails made beside the pass are those that are made after it, of large runs alone, and nobody keeps them for long."""

from __future__ import annotations

import torch

import core
from app import pack, underway
from core.engine import Engine, Request
from tests.app.test_pack import SMALL


def engine() -> Engine:
    loaded = core.load("minilm")
    return Engine(device=torch.device("cpu"), load_model=lambda *_, **__: loaded, watch=underway.watch)


def test_a_picture_is_the_same_with_thumbnails_made_beside_the_pass():
    request = Request("minilm", ("word " * 120,))
    run = engine().run(request)
    made = underway.take(request)
    assert len(made) == len(run.attention) == 6
    beside, after = pack.picture(run, request.key, made), pack.picture(run, request.key)
    assert (beside.header, beside.body) == (after.header, after.body)
    assert not after.header["whole"] and len(after.body) > 0
    assert underway.take(request) == []  # they were taken


def test_the_layers_of_both_stacks_stay_in_the_order_of_the_pass():
    config = core.ModelConfig(**SMALL, n_encoder_layers=2, n_decoder_layers=2)
    request = Request("pair", ("",))
    run = core.trace(
        core.build(config, seed=1),
        ids=[i % 31 for i in range(150)],
        target_ids=[i % 31 for i in range(120)],
        watch=underway.watch(request),
    )
    made = underway.take(request)
    assert [record.site for record in run.attention] == ["attn", "attn", "attn", "cross_attn", "attn", "cross_attn"]
    for thumbnail, record in zip(made, run.attention, strict=True):
        assert torch.equal(thumbnail.values, record.thumbnail(pack.THUMBNAIL).values)


def test_a_small_run_has_none_since_every_weight_is_sent():
    request = Request("minilm", ("A cat.",))
    run = engine().run(request)
    assert underway.take(request) == []
    assert pack.picture(run, request.key).header["whole"]


def test_runs_that_nobody_looked_at_are_forgotten():
    first, *others = [Request("minilm", (f"{i} " * 150,)) for i in range(underway.MOST_RUNS + 1)]
    shared = engine()
    for request in (first, *others):
        shared.run(request)
    assert underway.take(first) == []
    assert all(len(underway.take(request)) == 6 for request in others)
