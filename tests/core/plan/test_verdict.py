"""The verdict: n fits and n + 1 does not, to the byte, and every offer is enough by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from core.errors import ConfigError
from core.model.config import ModelConfig
from core.plan import (
    PRESETS,
    Memory,
    Offer,
    SetUp,
    Verdict,
    Workload,
    memory_plan,
    of_bytes,
    on_card,
    on_machine,
    verdict,
)
from core.plan.verdict import LONGEST, curve, lost, need, total, widest
from tests.core.plan.configs import cases
from tests.thorough import part

GiB = 1 << 30
MiB = 1 << 20
LLAMA, GPT2, MEDIUM, MISTRAL, T5, BERT = (
    PRESETS[name].config for name in ("llama-3-8b", "gpt2", "gpt2-medium", "mistral-7b", "t5-small", "bert-base")
)
GEMMA = replace(MISTRAL, window=512, n_decoder_layers=12, windowed_layers=tuple(i for i in range(12) if i % 6 != 5))
SMOLLM2 = replace(
    LLAMA, vocab_size=49_152, n_ctx=8192, d_model=576, n_heads=9, n_kv_heads=3, d_head=64, d_ff=1536, n_decoder_layers=30,
    tied=True,
)  # fmt: skip
CARD = on_card("RTX 4090")
# what is asked of a model that is run, and of one that is trained
RUNS: list[dict[str, Any]] = [{}, {"attention": "eager", "logits": "all"}, {"kv_dtype": "float16", "padded": True}]
TRAININGS: list[dict[str, Any]] = [{}, {"attention": "eager", "recompute": "attention"}, {"rank": 8}]
WASTEFUL = {"attention", "logits", "piece"}


def set_ups() -> Iterator[SetUp]:
    """Every kind of model, format, number of chats and use, where some part of it is too much and where it is not."""
    for config, target in ((LLAMA, 0), (SMOLLM2, 0), (GPT2, 0), (MISTRAL, 0), (GEMMA, 0), (BERT, 0), (T5, 60)):
        for dtype in ("float32", "float16"):
            for batch in (1, 4):
                for training, ways in ((False, RUNS), (True, TRAININGS)):
                    for way in ways:
                        work = Workload(
                            batch=batch, source_len=500, target_len=target, dtype=dtype, training=training, **way
                        )
                        enough = memory_plan(config, work).total
                        for budget in (enough // 2, enough - 1, enough, 2 * enough):
                            yield SetUp(config, work, of_bytes(budget, "mine"))


SET_UPS = part(list(set_ups()), 5)


def at_length(set_up: SetUp, n: int) -> SetUp:
    return replace(set_up, work=replace(set_up.work, source_len=n))


def check_lengths(found: Verdict) -> None:
    of, budget = found.set_up, found.set_up.place.budget
    assert found.fits == (total(of) <= budget) == (found.longest >= of.work.source_len)
    assert found.total == found.need.total + found.lost == total(of)
    if found.longest:
        longest = memory_plan(of.config, replace(of.work, source_len=found.longest))
        assert found.longest_bytes == longest.total + lost(at_length(of, found.longest)) <= budget
    assert found.next_bytes == total(at_length(of, found.longest + 1))
    assert found.ceiling == (of.config.n_ctx if of.config.position == "learned" else None)
    assert found.next_bytes > budget or found.longest in (found.ceiling, LONGEST)


@cache
def verdicts() -> tuple[Verdict, ...]:
    return tuple(map(verdict, SET_UPS))


def test_n_fits_and_one_more_does_not() -> None:
    assert len(verdicts()) == len(SET_UPS)
    for found in verdicts():
        check_lengths(found)
    for percent in (5, 10):
        for set_up in SET_UPS[::11]:
            check_lengths(verdict(replace(set_up, fragments=percent)))


def test_as_many_texts_fit_and_one_more_does_not() -> None:
    for found in verdicts():
        of, budget = found.set_up, found.set_up.place.budget
        assert total(replace(of, work=replace(of.work, batch=found.chats + 1))) > budget
        assert found.fits == (found.chats >= of.work.batch)
        if found.chats:
            assert total(replace(of, work=replace(of.work, batch=found.chats))) <= budget


def check_offers(found: Verdict) -> None:
    """Every offer is one change, is enough by itself, and takes what it says."""
    of = found.set_up
    for offer in found.offers:
        assert offer.total == total(offer.set_up) <= offer.set_up.place.budget, (of.work, offer.kind)
        work, was = offer.set_up.work, of.work
        changed = {name for name in vars(work) if getattr(work, name) != getattr(was, name)}
        if offer.kind in WASTEFUL:
            assert changed == {offer.kind} and getattr(work, offer.kind) == offer.value
        elif offer.kind == "wasteful":
            assert changed == set(str(offer.value).split(",")) and len(changed) > 1
        elif offer.kind in ("card", "cards"):
            assert not changed and offer.set_up.place != of.place
        else:
            fields = {
                "bits": {"dtype", "weight_dtype"},
                "cache": {"kv_dtype"},
                "tokens": {"source_len"},
                "chats": {"batch"},
            }
            assert changed and changed <= fields.get(offer.kind, {offer.kind}), offer.kind
    assert len({offer.kind for offer in found.offers}) == len(found.offers) <= 4


def test_each_offer_is_enough() -> None:
    kinds = set[str]()
    for found in verdicts():
        check_offers(found)
        kinds |= {offer.kind for offer in found.offers}
        if found.fits:
            assert {offer.kind for offer in found.offers} <= {"tokens", "chats", "bits"}
    assert kinds >= {"tokens", "chats", "bits", "recompute", "attention", "rank"}


FIXES = ("attention", "logits", "piece", "wasteful", "bits", "cache", "recompute", "tokens", "chats", "optimizer", "rank", "card", "cards")  # fmt: skip


def test_offers_come_in_order_and_waste_comes_first() -> None:
    for found in verdicts():
        order = ("tokens", "chats", "bits") if found.fits else FIXES
        places = [order.index(offer.kind) for offer in found.offers]
        assert places == sorted(places)


def test_the_smallest_group_of_assumptions_where_none_is_enough() -> None:
    textbook = SetUp(LLAMA, Workload(source_len=32_768, dtype="float16", attention="eager", logits="all"), CARD)
    found = verdict(textbook)
    assert [(offer.kind, offer.value) for offer in found.offers] == [
        ("wasteful", "attention,logits"),
        ("tokens", 7698),
        ("card", "B200"),
        ("cards", 8),
    ]
    check_offers(found)
    assert round(found.total / GiB, 3) == 149.357
    for name, value in (("attention", "flash"), ("logits", "last"), ("piece", 2048)):  # none alone
        changed: dict[str, Any] = {name: value}
        assert total(replace(textbook, work=replace(textbook.work, **changed))) > CARD.budget
    one = replace(textbook, work=replace(textbook.work, attention="flash"))
    assert [(offer.kind, offer.value) for offer in verdict(one).offers][:1] == [("logits", "last")]
    small = replace(textbook, place=of_bytes(20 * GiB, "20 GiB"))
    assert (verdict(small).offers[0].kind, verdict(small).offers[0].value) == ("wasteful", "attention,logits,piece")


@pytest.mark.parametrize(
    ("batch", "options", "gib", "longest"),
    [
        (1, {}, 19.171, 66_975),
        (1, {"weight_dtype": "nf4"}, 9.936, 142_619),
        (1, {"weight_dtype": "Q4_K_M"}, 8.788, 152_024),
        (4, {}, 31.171, 16_743),
    ],
)
def test_llama_3_8b_on_a_24_gb_card(batch: int, options: dict[str, Any], gib: float, longest: int) -> None:
    work = Workload(batch=batch, source_len=32_768, dtype="float16", piece=2048, **options)
    found = verdict(SetUp(LLAMA, work, CARD))
    assert (round(found.total / GiB, 3), found.longest) == (gib, longest)
    assert found.longest_bytes <= CARD.budget < found.next_bytes
    assert widest(found.set_up) == "decoder MLP"
    offers = [(offer.kind, offer.value) for offer in found.offers]
    if batch == 4:
        assert offers == [("bits", "nf4"), ("tokens", 16_743), ("chats", 2), ("card", "A100 40 GB")]
    elif options:
        assert offers == [("tokens", longest), ("chats", 4), ("bits", "float16")]
    else:
        assert offers == [("tokens", longest), ("chats", 2)]


def test_numbers_of_smollm2_and_gpt2_medium() -> None:
    smol = need(SetUp(SMOLLM2, Workload(source_len=8192, piece=2048), of_bytes(8 * GiB, "8 GiB")))
    assert (smol.weights, smol.kv_cache, smol.transient) == (538_060_032, 377_487_360, 53_035_264)
    place = of_bytes(8 * GiB, "8 GiB")
    for attention, gib, longest in (("flash", 7.380, 1332), ("eager", 8.902, 806)):
        set_up = SetUp(MEDIUM, Workload(source_len=1024, training=True, attention=attention), place)
        found = verdict(set_up)
        assert round(found.total / GiB, 3) == gib
        assert (found.longest, found.ceiling) == (min(1024, longest), 1024)
        assert total(at_length(set_up, longest)) <= place.budget < total(at_length(set_up, longest + 1))
        assert widest(set_up) == "loss"


def test_where_every_layer_has_a_window_a_longer_text_takes_no_more() -> None:
    """Read in pieces, Mistral keeps a window of keys and values; Gemma's few layers without one keep them all."""
    for config, unlimited in ((MISTRAL, True), (GEMMA, False), (LLAMA, False)):
        found = verdict(SetUp(config, Workload(source_len=32_768, dtype="float16", piece=2048), CARD))
        assert found.unlimited == unlimited
        if not unlimited:
            assert found.next_bytes > CARD.budget
        assert ("tokens" in {offer.kind for offer in found.offers}) != unlimited
    whole = verdict(SetUp(MISTRAL, Workload(source_len=32_768, dtype="float16"), CARD))  # its streams grow
    assert not whole.unlimited and whole.longest < 100_000
    assert verdict(SetUp(MISTRAL, Workload(source_len=9, dtype="float16", piece=2048), CARD)).longest == LONGEST
    # Where so many ids alone would not fit, the answer stays exact.
    tight = of_bytes(15 * GiB, "tight")
    found = verdict(SetUp(MISTRAL, Workload(source_len=9, dtype="float16", piece=2048), tight))
    assert found.unlimited and found.longest < LONGEST and found.longest_bytes <= tight.budget < found.next_bytes


def test_a_table_of_positions_is_a_ceiling() -> None:
    found = verdict(SetUp(GPT2, Workload(source_len=1000), CARD))
    assert (found.longest, found.ceiling) == (1024, 1024)
    assert found.next_bytes <= CARD.budget  # it would fit, and cannot run
    assert ("tokens", 1024) in [(offer.kind, offer.value) for offer in found.offers]
    assert verdict(SetUp(GPT2, Workload(source_len=1024), CARD)).offers[0].kind == "chats"


def test_nothing_fits() -> None:
    found = verdict(SetUp(LLAMA, Workload(source_len=500), of_bytes(5 * GiB, "5 GiB")))
    assert (found.fits, found.longest, found.longest_bytes, found.chats) == (False, 0, 0, 0)
    assert found.next_bytes == total(at_length(found.set_up, 1)) > 5 * GiB
    assert {offer.kind for offer in found.offers} <= {"card"}


def test_fragments_are_of_all_but_the_weights() -> None:
    for set_up in SET_UPS[::7]:
        plain = need(set_up)
        for percent in (0, 5, 10):
            loses = lost(replace(set_up, fragments=percent))
            assert loses == -(-(plain.total - plain.weights) * percent // 100)


def test_a_curve_is_the_same_at_every_length() -> None:
    set_up = SetUp(GPT2, Workload(source_len=7), CARD, fragments=5)
    lengths = (1, 100, 5000)  # past the table of positions as well
    found = curve(set_up, lengths)
    assert [n for n, _, _ in found] == list(lengths)
    for n, memory, loses in found:
        assert isinstance(memory, Memory)
        assert (memory, loses) == (need(at_length(set_up, n)), lost(at_length(set_up, n)))


def test_drawn_models_of_every_kind() -> None:
    for case in cases(61, 40):
        for way in ({}, {"training": True}, {"training": True, "rank": 2}):
            options: dict[str, Any] = {**case.lengths, "dtype": case.dtype, **way}
            work = Workload(**options)
            for share in (3, 4, 6):
                place = of_bytes(share * memory_plan(case.config, work).total // 4, "mine")
                found = verdict(SetUp(case.config, work, place, fragments=5))
                check_offers(found)
                assert found.longest_bytes <= place.budget
                assert found.next_bytes > place.budget or found.longest in (found.ceiling, LONGEST)


def test_larger_cards_and_more_of_them() -> None:
    work = Workload(source_len=4096, dtype="float16", weight_dtype="nf4", batch=60, piece=2048)
    found = verdict(SetUp(LLAMA, work, on_card("T4")))
    offered = {offer.kind: offer for offer in found.offers}
    check_offers(found)
    assert offered["card"].set_up.place.device is not None
    mac = verdict(SetUp(LLAMA, Workload(source_len=200_000, batch=5, dtype="float16", piece=2048), on_card("M3 Max")))
    assert {offer.kind: offer.value for offer in mac.offers}["card"] == "M2 Ultra"
    assert "cards" not in {offer.kind for offer in mac.offers}
    two = verdict(SetUp(LLAMA, Workload(source_len=100), on_card("RTX 4090", 1)))
    assert {offer.kind: offer.value for offer in two.offers} == {"bits": "float16", "card": "RTX 5090", "cards": 2}


def test_it_is_plain_data() -> None:
    found = verdict(SetUp(LLAMA, Workload(source_len=100, dtype="float16", batch=2), on_machine()))
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["set_up"]["work"]["dtype"] == "float16" and plain["need"]["total"] == found.need.total
    assert plain["offers"] == [offer.to_dict() for offer in found.offers]
    assert Offer("tokens", 5, found.set_up, 7).to_dict() == {"kind": "tokens", "value": 5, "total": 7}


def test_refusals() -> None:
    set_up = SetUp(GPT2, Workload(source_len=5), CARD)
    with pytest.raises(ConfigError, match=r"fragments \(101\) must be from 0 to 100"):
        verdict(replace(set_up, fragments=101))
    with pytest.raises(ConfigError, match=r"source_len \(0\) must be at least 1"):
        verdict(at_length(set_up, 0))
    with pytest.raises(ConfigError, match=r"needs a head for each"):
        verdict(replace(set_up, place=CARD.with_cards(13)))


def test_small_models_as_well() -> None:
    tiny = ModelConfig(vocab_size=50, d_model=32, n_heads=4, d_ff=64, n_decoder_layers=2, n_ctx=64, position="rotary")
    found = verdict(SetUp(tiny, Workload(source_len=1), of_bytes(MiB, "1 MiB")))
    assert found.fits and found.longest_bytes <= MiB < found.next_bytes


def test_sinusoids_set_no_end_to_a_text_and_a_learned_table_does() -> None:
    textbook = PRESETS["lesson-encoder"].config
    work = Workload(batch=32, source_len=50, training=True)
    budget = of_bytes(8 * 10**9, "8 GB")
    sinusoids = verdict(SetUp(textbook, work, budget))
    assert sinusoids.ceiling is None and sinusoids.longest > textbook.n_ctx == 512
    learned = verdict(SetUp(replace(textbook, position="learned"), work, budget))
    assert (learned.ceiling, learned.longest) == (512, 512)
