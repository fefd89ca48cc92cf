"""Writing on: the same tokens with and without a cache for every family, and what transformers would write."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.overrides import TorchFunctionMode

import core
from core.checkpoints import Loaded
from core.errors import GenerationError, TextError, TooLarge
from core.model.cache import Cache, DynamicKV
from core.model.config import RotaryScaling
from core.model.outputs import ANYTHING
from core.model.rules import DistanceBias, MaskRule
from core.plan import kv_cache
from core.write.beams import beam_search, beam_steps
from core.write.generate import (
    GenerationStep,
    RawPrompt,
    Sampling,
    WritingOptions,
    WritingRequest,
    begin,
    candidates,
    generate,
    stream,
)
from tests.core.conftest import make_loaded
from tests.core.published import PUBLISHED, VOCAB, reads_both_ways, reference
from tests.thorough import part

TINY_VOCAB = 61
WRITERS = [name for name, case in PUBLISHED.items() if not reads_both_ways(case.model.config_class(**case.sizes))]


@cache
def published(name: str) -> Loaded:
    """Free to write anything: what a file forbids is in test_next_tokens.py."""
    return replace(core.load(reference(name).folder), next_tokens=ANYTHING)


def prompt(n: int, seed: int = 0, vocab: int = VOCAB) -> list[int]:
    return torch.randint(3, vocab, (n,), generator=torch.Generator().manual_seed(seed)).tolist()


def steps(loaded: Loaded, **arguments: Any) -> list[GenerationStep]:
    given: dict[str, Any] = {"max_tokens": 14, "stop": (), **arguments}
    return list(stream(loaded, **given))


def tokens(run: Sequence[GenerationStep], text: int = 0) -> list[int]:
    return [chosen.id for step in run if (chosen := step.chosen[text]) is not None]


def assert_same(one: Sequence[GenerationStep], other: Sequence[GenerationStep]) -> None:
    """Token for token, and every logit of every step to 1e-5."""
    assert len(one) == len(other) > 0
    for a, b in zip(one, other, strict=True):
        assert [c and c.id for c in a.chosen] == [c and c.id for c in b.chosen]
        assert (a.logits - b.logits).abs().max() <= 1e-5


def assert_cache_changes_nothing(loaded: Loaded, **arguments: Any) -> list[GenerationStep]:
    """Returns the steps that were the same both ways."""
    cached = steps(loaded, **arguments)
    assert_same(cached, steps(loaded, cached=False, **arguments))
    return cached


# with and without the cache


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("name", part(WRITERS, 3))
def test_every_family_writes_the_same_with_a_cache(name: str) -> None:
    assert_cache_changes_nothing(published(name), ids=prompt(9))


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("name", part(WRITERS, 3, first=1))
def test_every_family_writes_the_same_in_a_padded_batch(name: str) -> None:
    loaded, texts = published(name), [prompt(9), prompt(3, 1), prompt(6, 2)]
    batch = assert_cache_changes_nothing(loaded, ids=texts)
    if PUBLISHED[name].grows:
        return  # longer inputs turn by other angles, whatever fills them up
    for i, text in enumerate(texts):
        alone = steps(loaded, ids=text)
        assert tokens(batch, i) == tokens(alone)
        assert max((a.logits[i] - b.logits[0]).abs().max().item() for a, b in zip(batch, alone, strict=True)) <= 1e-5


def configs() -> list[dict[str, Any]]:
    """Every kind of position with every grouping of heads, windows on all, some and no layers, both kinds that write."""
    axes = itertools.product(
        ("none", "learned", "sinusoidal", "rotary", "alibi", "relative"),
        (4, 2, 1),
        ({}, {"window": 3}, {"window": 5, "windowed_layers": (0, 2)}, {"window": 1}),
        (0, 2),
    )
    return [
        {"position": position, "n_kv_heads": kv, **window, "n_encoder_layers": encoder, "n_decoder_layers": 3}
        for i, (position, kv, window, encoder) in enumerate(axes)
        if i % 3 == 0 or position == "rotary"
    ] + [
        {
            "position": "rotary",
            "rotary_base_windowed": 50.0,
            "window": 4,
            "windowed_layers": (1,),
            "n_decoder_layers": 3,
        },
        {"position": "rotary", "qk_norm": True, "parallel": True, "n_decoder_layers": 2},
        {"position": "learned", "position_offset": 2, "norm_order": "post", "n_decoder_layers": 2},
    ]


@pytest.mark.thorough(but=5)
@pytest.mark.parametrize("config", part(configs(), 4), ids=lambda config: "-".join(map(str, config.values())))
def test_every_config_writes_the_same_with_a_cache(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config)
    assert_cache_changes_nothing(loaded, ids=[prompt(7, 0, TINY_VOCAB), prompt(4, 1, TINY_VOCAB)])
    if loaded.config.kind == "encoder-decoder":
        assert_cache_changes_nothing(loaded, ids=prompt(7, 0, TINY_VOCAB), target_ids=prompt(5, 2, TINY_VOCAB))


def test_dynamic_rotary_positions_let_go_of_the_cache() -> None:
    """Beyond the length of its training such a model turns every token anew with each step."""
    scaling = RotaryScaling(kind="dynamic", factor=3.0, n_ctx_original=11)
    loaded = make_loaded(position="rotary", rotary_base=50.0, rotary_scaling=scaling)
    arguments = {"ids": prompt(6, 0, TINY_VOCAB)}
    assert_cache_changes_nothing(loaded, **arguments)
    held = [step.cache_bytes > 0 for step in steps(loaded, **arguments)]
    assert held == [True] * 6 + [False] * 8


def test_several_tokens_at_once_may_follow_a_cache() -> None:
    for window, position in itertools.product((None, 4), ("rotary", "alibi", "relative", "learned")):
        loaded = make_loaded(position=position, window=window)
        decoder = loaded.model.decoder
        assert decoder is not None
        ids = torch.tensor([prompt(13, 0, TINY_VOCAB)])
        with torch.inference_mode():
            whole, held = decoder(ids), Cache(loaded.config)
            parts = torch.cat([decoder(part, cache=held) for part in ids.split([5, 1, 4, 3], dim=1)], dim=1)
        assert held.n_past == 13
        assert (whole - parts).abs().max() <= 1e-5


# what the cache holds


@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("encoder", [0, 2])
@pytest.mark.parametrize("window", [None, 6])
def test_cache_bytes_are_the_planner_s(n_kv_heads: int, encoder: int, window: int | None) -> None:
    loaded = make_loaded(
        position="rotary", n_kv_heads=n_kv_heads, window=window, n_encoder_layers=encoder, n_decoder_layers=2
    )
    target = {"target_ids": prompt(4, 1, TINY_VOCAB)} if encoder else {}
    start = 4 if encoder else 9
    for step in steps(loaded, ids=prompt(9, 0, TINY_VOCAB), **target):
        n = start + step.index
        if window is not None:  # a window keeps what the next token may look at, which does not include itself
            n = min(n, window - 1)
        planned = kv_cache(loaded.config, n=n, memory_len=9 if encoder else 0, dtype="float32")
        assert step.cache_bytes == planned.total
    assert steps(loaded, ids=[5], cached=False, **target)[-1].cache_bytes == 0


def test_a_window_s_cache_stops_growing_in_memory_too() -> None:
    held = DynamicKV(window=8)
    for _ in range(200):
        k, _ = held.add(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2))
        assert k.shape[2] <= 8
    assert held.n_past == 200
    assert held.k.shape[2] <= 16


def test_a_window_s_cache_lets_go_of_a_long_prompt() -> None:
    """A prompt that is read at once is not kept beyond what the next token may look at, unless room for all was asked for."""
    k, v = torch.arange(400.0).view(1, 2, 100, 2), -torch.arange(400.0).view(1, 2, 100, 2)
    held, asked = DynamicKV(window=8), DynamicKV(window=8, capacity=100)
    for each in (held, asked):
        seen = each.add(k, v)
        assert torch.equal(seen[0], k) and torch.equal(seen[1], v)
    assert held.k.untyped_storage().nbytes() == held.v.untyped_storage().nbytes() == 2 * 7 * 2 * 4
    assert torch.equal(asked.k, k)
    for each in (held, asked):
        keys, values = each.add(k[:, :, :1], v[:, :, :1])
        assert torch.equal(keys, torch.cat([k[:, :, -7:], k[:, :, :1]], 2))
        assert torch.equal(values, torch.cat([v[:, :, -7:], v[:, :, :1]], 2))
        assert (each.n_past, each.length) == (101, 7)


@pytest.mark.parametrize(("n", "most"), [(3, 9), (20, 4)])
def test_what_will_be_written_has_its_room_from_the_beginning(n: int, most: int) -> None:
    """A cache that is made larger on the way holds twice as much for a while."""
    loaded = make_loaded(position="rotary", n_decoder_layers=2)
    _, draft = begin(
        loaded, WritingRequest.of(RawPrompt(ids=prompt(n, vocab=20)), {"max_tokens": most}, WritingOptions)
    )
    draft.next_scores()
    assert draft.cache is not None
    held = draft.cache.layers[0].attn.k
    assert held.shape[2] == n + most
    for _ in range(most):
        draft.append(torch.ones(1, dtype=torch.long))
        draft.next_scores()
    assert draft.cache.layers[0].attn.k is held and draft.n == n + most


def test_cross_attention_reads_the_source_once() -> None:
    loaded = make_loaded(n_encoder_layers=2, n_decoder_layers=2)
    calls: list[int] = []
    assert loaded.model.decoder is not None
    cross = loaded.model.decoder.blocks[0].get_submodule("cross_attn.k")
    handle = cross.register_forward_hook(lambda *_: calls.append(1))
    try:
        assert len(steps(loaded, ids=prompt(9, 0, TINY_VOCAB))) == 14
    finally:
        handle.remove()
    assert len(calls) == 1


# rules with a first query


@pytest.mark.parametrize("window", [None, 3])
def test_a_rule_for_the_last_queries_is_the_last_rows_of_the_whole(window: int | None) -> None:
    keep = torch.tensor([[False, True, True, True, True, True, True]])
    whole = MaskRule(2, 7, 7, causal=True, window=window, keep=keep)
    part = MaskRule(2, 3, 7, causal=True, window=window, keep=keep, first_query=4)
    keys = torch.arange(7)
    assert torch.equal(part.block(torch.arange(3), keys), whole.block(torch.arange(4, 7), keys))
    assert [part.why_masked(q, k) for q in range(3) for k in range(7)] == [
        whole.why_masked(q, k) for q in range(4, 7) for k in range(7)
    ]
    assert part.why_masked(0, 6) == "future"
    assert not part.is_causal_only


def test_the_last_token_alone_needs_no_mask() -> None:
    assert MaskRule(2, 1, 7, causal=True, first_query=6).is_free
    assert not MaskRule(2, 1, 7, causal=True, first_query=5).is_free
    assert not MaskRule(2, 1, 7, causal=True, window=6, first_query=6).is_free
    assert MaskRule(2, 1, 7, causal=True, window=7, first_query=6).is_free


def test_a_bias_for_the_last_keys() -> None:
    rule = DistanceBias("alibi", torch.tensor([[6]]), torch.arange(7)[None], lambda d: -d.abs()[:, None].float())
    block = rule.last_keys(3).block(torch.arange(1), torch.arange(3))
    assert block.tolist() == [[[[-2.0, -1.0, 0.0]]]]


# beside transformers


@pytest.mark.parametrize("name", ["gpt2", "llama gqa", "mistral", "gemma3_text", "opt", "bart", "t5 v1.0", "marian"])
def test_greedy_is_what_transformers_writes(name: str) -> None:
    theirs, loaded, ids = reference(name).model, published(name), prompt(9)
    out = theirs.generate(  # type: ignore[operator]
        torch.tensor([ids]), attention_mask=torch.ones(1, 9), max_new_tokens=12, do_sample=False, **ENDLESS
    )[0].tolist()
    written = out[1:] if loaded.config.kind == "encoder-decoder" else out[9:]
    assert tokens(steps(loaded, ids=ids, max_tokens=12)) == written


ENDLESS: dict[str, Any] = {
    "eos_token_id": None,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "pad_token_id": 0,
}


@pytest.mark.parametrize("name", ["gpt2", "llama gqa", "bart"])
@pytest.mark.parametrize("length_penalty", [1.0, 0.5])
@pytest.mark.parametrize("ends", [False, True])
def test_beams_are_those_of_transformers(name: str, length_penalty: float, ends: bool) -> None:
    theirs, loaded, ids = reference(name).model, published(name), prompt(9)
    # A token that the model likes is made the end, so that beams do end.
    end = tokens(steps(loaded, ids=ids, max_tokens=5))[-1] if ends else None
    out = theirs.generate(  # type: ignore[operator]
        torch.tensor([ids]),
        attention_mask=torch.ones(1, 9),
        max_new_tokens=10,
        do_sample=False,
        num_beams=3,
        num_return_sequences=3,
        length_penalty=length_penalty,
        return_dict_in_generate=True,
        output_scores=True,
        **(ENDLESS | {"eos_token_id": end}),
    )
    ours = beam_search(
        loaded, ids=ids, n_beams=3, length_penalty=length_penalty, max_tokens=10, stop=() if end is None else (end,)
    )[0]
    start = 1 if loaded.config.kind == "encoder-decoder" else 9
    for beam, sequence, score in zip(ours, out.sequences.tolist(), out.sequences_scores.tolist(), strict=True):
        assert list(beam.ids) == sequence[start : start + len(beam.ids)]
        assert beam.score == pytest.approx(score, abs=1e-4)


def test_beams_with_and_without_a_cache_and_in_a_batch() -> None:
    configs: list[dict[str, Any]] = [
        {"position": "rotary", "window": 4},
        {"n_encoder_layers": 1, "n_decoder_layers": 2},
    ]
    for config in configs:
        loaded = make_loaded(**config)
        texts = [prompt(7, 0, TINY_VOCAB), prompt(4, 1, TINY_VOCAB)]
        batch = beam_search(loaded, ids=texts, n_beams=3, max_tokens=8, stop=(7, 9, 30))
        plain = beam_search(loaded, ids=texts, n_beams=3, max_tokens=8, stop=(7, 9, 30), cached=False)
        assert [[b.ids for b in beams] for beams in batch] == [[b.ids for b in beams] for beams in plain]
        for text, beams in zip(texts, batch, strict=True):
            (alone,) = beam_search(loaded, ids=text, n_beams=3, max_tokens=8, stop=(7, 9, 30))
            assert [b.ids for b in alone] == [b.ids for b in beams]
            assert [b.score for b in beams] == sorted((b.score for b in beams), reverse=True)


def test_each_step_of_a_search_follows_from_the_one_before() -> None:
    loaded = make_loaded(n_encoder_layers=1, n_decoder_layers=2)
    arguments: dict[str, Any] = {"ids": prompt(7, 0, TINY_VOCAB), "n_beams": 3, "max_tokens": 8, "stop": (7, 9, 30)}
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    last = None
    for last in beam_steps(loaded, **arguments):
        (found,) = last.candidates
        assert [c.log_prob for c in found] == sorted((c.log_prob for c in found), reverse=True)
        assert all(c.log_prob <= live[c.row][1] for c in found), "no text gets likelier"
        assert not any(c.kept and c.ends for c in found)
        live = [((*live[c.row][0], c.id), c.log_prob) for c in found if c.kept]
        assert len(live) == 3
    assert last is not None and last.finished == beam_search(loaded, **arguments)
    for ids, log_prob in live if last.index == 7 else ():
        assert any(beam.ids == ids and beam.log_prob == log_prob for beam in last.finished[0]) or log_prob <= min(
            beam.log_prob for beam in last.finished[0]
        )


def test_one_beam_is_greedy() -> None:
    loaded = make_loaded()
    (beams,) = beam_search(loaded, ids=[3, 4, 5], n_beams=1, max_tokens=9, stop=())
    assert [list(beam.ids) for beam in beams] == [tokens(steps(loaded, ids=[3, 4, 5], max_tokens=9))]
    assert beams[0].ending == "max_tokens"
    assert beams[0].log_prob == pytest.approx(
        generate(loaded, ids=[3, 4, 5], max_tokens=9, stop=())[0].log_prob, abs=1e-4
    )


# sampling


def test_either_name_of_the_most_tokens_gives_the_same() -> None:
    loaded = make_loaded()
    five: dict[str, Any] = {"ids": [3, 4, 5], "stop": ()}
    with pytest.warns(DeprecationWarning, match="use max_tokens"):
        for write in (core.generate, beam_search):
            written: Any = write(loaded, max_new_tokens=5, **five)
            again: Any = write(loaded, max_tokens=5, max_new_tokens=5, **five)
            assert written == again == write(loaded, max_tokens=5, **five)
        with pytest.raises(
            core.errors.GenerationError, match=r"max_tokens is 5 and max_new_tokens 6, .* Give one of them\."
        ):
            core.generate(loaded, max_tokens=5, max_new_tokens=6, **five)
    assert len(core.generate(loaded, **five)[0].ids) <= 64
    with pytest.raises(core.errors.GenerationError, match="max_new_tokens is 0, but it must be at least 1"):
        core.stream(loaded, max_new_tokens=0, **five)


def test_options_are_keywords_or_records() -> None:
    loaded = make_loaded()
    sampling = Sampling(temperature=0.8, top_k=5, seed=3)
    written = generate(loaded, RawPrompt(ids=[3, 4, 5]), sampling=sampling, max_tokens=5, stop=())
    assert written == generate(loaded, ids=[3, 4, 5], temperature=0.8, top_k=5, seed=3, max_tokens=5, stop=())
    wrongs: tuple[dict[str, Any], ...] = ({"top_q": 1}, {"show": 2}, {"sampling": sampling, "seed": 1})
    for wrong in wrongs:
        with pytest.raises(TypeError):
            generate(loaded, ids=[3, 4, 5], **wrong)
    with pytest.raises(TypeError):
        generate(loaded, RawPrompt(ids=[3, 4, 5]), ids=[3])
    with pytest.raises(TypeError, match="'temperature'"):
        beam_search(loaded, ids=[3, 4, 5], temperature=1.0)


def test_candidates() -> None:
    logits = torch.log(torch.tensor([[0.1, 0.4, 0.2, 0.3]]))
    words, probs = candidates(logits, 1.0)
    assert words.tolist() == [[0, 1, 2, 3]]
    assert probs[0].tolist() == pytest.approx([0.1, 0.4, 0.2, 0.3])
    words, probs = candidates(logits, 1.0, top_k=2)
    assert words.tolist() == [[1, 3]]
    assert probs[0].tolist() == pytest.approx([4 / 7, 3 / 7])
    words, probs = candidates(logits, 1.0, top_p=0.69)
    assert words.tolist() == [[1, 3, 2, 0]]
    assert probs[0].tolist() == pytest.approx([4 / 7, 3 / 7, 0, 0])
    assert candidates(logits, 1.0, top_p=1e-9)[1][0].tolist() == pytest.approx([1, 0, 0, 0])
    # after the temperature, and within top_k: 0.16 / 0.25 of two
    assert candidates(logits, 0.5, top_k=2, top_p=0.65)[1][0].tolist() == pytest.approx([0.64, 0.36])
    assert candidates(logits, 0.5, top_k=2, top_p=0.63)[1][0].tolist() == pytest.approx([1, 0])
    # of the likeliest one's share, which is 0.4 here and 0.16 of 0.3 once the temperature is 0.5
    assert candidates(logits, 1.0, min_p=0.6)[1][0].tolist() == pytest.approx([4 / 7, 3 / 7, 0, 0])
    assert candidates(logits, 0.5, min_p=0.6)[1][0].tolist() == pytest.approx([1, 0, 0, 0])
    assert candidates(logits, 1.0, min_p=1.0)[1][0].tolist() == pytest.approx([1, 0, 0, 0])


def test_samples_follow_the_probabilities() -> None:
    loaded = make_loaded()
    first = steps(loaded, ids=[3, 4], max_tokens=1)[0].logits[0]
    words, probs = candidates(first[None], 0.7, top_k=3)
    batch = generate(loaded, ids=[[3, 4]] * 600, max_tokens=1, temperature=0.7, top_k=3, seed=5)
    drawn = [g.ids[0] for g in batch]
    assert set(drawn) == set(words[0].tolist())
    for word, prob in zip(words[0].tolist(), probs[0].tolist(), strict=True):
        assert drawn.count(word) / 600 == pytest.approx(prob, abs=4 * math.sqrt(0.25 / 600))


def test_a_seed_is_all_that_chance_depends_on() -> None:
    loaded = make_loaded()
    sample: dict[str, Any] = dict(ids=[3, 4, 5], temperature=1.3, top_p=0.95)
    before = torch.get_rng_state()
    one = tokens(steps(loaded, seed=1, **sample))
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    assert tokens(steps(loaded, seed=1, **sample)) == one
    assert tokens(steps(loaded, seed=2, **sample)) != one
    assert tokens(steps(loaded, seed=1, cached=False, **sample)) == one


# steps


def test_a_step_says_what_was_likely() -> None:
    loaded = make_loaded()
    step = next(stream(loaded, ids=[3, 4, 5], show=4))
    chosen = step.chosen[0]
    assert chosen is not None
    with torch.inference_mode():
        probs = loaded.model(torch.tensor([[3, 4, 5]]))[0, -1].softmax(-1)
    assert [i for i, _ in chosen.top] == probs.topk(4).indices.tolist()
    assert [p for _, p in chosen.top] == pytest.approx(probs.topk(4).values.tolist(), abs=1e-6)
    assert (chosen.id, chosen.prob) == chosen.top[0]


def test_a_stream_runs_as_it_is_read() -> None:
    loaded = make_loaded()
    passes: list[int] = []
    assert loaded.model.decoder is not None
    handle = loaded.model.decoder.register_forward_hook(lambda *_: passes.append(1))
    try:
        written = stream(loaded, ids=[3, 4, 5])
        assert len(passes) == 0
        next(written)
        next(written)
        assert len(passes) == 2
        assert not torch.is_inference_mode_enabled()
    finally:
        handle.remove()


def test_stop_tokens_end_one_text_and_not_the_others() -> None:
    loaded = make_loaded()
    texts = [[3, 4, 5], [9, 8]]
    free = steps(loaded, ids=texts)
    first, second = tokens(free), tokens(free, 1)
    end = next(token for token in first if token not in second)
    run = steps(loaded, ids=texts, stop=(end,))
    assert tokens(run) == first[: first.index(end) + 1]
    assert tokens(run, 1) == second
    assert [step.chosen[0] is None for step in run] == [i > first.index(end) for i in range(14)]
    one, other = generate(loaded, ids=texts, max_tokens=14, stop=(end,))
    assert (one.ending, other.ending) == ("end", "max_tokens")
    assert one.ids[-1] == end
    assert len(generate(loaded, ids=[3, 4, 5], max_tokens=14, stop=(end,))[0].ids) == first.index(end) + 1


def test_a_model_s_own_end_is_its_stop(tmp_path: Any) -> None:
    loaded = published("opt")
    assert loaded.end_ids == (2,)
    assert published("llama gqa").end_ids == (2,)
    ending = replace(loaded, end_ids=(tokens(steps(loaded, ids=prompt(9)))[3],))
    (written,) = generate(ending, ids=prompt(9))
    assert written.ending == "end"
    assert len(written.ids) <= 4


def test_a_table_of_positions_ends_it() -> None:
    loaded = make_loaded(position="learned")  # 37 positions
    for n in (30, 37):
        (written,) = generate(loaded, ids=prompt(n, 0, TINY_VOCAB), max_tokens=50)
        assert written.ending == "positions"
        assert len(written.ids) == 37 - n + 1  # the last one is written, and has no place to be read from
    assert beam_search(loaded, ids=prompt(36, 0, TINY_VOCAB), n_beams=2)[0][0].ending == "positions"
    endless = make_loaded(position="alibi")
    assert len(generate(endless, ids=prompt(30, 0, TINY_VOCAB), max_tokens=20)[0].ids) == 20


def test_text_in_text_out() -> None:
    vocab = {f"w{i}": i for i in range(TINY_VOCAB)}
    tokenizer = Tokenizer(models.WordLevel(vocab))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    loaded = replace(make_loaded(), tokenizer=tokenizer)
    one, other = generate(loaded, ["w3 w4 w5", "w9"], max_tokens=3)
    assert one.text == " ".join(f"w{i}" for i in one.ids)
    assert other.ids == generate(loaded, ids=[9], max_tokens=3)[0].ids


# what is refused


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"temperature": 0.0}, "temperature is 0.0, but it must be above 0"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"temperature": 1.0, "top_p": 0.0}, "top_p is 0.0, but it must be above 0 and at most 1"),
        ({"temperature": 1.0, "top_p": 1.1}, "top_p is 1.1"),
        ({"temperature": 1.0, "top_k": 0}, "top_k is 0, but it must be at least 1"),
        ({"top_k": 3}, "Give temperature=1.0 as well"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"show": 0}, "show is 0"),
        ({"stop": (61,)}, "stop token 61 is not in this model's vocabulary, which has 0 to 60"),
    ],
)
def test_settings_out_of_range(tiny: Callable[..., Loaded], settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(GenerationError, match=sentence):
        stream(tiny(), ids=[3], **settings)


def test_beams_out_of_range(tiny: Callable[..., Loaded]) -> None:
    with pytest.raises(GenerationError, match="n_beams is 0, but it must be at least 1"):
        beam_search(tiny(), ids=[3], n_beams=0)
    with pytest.raises(GenerationError, match="length_penalty is inf"):
        beam_search(tiny(), ids=[3], length_penalty=math.inf)


def test_models_that_cannot_write(tiny: Callable[..., Loaded]) -> None:
    with pytest.raises(GenerationError, match="is an encoder"):
        stream(tiny(n_encoder_layers=1), ids=[3])
    with pytest.raises(GenerationError, match="has no head"):
        stream(tiny(head="none"), ids=[3])


def test_prompts_that_cannot_be_read(tiny: Callable[..., Loaded]) -> None:
    with pytest.raises(TextError, match="38 tokens long, and random decoder has positions for 37"):
        stream(tiny(), ids=prompt(38, 0, TINY_VOCAB))
    with pytest.raises(TextError, match="not in this model's vocabulary"):
        stream(tiny(), ids=[[3], [61]])
    with pytest.raises(TextError, match="no tokenizer"):
        stream(tiny(), "a text")
    with pytest.raises(TextError, match="not neither"):
        stream(tiny())
    with pytest.raises(TextError, match="no token numbers"):
        stream(tiny(), ids=[[3], []])
    with pytest.raises(TextError, match="Leave the target out"):
        stream(tiny(), ids=[3], target_ids=[4])


def test_what_would_not_fit_is_refused_before_it_runs(tiny: Callable[..., Loaded]) -> None:
    with pytest.raises(TooLarge, match="MiB are free"):
        stream(tiny(position="alibi"), ids=[3], max_tokens=10**10)


# what a device has to do


class Transfers(TorchFunctionMode):
    """Counts what makes the program wait for its device, and refuses the floats that Apple's devices do not have."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        waits = ("cpu", "item", "tolist", "nonzero", "__bool__", "__int__", "__float__", "__index__", "__contains__")
        self.n += getattr(func, "__name__", "") in waits
        out = func(*args, **(kwargs or {}))
        made_for_the_device = isinstance(out, torch.Tensor) and func is not torch.rand
        assert not (made_for_the_device and out.dtype == torch.float64)
        return out


@pytest.mark.parametrize("sampled", [{}, {"temperature": 1.3, "top_p": 0.9, "top_k": 30}])
def test_a_written_token_waits_for_its_device_once(sampled: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = make_loaded(position="rotary", window=4)
    prompts = [prompt(5, 0, TINY_VOCAB), prompt(3, 1, TINY_VOCAB)]
    exact = [tokens(steps(loaded, ids=prompts, **sampled), text) for text in (0, 1)]
    monkeypatch.setattr(sys.modules["core.write.generate"], "highest_precision", lambda device: torch.float32)
    monkeypatch.setattr(sys.modules["core.model.rules"], "_masks_nan", lambda q, k: False)  # asked of a CPU alone
    run = iter(stream(loaded, ids=prompts, max_tokens=14, stop=(), **sampled))
    written, counts = [next(run)], []
    for _ in range(13):
        with Transfers() as transfers:
            written.append(next(run))
        counts.append(transfers.n)
    assert counts == [1] * 13
    assert [tokens(written, text) for text in (0, 1)] == exact


def test_rotary_frequencies_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = make_loaded(position="rotary", rotary_base_windowed=50.0, window=4, windowed_layers=(1,))
    module, calls = sys.modules["core.model.transformer"], []
    worked_out = module.rotary_frequencies
    monkeypatch.setattr(module, "rotary_frequencies", lambda *a: calls.append(1) or worked_out(*a))
    assert len(steps(loaded, ids=prompt(5, 0, TINY_VOCAB))) == 14
    assert len(calls) == 2  # the layers with a window have their own


def test_token_numbers_are_those_of_any_list_array_or_tensor(tiny: Callable[..., Loaded]) -> None:
    loaded = tiny()
    one, two = [3, 1, 4], [1, 5]
    (alone,) = generate(loaded, ids=one, max_tokens=3)
    for ids in (
        torch.tensor(one),
        np.array(one),
        tuple(one),
        [one],
        torch.tensor([one]),
        np.array([one]),
        [np.array(one)],
    ):
        assert [found.ids for found in generate(loaded, ids=ids, max_tokens=3)] == [alone.ids]
    both = generate(loaded, ids=[one, two], max_tokens=3)
    assert [found.ids for found in both] == [alone.ids, generate(loaded, ids=two, max_tokens=3)[0].ids]
    for wrong in ([one, 3], [3, one], [1.0, 2.0], "12", np.array([0.5])):
        with pytest.raises(TextError, match="whole numbers"):
            generate(loaded, ids=wrong, max_tokens=3)  # type: ignore[arg-type]
