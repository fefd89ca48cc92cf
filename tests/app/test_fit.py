"""Does it fit: the question of Memory, its answer in words, and that what it offers makes it true."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.kit.numbers import rounded_down, short
from app.rooms.memory import checked, figures, scale, tabs, words
from app.rooms.memory import question as asking
from app.rooms.memory.question import MACHINE, Question
from app.sizes.setup import Setup
from app.transport import messages
from core.model.config import ModelConfig
from core.plan import DEVICES, PRESETS, memory_plan, verdict
from core.plan.verdict import curve, total

LLAMA = Setup("Llama 3 8B", PRESETS["llama-3-8b"].config, 1, 32_768, 0, dtype="float16", piece=2048)
GPT2 = Setup("GPT-2 medium", PRESETS["gpt2-medium"].config, 1, 1024, 0, training=True)
ENCODER = Setup("BERT base", PRESETS["bert-base"].config, 32, 128, 0)
PAIR = Setup("T5 small", PRESETS["t5-small"].config, 4, 256, 64)
WINDOWED = Setup("Mistral 7B", PRESETS["mistral-7b"].config, 1, 8192, 0, dtype="float16")
ADAPTERS = replace(LLAMA, training=True, piece=0, rank=16, source_len=2048)
SMALL: dict[str, Any] = {"vocab_size": 1000, "d_model": 256, "n_heads": 8, "d_ff": 512}
LATENT = Setup(
    "latent attention",
    ModelConfig(**SMALL, n_decoder_layers=4, d_head=48, position="rotary", rotary_fraction=1 / 3, kv_rank=64, d_v=32),
    1,
    512,
    0,
)
DISENTANGLED = Setup(
    "disentangled attention",
    ModelConfig(**SMALL, n_encoder_layers=4, position="disentangled", position_terms=("c2p", "p2c")),
    1,
    128,
    0,
)
SETUPS = (LLAMA, GPT2, ENCODER, PAIR, WINDOWED, ADAPTERS, LATENT, DISENTANGLED)
GiB = 1 << 30


def asked(setup: Setup = LLAMA, card: str = "RTX 4090", cards: int = 1, fragments: int = 0) -> Question:
    return Question(setup, card, cards, fragments)


@pytest.mark.parametrize(
    ("said", "n"),
    [("32768", 32_768), ("32,768", 32_768), ("32.768", 32_768), ("32 768", 32_768), ("32k", 32_768), ("32 K", 32_768),
     ("1M", 1 << 20), ("1.5k", 1536), ("1,5k", 1536), ("1", 1), (" 13 ", 13),
     ("0", None), ("", None), ("-3", None), ("many", None), ("2M", None), ("3,2", None), ("1e5", None), ("12,34,5", None)],
)  # fmt: skip
def test_tokens_are_read_as_people_type_them(said: str, n: int | None) -> None:
    assert asking.tokens_asked(said) == n


@pytest.mark.parametrize("bits", [*asking.BITS, *asking.GGUF])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_bits_are_those_that_were_asked_for(bits: str, dtype: str) -> None:
    setup = asking.with_bits(replace(LLAMA, dtype=dtype), bits)
    assert asking.bits_of(setup) == bits
    assert setup.dtype == ("float32" if bits == "32" else dtype if dtype != "float32" else "float16")


def test_a_size_has_as_few_digits_as_a_picture_needs() -> None:
    sizes = {
        0: "0 bytes",
        1023: "1,023 bytes",
        924 << 20: "924 MiB",
        5 << 20: "5.0 MiB",
        140 * GiB: "140 GiB",
        -GiB: "−1.0 GiB",
    }
    for n, said in sizes.items():
        assert short(n) == said
    assert short(GiB - 1) == "1.0 GiB"
    assert [rounded_down(n) for n in (66_920, 999, 1000, 142_568, 7)] == [66_900, 999, 1000, 142_000, 7]


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.title)
@pytest.mark.parametrize("card", ["T4", "RTX 4090", "H100 SXM"])
def test_the_answer_says_what_core_says(setup: Setup, card: str) -> None:
    question = asked(setup, card)
    found = asking.answered(question, question.place)
    assert found.total == memory_plan(setup.config, setup.workload).total
    told = asking.said(question, found)
    plain = str(told["plain"])
    assert told["fits"] == (found.total <= found.budget)
    assert plain.startswith(words.FITS if told["fits"] else short(found.total - found.budget))
    assert "".join(str(piece["text"]) for piece in told["rest"]) in plain  # type: ignore[union-attr]
    if found.fits and not found.unlimited and setup.config.position != "learned":
        n = rounded_down(found.longest)
        assert f"{n:,} tokens" in plain and n <= found.longest


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.title)
@pytest.mark.parametrize("card", ["T4", "RTX 3060 12 GB", "RTX 4090", "H200"])
def test_each_offer_alone_is_enough_as_it_is_pressed(setup: Setup, card: str) -> None:
    """A button, pressed, gives the setup whose bytes it says."""
    question = asked(setup, card)
    found = asking.answered(question, question.place)
    for choice, offer in zip(asking.offers(found), found.offers, strict=True):
        changed = pressed(question, choice.set)
        taken = total(changed.on(changed.place))
        assert taken <= changed.place.budget, (choice.title, offer.kind)
        if offer.kind != "tokens":  # which are rounded down
            assert taken == offer.total, (choice.title, offer.kind)
        assert short(offer.total) in choice.beside


def pressed(question: Question, fill: Any) -> Question:
    setup = question.setup
    for name, text in fill.items():
        if name == "source":
            setup = replace(setup, source_len=int(text))
        elif name == "batch":
            setup = replace(setup, batch=int(text))
        elif name == "bits":
            setup = asking.with_bits(setup, text)
        elif name == "kernel":
            assert text == "fused"
            setup = replace(setup, attention="flash")
        elif name == "logits":
            setup = replace(setup, logits=text)
        elif name == "piece":
            setup = replace(setup, piece=next(n for n, said in asking.PIECES.items() if said == text))
        elif name == "kv":
            setup = replace(setup, kv_dtype=text)
        elif name == "recompute":
            setup = replace(setup, recompute=text)
        elif name == "optimizer":
            setup = replace(setup, optimizer=text)
        elif name == "rank":
            setup = replace(setup, rank=int(text))
        elif name == "card":
            question = replace(question, card=text)
        elif name == "cards":
            question = replace(question, cards=int(text))
        else:
            assert (name, text) == ("phase", "adapters")
    return replace(question, setup=setup)


def test_two_sizes_that_differ_are_never_said_alike() -> None:
    question = asked()
    found = asking.answered(question, question.place)
    for off in (-1, 1, 1 << 20):
        plain = str(asking.headline(question, found, found.budget + off)["plain"])
        budget = plain.split(" of ")[1].split(".")[0]
        assert f" {budget} of {budget}" not in plain


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.title)
@pytest.mark.parametrize("card", [MACHINE, "T4", "H200"])
@pytest.mark.parametrize("zoom", ["need", "card"])
@pytest.mark.parametrize("predicted", [False, True])
def test_both_axes_hold_what_is_asked_about(setup: Setup, card: str, zoom: str, predicted: bool) -> None:
    question = asked(setup, card)
    found = asking.answered(question, question.place)
    scaled = scale.scale(question, found, zoom, predicted)
    lengths = scale.lengths(scaled.ends, setup.source_len)
    assert lengths == sorted(set(lengths)) and lengths[0] >= 1 and len(lengths) <= 3 * scale.PLACES
    assert setup.source_len in lengths or setup.source_len > scaled.ends
    assert lengths[scale.place_of(lengths, setup.source_len)] <= setup.source_len or setup.source_len < lengths[0]
    ticks = scale.byte_ticks(scaled.top)
    assert 2 <= len(ticks) <= 12 and all(0 <= tick["bytes"] <= scaled.top for tick in ticks)  # type: ignore[operator]
    assert scaled.is_card or scaled.top < found.budget
    if setup.config.position == "learned":
        assert scaled.ends <= setup.config.n_ctx
    if (
        predicted
        and found.longest
        and not found.unlimited
        and setup.config.position != "learned"
        and found.longest < 1 << 18
    ):
        assert 1.3 <= scaled.ends / found.longest <= 3.2


@pytest.mark.thorough(but=36)
@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.title)
@pytest.mark.parametrize("card", [MACHINE, "RTX 4090", "M3 Max", "MI300X"])
@pytest.mark.parametrize("tab", words.FIT_TABS)
def test_every_tab_can_be_drawn_of_every_setup(setup: Setup, card: str, tab: str) -> None:
    question = asked(setup, card)
    place = question.place
    found = asking.answered(question, place)
    blocks = tabs.blocks(tab, tabs.Beside(question, found, place))
    assert blocks
    for block in blocks:
        if block["kind"] == "table":
            assert all(len(row) == len(block["columns"]) == len(block["numeric"]) for row in block["rows"])
        if block["kind"] == "switch":
            assert (block["sentence"] and len(block["options"]) > 1) or block["name"] == "kv_heads"
        if block["kind"] == "bars":
            assert len(block["rows"]) == len(DEVICES) and all(0 <= row["share"] <= 1 for row in block["rows"])


def test_the_cards_that_are_ticked_are_those_on_which_it_fits() -> None:
    question = asked(replace(LLAMA, batch=4))
    place = question.place
    bars = next(
        block
        for block in tabs.cards(tabs.Beside(question, asking.answered(question, place), place))
        if block["kind"] == "bars"
    )
    for row in bars["rows"]:
        there = replace(question, card=row["title"], cards=1)
        assert row["fits"] == verdict(there.on(there.place)).fits


@pytest.mark.parametrize("sets", [1, 8, 32])
def test_sets_of_keys_can_be_put_back_as_the_model_was_built(sets: int) -> None:
    config = replace(LLAMA.config, n_kv_heads=sets)
    question = replace(asked(replace(LLAMA, config=config)), built=LLAMA.config.n_kv_heads)
    place = question.place
    blocks = tabs.assumptions(tabs.Beside(question, asking.answered(question, place), place))
    (switch,) = [block for block in blocks if block.get("name") == "kv_heads"]
    assert switch["value"] == str(sets) and [one["value"] for one in switch["options"]] == ["32", "8", "1"]


def test_fragments_are_of_all_but_the_weights() -> None:
    plain, broken = asked(), asked(fragments=10)
    a, b = (asking.answered(one, one.place) for one in (plain, broken))
    assert b.total - a.total == pytest.approx((a.total - a.need.weights) * 0.1, abs=1)


def test_the_page_says_the_errors_that_were_measured() -> None:
    """The table of RESULTS.md: set-up, said, alive, error, allocator, error, resident, error, given back, error."""
    text = (Path(__file__).parents[2] / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    section = text.split("## Does it fit, said and measured")[1].split("### ")[0]
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    rows = {cells[0]: [float(re.sub(r"[,% ]", "", cell)) for cell in cells[1:]] for cells in lines[2:]}
    for row in checked.ROWS:
        said, _, _, allocated, _, resident, *_ = rows[row.title]
        assert (row.said, row.allocated, row.resident) == (said, allocated, resident)
    trained = {name for name in rows if "training" in name or name.startswith("the same, ")}
    runs = {name: cells for name, cells in rows.items() if name not in trained}
    assert len(runs) == checked.RUNS
    assert max(abs(cells[4]) for cells in runs.values()) == checked.OFF
    assert max(rows[name][4] for name in trained) == checked.TRAINING
    assert max(100 * (cells[5] / cells[0] - 1) for cells in runs.values()) == pytest.approx(checked.RESIDENT, abs=0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_those_who_follow_a_class_see_the_same_sums(theme: Any) -> None:
    question = asked()
    found = asking.answered(question, question.place)
    rows = [(n, memory.to_dict()) for n, memory, _ in curve(found.set_up, (1, 8192, 32_768))]
    names = ("weights", "kv_cache", "transient")
    table = pd.DataFrame([{"n": n, **{name: parts[name] / (1 << 20) for name in names}} for n, parts in rows])
    drawn: Any = figures.fit(table, found.budget / (1 << 20), 32_768, theme=theme)
    sums = [sum(trace.y[i] for trace in drawn.data) for i in range(3)]
    assert sums == pytest.approx([parts["total"] / (1 << 20) for _, parts in rows])
    assert {trace.stackgroup for trace in drawn.data} == {"all"}
    assert [shape.y0 for shape in drawn.layout.shapes if shape.y0 == shape.y1] == [found.budget / (1 << 20)]


# on the page


def memory_page() -> None:
    from app.rooms.memory import view
    from app.session import chosen

    chosen.begin()
    view.show()


def opened(**params: str) -> AppTest:
    app = AppTest.from_function(memory_page, default_timeout=60)
    for name, value in ({"plan_model": "llama-3-8b", "plan_phase": "run", "plan_dtype": "float16"} | params).items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def told(app: AppTest) -> dict[str, Any]:
    (found,) = [
        messages.unpack(item.proto.bytes)[0]  # type: ignore[attr-defined]
        for item in app.get("bidi_component")
        if item.proto.component_name.endswith("fit")  # type: ignore[attr-defined]
    ]
    return found


def test_a_link_without_a_part_opens_with_the_question() -> None:
    seen = told(opened(plan_source="32768", plan_piece="2,048 tokens at a time", memory_card="RTX 4090"))
    assert seen["verdict"]["plain"].startswith("Fits: 19.2 of 23.3 GiB. Up to 66,")
    assert seen["places"][seen["at"]]["n"] == 32_768 and seen["crossing"]["n"] > 66_000
    assert [part["id"] for part in seen["parts"]] == ["weights", "kv_cache", "transient"]
    for place in seen["places"]:
        assert place["all"] == sum(place["bytes"]) and place["over"] == (place["all"] > seen["budget"]["bytes"])


def test_too_much_says_by_how_much_and_each_offer_can_be_pressed() -> None:
    seen = told(
        opened(plan_source="32768", plan_batch="4", plan_piece="2,048 tokens at a time", memory_card="RTX 4090")
    )
    assert (
        seen["verdict"]["plain"].startswith("7.9 GiB too much: 31.2 of 23.")
        or "7.8 GiB too much" in seen["verdict"]["plain"]
    )
    assert seen["offers"]["label"] == words.FITS_WITH and 1 <= len(seen["offers"]["list"]) <= 4
    assert all(one["set"] for one in seen["offers"]["list"])


@pytest.mark.thorough(but=5)
@pytest.mark.parametrize("model", ["bert-tiny", "gpt2", "transformer-base", "t5-small", "mistral-7b", "llama-3.1-405b"])
@pytest.mark.parametrize("phase", ["run", "train", "train adapters"])
def test_the_question_can_be_asked_of_every_model(model: str, phase: str) -> None:
    seen = told(opened(plan_model=model, plan_phase=phase, plan_dtype="float32", memory_card="T4", memory_predict="on"))
    assert seen["verdict"]["plain"] and seen["places"] and seen["predict"]["on"]
    assert {item["name"] for item in seen["sentence"] if "name" in item} >= {
        "model",
        "bits",
        "source",
        "batch",
        "phase",
        "card",
    }


def test_a_wrong_card_in_a_link_is_told_and_nothing_is_lost() -> None:
    app = opened(memory_card="Abacus", memory_predict="soon")
    assert "Abacus" in " ".join(item.value for item in app.text)
    assert told(app)["verdict"]["plain"]
