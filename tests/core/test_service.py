"""The Service of an engine: its answers are core's numbers as plain data, and errors are sentences."""

from __future__ import annotations

import gc
import pickle
import time
import weakref
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np
import pytest
import torch

import core
from core.errors import HeadlightError, RunCancelled, ServerBusy, TextError, TooLarge, UnknownRun
from core.model.rules import REASONS
from core.read import head_roles as heads_of_a_run
from core.read import measures
from core.read.edge_attribution import head_logit_attribution, top_token_attribution
from core.read.findings import Finding
from core.run.request import Request
from core.service import HIDDEN, MapTransform, Service, TensorPlace, WalkNumber, word_groups
from core.service import maps as compute
from core.service.pictures import head_values
from tests.core.conftest import make_loaded
from tests.core.serving import CONFIGS, REQUEST, TEXT, ask, assert_plain, close, loader, run_of, service
from tests.core.test_engine import WORDS


def alike(one: Finding, other: Finding) -> bool:
    """Whether they are one look: sums of as many threads as another had may differ in the last bits of a float32."""
    pairs = [(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)]
    return all(a == pytest.approx(b, rel=1e-5, abs=1e-6) if isinstance(b, float) else a == b for a, b in pairs)


async def everything(shared: Service, request: Request, site: str) -> dict[str, Any]:
    """Every answer that a service gives of one run."""
    key = await shared.submit(request)
    of = MapTransform(0, 1)
    found: dict[str, Any] = {
        "progress": tuple([now async for now in shared.follow(key)]),
        "facts": await shared.facts(key),
        "tile": await shared.tile(key, of, (0, 3), (0, 3)),
        "row": await shared.row(key, of, 2),
        "column": await shared.column(key, of, 2),
        "cells": await shared.cells(key, of, (0, 3), (1, 2)),
        "thumbnails": await shared.thumbnails(key),
        "heads": await shared.heads(key),
        "whole": await shared.whole(key),
        "scores": await shared.scores(key, 0, 1, 2),
        "measures": await shared.measures(key, site),  # type: ignore[arg-type]
        "norms": await shared.norms(key, site),  # type: ignore[arg-type]
        "looks_at": await shared.looks_at(key, site, 2, 1),  # type: ignore[arg-type]
        "correlations": await shared.correlations(key, site, 1, 0),  # type: ignore[arg-type]
        "sink": await shared.sink(key, site),  # type: ignore[arg-type]
        "opening_look": await shared.opening_look(key),
        "findings": await shared.findings(key),
        "worth": await shared.worth(key),
        "proof": await shared.proof(key, 0),
        "status": {name: part for name, part in (await shared.status()).items() if name != "models"},
        "config": await shared.model(request.model_id),
    }
    stack, keys = found["facts"].records[0].stack, found["facts"].records[0].n_key
    found["likeness"] = await shared.similarity(key, site, 1, [1 / keys] * keys)  # type: ignore[arg-type]
    for what in ("q", "k", "scores", "mask", "weights", "z", "position", "embed", "final", "resid_pre"):
        found[f"values of {what}"] = await shared.values(key, TensorPlace(stack, 0, "attn", what, 1), 48)
    return found


@pytest.mark.parametrize("name", ["encoder", "decoder", "pair"])
def test_every_answer_is_plain_data_that_can_travel(name: str) -> None:
    target = "the mat" if name == "pair" else None
    answers = ask(everything(service(), Request(name, (TEXT,), target), "decoder" if name == "decoder" else "encoder"))
    for what, answer in answers.items():
        assert_plain(answer, what)
        again = pickle.loads(pickle.dumps(answer))
        assert type(again) is type(answer)
    with pytest.raises(AssertionError, match="Tensor"):
        assert_plain((torch.zeros(1),))
    with pytest.raises(AssertionError, match="function"):
        assert_plain({"a": lambda: 1})


def test_nothing_that_is_kept_of_an_answer_holds_its_run() -> None:
    """Else runs that the engine has dropped stay, however many it may hold: so a server grew with every visitor of Step through."""
    shared, request = service(), Request("decoder", (TEXT,))
    run = run_of(shared, request)
    held = [weakref.ref(record) for record in run.records]
    key = request.key
    ask(everything(shared, request, "decoder"))
    for call in (
        shared.walk(key, "decoder", 1, 2),
        shared.terms(key, WalkNumber("decoder", 1, 2, "attn.q", (0, 0))),
        shared.additions(key, "decoder"),
        shared.tile(key, MapTransform(1, 0, "rollout"), (0, 3), (0, 3)),
        shared.tile(key, MapTransform(1, 0, "value"), (0, 3), (0, 3)),
        shared.roles(key),
        shared.openings(key),
        shared.opening_look(key),
        shared.findings(key),
        shared.head_additions(key, "decoder", 2),
        shared.head_words(key, "decoder", 0, 1, 2),
        shared.positions(key),
        shared.masked(key, "decoder"),
        shared.compare(key, key),
    ):
        ask(call)
    del run, call
    shared.engine.drop_idle(0)
    # A thread of a pool lets go of what it did a moment after it gave the answer.
    deadline = time.monotonic() + 10
    while any(x() is not None for x in held) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert [x for x in held if x() is not None] == []
    walked = ask(shared.walk(key, "decoder", 1, 2))  # and they are of the run that is there when it is asked for again
    assert walked.sites[0].record == 1


@pytest.mark.parametrize(
    "error",
    [HeadlightError, ServerBusy, UnknownRun, RunCancelled, TooLarge, TextError],
    ids=lambda error: error.__name__,
)
def test_every_refusal_can_travel(error: type[HeadlightError]) -> None:
    there = pickle.loads(pickle.dumps(error("A sentence.")))
    assert type(there) is error and str(there) == "A sentence."


@pytest.mark.parametrize("name", list(CONFIGS))
def test_facts_are_those_of_the_trace(name: str) -> None:
    shared = service()
    request = Request(name, (TEXT,), "the mat" if name == "pair" else None)
    run, facts = run_of(shared, request), ask(shared.facts(request.key))
    assert facts.key == request.key and facts.config == run.config and facts.spec == run.spec
    assert (facts.source, facts.target, facts.steps) == (run.source, run.target, run.steps)
    assert (facts.device, facts.dtype, facts.seconds) == ("cpu", "float32", run.seconds)
    for fact, record in zip(facts.records, run.attention, strict=True):
        for field in fields(fact):
            assert getattr(fact, field.name) == getattr(record, field.name), field.name
    for i, record in enumerate(run.attention):
        assert facts.tokens_of(i) == run.tokens_of(record)
    assert facts.residual_norms is not None and run.residual_norms.keys() == facts.residual_norms.keys()
    assert facts.weights == sum(r.n_heads * r.n_query * r.n_key for r in run.attention)


@pytest.mark.parametrize("name", ["encoder", "decoder", "grouped"])
def test_numbers_are_those_of_the_records(name: str) -> None:
    shared, request = service(), Request(name, (TEXT,))
    run, key = run_of(shared, request), request.key
    site = "encoder" if name == "encoder" else "decoder"
    record = run.attention[1]
    of = MapTransform(1, 3)
    tile = ask(shared.tile(key, of, (2, 9), (1, 12)))
    assert close(tile.values, record.pattern(3, slice(2, 9), slice(1, 12))[0]) and tile.exact
    row = ask(shared.row(key, of, 5))
    assert close(row.values, record.row(3, 5)) and row.entropy == pytest.approx(
        float(measures.entropy(record.row(3, 5)))
    )
    assert close(ask(shared.column(key, of, 2)).values, record.pattern(3)[0, :, 2])
    cells = ask(shared.cells(key, of, (1, 16), (0, 16)))
    assert close(cells.values, record.pattern(3)[0, 1:])
    scores = ask(shared.scores(key, 1, 3, 5))
    assert close(scores.raw, record.raw(3, 5)[0, 0]) and close(scores.scaled, record.scores(3, 5)[0, 0])
    heads = ask(shared.heads(key))[site]  # type: ignore[index]
    assert close(heads.weights, torch.stack([r.pattern() for r in run.attention]))
    assert close(ask(shared.norms(key, site)), torch.stack([r.value_norms() for r in run.attention]))  # type: ignore[arg-type]
    assert ask(shared.proof(key, 1)) == record.receipt()
    for small, r in zip(ask(shared.thumbnails(key)), run.attention, strict=True):
        assert close(small.values, r.thumbnail(32).values) and small.how == r.thumbnail(32).how
    assert ask(shared.roles(key)) == heads_of_a_run.run_roles(run)
    look = core.opening_finding(run)
    found = ask(shared.findings(key))
    assert alike(ask(shared.opening_look(key)), look) and alike(found[0], look)
    assert all(alike(a, b) for a, b in zip(found, core.findings(run), strict=True))
    assert ask(shared.openings(key)) == heads_of_a_run.opening_edges(run, look=look)
    assert ask(shared.opening(key, 1, 3)) == heads_of_a_run.opening_edge_of(run, 1, 3)
    with pytest.raises(HeadlightError, match="no head 99"):
        ask(shared.opening(key, 1, 99))
    if run.loaded.model.head is not None:
        assert ask(shared.predictions(key, [3], 4)) == run.predictions([3], 4)


@pytest.mark.parametrize("name", ["decoder", "grouped", "pair"])
def test_what_heads_add_to_the_next_words_is_core_s(name: str) -> None:
    shared = service()
    request = Request(name, (TEXT,), "the mat" if name == "pair" else None)
    run, key = run_of(shared, request), request.key
    site = "cross" if name == "pair" else "decoder"
    at = 1
    found = ask(shared.head_additions(key, site, at))  # type: ignore[arg-type]
    likeliest = run.predictions([at], 5)
    assert [p for _, p in found.words] == pytest.approx(likeliest.probs[0]) and len(found.words) == 5
    assert close(found.values, head_logit_attribution(run, at, likeliest.ids[0]))
    words = ask(shared.head_words(key, site, 1, 0, at))  # type: ignore[arg-type]
    assert close(words.additions, core.edge_attribution(run, at)[1, 0])
    assert words.additions.sum() == pytest.approx(float(found.values[0, 1, 0]), abs=1e-4)
    other = ask(shared.head_words(key, site, 1, 0, at, 2))  # type: ignore[arg-type]
    assert other.additions.sum() == pytest.approx(float(found.values[2, 1, 0]), abs=1e-4)
    assert (other.raised, other.lowered) == (words.raised, words.lowered)
    with pytest.raises(HeadlightError, match="candidate"):
        ask(shared.head_words(key, site, 1, 0, at, 5))  # type: ignore[arg-type]
    moved = top_token_attribution(run, at).values[1, 0]
    assert words.raised[0][1] == pytest.approx(float(moved.max()), abs=1e-5)
    assert words.lowered[0][1] == pytest.approx(float(moved.min()), abs=1e-5)
    with pytest.raises(HeadlightError, match="no head 99"):
        ask(shared.head_words(key, site, 1, 99, at))  # type: ignore[arg-type]
    if name == "pair":
        with pytest.raises(HeadlightError, match="no head of its encoder"):
            ask(shared.head_additions(key, "encoder", at))


@pytest.mark.parametrize("name", ["encoder", "decoder", "pair", "long"])
def test_a_whole_picture_is_made_of_the_same_heads_openings_and_roles(name: str) -> None:
    """Worked out together, of maps that are worked out once: also of a text above 64 tokens, where openings are found otherwise."""
    text, name = (" ".join([TEXT] * 6), "encoder") if name == "long" else (TEXT, name)
    shared, request = service(), Request(name, (text,), "the mat" if name == "pair" else None)
    run_of(shared, request)
    whole, heads = ask(shared.whole(request.key)), ask(shared.heads(request.key))
    assert list(whole.heads) == list(heads)
    for site, one in heads.items():
        other = whole.heads[site]
        assert np.allclose(other.weights, one.weights, atol=1e-6) and np.allclose(other.entropy, one.entropy, atol=1e-5)
        assert other.mask_index == one.mask_index and all(map(np.array_equal, other.masks, one.masks))
    for found, expected in zip(whole.openings, ask(shared.openings(request.key)), strict=True):
        assert (found.weight, found.habit) == pytest.approx((expected.weight, expected.habit), abs=1e-6)
        assert replace(found, weight=0, habit=0) == replace(expected, weight=0, habit=0)
    for found, expected in zip(whole.roles, ask(shared.roles(request.key)), strict=True):
        assert [role.name for role in found] == [role.name for role in expected]
        assert [role.share for role in found] == pytest.approx([role.share for role in expected], abs=1e-6)


@pytest.mark.parametrize("kind", ["mean", "max", "rollout", "value"])
def test_maps_of_several_heads_are_core_s(kind: str) -> None:
    shared, run = service(), None
    request = Request("encoder", (TEXT,))
    run = run_of(shared, request)
    members = ((0, 1), (1, 2))
    expected = {
        "mean": lambda: measures.mean([(run.attention[i], head) for i, head in members]),
        "max": lambda: measures.maximum([(run.attention[i], head) for i, head in members]),
        "rollout": lambda: measures.rollout(run.attention, 1),
        "value": lambda: measures.value_weighted(run.attention[1], 3),
    }[kind]()
    of = MapTransform(1, 3, kind, members, hidden=(0, 4))  # type: ignore[arg-type]
    expected = expected.clone()
    total = expected.sum(-1)
    expected[:, [0, 4]] = 0
    left = expected.sum(-1) / total
    if kind != "value":
        expected /= expected.sum(-1, keepdim=True)
    tile = ask(shared.tile(request.key, of, (0, 16), (0, 16)))
    assert close(tile.values, expected) and tile.visible is not None and close(tile.visible, left)
    assert (tile.reasons[:, [0, 4]] == HIDDEN).all() and tile.sink is not None
    row = ask(shared.row(request.key, of, 7))
    assert close(row.values, expected[7]) and (row.entropy is None) == (kind in ("max", "value"))


def test_pieces_of_words_are_put_together() -> None:
    loaded = core.load("minilm")
    shared = service(lambda *_, **__: loaded)
    request = Request("minilm", ("Unbelievably, the tokenization sat.",))
    run = run_of(shared, request)
    groups = word_groups(run.source)
    assert max(map(len, groups)) > 1 and sum(map(len, groups)) == len(run.source)
    pattern = run.attention[2].pattern(3)[0]
    columns = torch.stack([pattern[:, list(group)].sum(-1) for group in groups], -1)
    expected = torch.stack([columns[list(group)].mean(0) for group in groups])
    n = len(groups)
    assert close(ask(shared.tile(request.key, MapTransform(2, 3, words=True), (0, n), (0, n))).values, expected)


def test_masks_travel_once_with_their_reasons() -> None:
    shared, request = service(), Request("decoder", (TEXT,))
    run, heads = run_of(shared, request), ask(shared.heads(request.key))["decoder"]
    assert heads.mask_index == ((0,), (1,), (0,)) and len(heads.masks) == 2
    for record, (which,) in zip(run.attention, heads.mask_index, strict=True):
        said = [[REASONS[code] for code in row] for row in heads.masks[which]]
        assert said == [[record.why_masked(q, k) or "" for k in range(16)] for q in range(16)]


def test_values_of_grouped_heads_are_those_that_they_share() -> None:
    record = core.trace(make_loaded(n_heads=4, **CONFIGS["grouped"]), ids=list(range(9))).attention[0]
    assert close(head_values(record, "k", 3, 48).values, record.k[1])
    assert close(head_values(record, "z", 3, 48).values, record.pattern(3)[0] @ record.v[1])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s, key: s.tile(key, MapTransform(9, 0), (0, 1), (0, 1)), "no record 9 in this run: .* 0 to 1"),
        (lambda s, key: s.tile(key, MapTransform(0, 4), (0, 1), (0, 1)), "no head 4"),
        (lambda s, key: s.tile(key, MapTransform(0, 0), (0, 1), (5, 5)), r"no columns 5 to 5 .* which has 16"),
        (lambda s, key: s.row(key, MapTransform(0, 0), 16), "no row 16"),
        (lambda s, key: s.column(key, MapTransform(0, 0), -1), "no column -1"),
        (lambda s, key: s.row(key, MapTransform(0, 0, cast(Any, "median")), 0), "no kind of map called 'median'"),
        (lambda s, key: s.row(key, MapTransform(0, 0, "mean", ((0, 9),)), 0), "no head 9"),
        (lambda s, key: s.row(key, MapTransform(0, 0, hidden=(16,)), 0), "no hidden key 16"),
        (lambda s, key: s.row(key, MapTransform(0, 0, hidden=tuple(range(16))), 0), "Every key would be hidden"),
        (lambda s, key: s.measures(key, "cross"), "no attention called 'cross'. It has decoder"),
        (lambda s, key: s.norms(key, "cross"), "no attention called 'cross'"),
        (lambda s, key: s.proof(key, 7), "no record 7"),
        (lambda s, key: s.scores(key, 0, 0, 99), "no query 99"),
        (lambda s, key: s.values(key, TensorPlace("decoder", 8, "attn", "q", 0), 48), "no head 0 in layer 8"),
        (lambda s, key: s.values(key, TensorPlace("decoder", 0, "attn", "nonsense", 0), 48), "no nonsense in layer 0"),
        (lambda s, key: s.facts("0" * 64), "no longer known"),
    ],
)
def test_what_a_run_does_not_have_is_refused_in_a_sentence(call: Callable[..., Any], said: str) -> None:
    shared = service()
    run_of(shared)
    with pytest.raises(HeadlightError, match=said):
        ask(call(shared, REQUEST.key))


def test_a_column_that_would_take_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute, "COLUMN_CELLS", 100)
    shared = service()
    run_of(shared)
    with pytest.raises(HeadlightError, match="would take 256 weights, and 100 is the most"):
        ask(shared.column(REQUEST.key, MapTransform(0, 0), 1))


def test_what_is_too_large_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = service()
    request = Request("long", (" ".join(WORDS * 31),))
    run_of(shared, request)
    monkeypatch.setattr("core.device.SMALL", 1 << 16)
    monkeypatch.setattr("core.device.free_bytes", lambda device: 1 << 20)
    for call in (shared.heads(request.key), shared.cells(request.key, MapTransform(0, 0), (0, 496), (0, 496))):
        with pytest.raises(TooLarge, match=r"would need \d+ MiB, and 1 MiB are free"):
            ask(call)


def test_what_runs_again_is_core_s_and_plain() -> None:
    shared, request = service(), Request("decoder", (TEXT,))
    run, key = run_of(shared, request), request.key
    other = Request("decoder", (TEXT,), None, (core.edits.Ablate("decoder", 0, 1),))
    run_of(shared, other)
    point = "decoder.blocks.1.hook_resid_mid"
    assert close(ask(shared.point(key, point, [2, 4])), run.activation(point, [2, 4]))
    assert ask(shared.logit_lens(key, 3)) == run.logit_lens(3)
    assert ask(shared.contributions(key, 5)) == run.logit_attribution(5)
    assert ask(shared.compare(key, other.key)) == core.compare(run, shared.engine.run(other))
    effects = ask(shared.ablate_each(key, 5))
    assert len(effects.heads) == 12
    for answer in (
        effects,
        ask(shared.compare(key, other.key)),
        ask(shared.contributions(key)),
        ask(shared.logit_lens(key)),
    ):
        assert_plain(answer)
    for call in (shared.point(key, "decoder.nowhere"), shared.point(key, point, [99]), shared.predictions(key, [99])):
        with pytest.raises(HeadlightError, match="has no"):
            ask(call)


@pytest.mark.parametrize("name", ["decoder", "pair"])
def test_an_edited_run_reads_the_same_tokens_with_other_interventions(name: str) -> None:
    """What a model wrote is given to it: an edit changes what it does with the text, and not the text."""
    shared = service()
    request = Request(name, (TEXT,), write=0 if name == "pair" else 3)
    plain = run_of(shared, request)

    async def both() -> tuple[str, str]:
        await shared.submit(request)
        edits = (core.edits.Ablate("decoder", 0, 1),)
        return await shared.edited(request.key, edits), await shared.edited(request.key, ())

    keys = ask(both())
    changed, same = (shared.engine.run(shared.engine.request_of(key)) for key in keys)
    for run in (changed, same):
        assert run.source.ids == plain.source.ids
        assert (run.target and run.target.ids) == (plain.target and plain.target.ids)
    end = "decoder.hook_final"
    torch.testing.assert_close(same.residual_norms[end], plain.residual_norms[end])
    assert not torch.equal(changed.residual_norms[end], plain.residual_norms[end]) and changed.interventions == (
        core.edits.Ablate("decoder", 0, 1),
    )


def test_a_run_says_where_its_first_number_came_up_that_is_none() -> None:
    loaded = loader("decoder")
    with torch.no_grad():
        loaded.model.get_parameter("decoder.blocks.1.mlp.down.weight").fill_(float("nan"))
    shared = service(lambda *_, **__: loaded)
    run_of(shared)
    found = ask(shared.facts(REQUEST.key)).non_finite
    assert found is not None and (found.layer, found.kind) == (1, "nan")
    assert_plain(found)
