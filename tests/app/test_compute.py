"""Compute: each thing that it is for, against core.plan, and the links that bring it back."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, expect

from app.kit import numbers
from app.rooms.compute import devices, words
from app.sizes import words as sizes_words
from app.sizes.setup import Setup
from core.plan import DEVICES, PRESETS, parameters, plan
from core.plan.operations import ideal_bytes
from tests.app.browsing import once
from tests.app.planning_screen import visiting
from tests.app.script import headline, said, slider, visit

APP = "app/main.py"
GPT2 = Setup("gpt2", PRESETS["gpt2"].config, 1, 1024, 0, attention="eager")
EAGER = {"plan_attention": "eager"}
ROOF = {"compute_part": words.COMPUTE_PARTS["roofline"], "plan_model": "gpt2"}
CARD = next(device for device in DEVICES if device.name == "RTX 4090")


# the whole page, without a browser


def test_a_link_says_model_attention_layers_and_step() -> None:
    found = plan(replace(GPT2.config, n_decoder_layers=16), source_len=1024, attention="efficient")
    app = visit("Compute", plan_model="gpt2", plan_attention="efficient", plan_layers="16")
    assert f"{numbers.count(found.flops)}FLOP and {numbers.both(found.traffic)}" in headline(app)
    useful = sum(op.times * op.useful_flops for op in found.prefill)
    assert f"{numbers.count(useful)}FLOP are of use" in said(app)
    one = visit("Compute", plan_model="gpt2", compute_step="one token", **EAGER)
    assert f"{numbers.count(plan(GPT2.config, GPT2.workload).decode_flops)}FLOP" in headline(one)
    assert "one token after 1,024" in headline(one)


def test_a_larger_batch_feeds_each_byte_more_arithmetic() -> None:
    """Lesson E8: decoding is limited by memory."""
    app = visit("Compute", **ROOF)
    assert "153 FLOPs" in headline(app)
    assert f"The next token gives {intensity(1):.1f} FLOPs per byte: memory is the limit" in said(app)
    slider(app, "batch").set_value(4).run()
    assert f"The next token gives {intensity(4):.1f} FLOPs per byte: memory is the limit" in said(app)


def test_a_figure_in_a_link_moves_the_roof_and_one_that_cannot_be_read_is_named() -> None:
    app = visit("Compute", **ROOF, compute_card=CARD.name, cards="rtx-4090:2016:165.2,abacus:1:1")
    assert headline(app) == words.ROOF.format(device=CARD.name, ridge=CARD.ridge / 2)
    assert "“abacus:1:1”" in said(app)


def test_an_rnn_a_translator_and_parameters_are_counted_in_their_sentences() -> None:
    """Lessons E9, E10, B5 and D5."""
    assert f"{numbers.count(4 * 50 * 512**2)}FLOP in 50 steps" in headline(
        visit("Compute", plan_model="lesson-encoder", compute_part=words.COMPUTE_PARTS["rnn"])
    )
    cross = visit("Compute", compute_part=words.COMPUTE_PARTS["cross"], plan_model="transformer-base", plan_batch="32")
    assert headline(cross).startswith("Transformer base reads 32 × ")
    found = visit("Compute", plan_model="lesson-encoder", compute_part=words.COMPUTE_PARTS["parameters"])
    assert f"{parameters(PRESETS['lesson-encoder'].config).total:,} parameters" in headline(found)
    assert "It has 93,324,544 parameters, not about 65 M" in said(found)


# in a browser


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_operations_with_their_causal_counts_and_one_token(browser: Browser, address: str, scheme: str) -> None:
    """Lesson E7: rows with exact constants beside the O(), of the whole text and of one token."""
    with visiting(browser, address, scheme) as screen:
        screen.see("Compute", plan_model="gpt2", **EAGER)
        found = plan(GPT2.config, GPT2.workload)
        assert f"{numbers.count(found.flops)}FLOP and {numbers.both(found.traffic)}" in screen.headline
        useful = sum(op.times * op.useful_flops for op in found.prefill)
        screen.text(f"{numbers.count(useful)}FLOP are of use")
        bars = {trace["name"]: trace for trace in screen.traces()}
        assert bars[words.GROUPS["mlp"]]["y"] == ["FLOPs", "FLOPs, causal", "traffic"]
        assert abs(bars[words.GROUPS["mlp"]]["x"][0] - 100 * 12 * 16 * 1024 * 768**2 / found.flops) < 1e-9
        table, _ = screen.table("CSV: operations")
        rows = table.set_index("operation")
        assert rows.loc["q, k, v", "flops"] == 12 * 6 * 1024 * 768**2
        assert [rows.loc["q, k, v", column] for column in ("formula", "order")] == ["6Td²", "O(b·n·d²)"]
        assert rows.loc["scores q kᵀ", "useful"] == 12 * 1024 * 1025 * 768
        screen.page.keyboard.press("Escape")
        screen.part(sizes_words.STEPS["decode"])
        screen.text(re.compile("one token after 1,024"))
        assert f"{numbers.count(found.decode_flops)}FLOP" in screen.headline
        screen.page.wait_for_url(lambda url: "compute_step=one+token" in url)


@pytest.mark.thorough
def test_the_batch_slider_moves_the_limit(browser: Browser, address: str) -> None:
    """Lesson E8: decoding is limited by memory; a larger batch feeds each byte more arithmetic."""
    with visiting(browser, address) as screen:
        screen.see("Compute", **ROOF)
        text = screen.text(re.compile("The next token gives")).inner_text()
        assert f"The next token gives {intensity(1):.1f} FLOPs per byte: memory is the limit" in text
        assert "153 FLOPs" in screen.headline
        screen.move("batch", 3)  # 2, 3, 4
        screen.text(
            re.compile(f"The next token gives {intensity(4):.1f} FLOPs per byte: memory is the limit.*a batch of 4")
        )
        diamonds = [trace for trace in screen.traces() if "all of it" in trace["name"]]
        assert len(diamonds) == 2


def intensity(batch: int) -> float:
    """FLOPs a byte of one more token in 16 bits, attention fused."""
    found = plan(GPT2.config, batch=batch, source_len=1024, dtype="bfloat16", attention="flash")
    return found.decode_flops / ideal_bytes(found.decode)


@pytest.mark.thorough
def test_a_card_of_ones_own(browser: Browser, address: str) -> None:
    """A figure in a link moves the roof, a part of the link that says nothing is named, and the cards can be opened."""
    with visiting(browser, address) as screen:
        screen.see("Compute", **ROOF, compute_card=CARD.name, cards="rtx-4090:2016:165.2,abacus:1:1")
        screen.says(words.ROOF.format(device=CARD.name, ridge=CARD.ridge / 2))
        screen.text("“abacus:1:1”")
        roof = screen.traces()[0]
        assert roof["x"][1] == pytest.approx(CARD.ridge / 2) and roof["y"][1] == CARD.teraflops
        screen.page.wait_for_url(lambda url: "cards=rtx-4090%3A2016%3A165.2" in url and "abacus" not in url)
        screen.page.get_by_text(words.CARDS, exact=True).click()
        screen.text(words.CARDS_NOTE)
        screen.page.locator("[data-testid=stDataFrame]").last.wait_for()


@pytest.mark.thorough
def test_a_figure_typed_into_the_table_of_cards(browser: Browser, address: str) -> None:
    """It moves the roof and is in the link; one that is no rate gets a sentence, and the maker's stays."""
    with visiting(browser, address) as screen:
        screen.see("Compute", **ROOF, compute_card=DEVICES[0].name)
        screen.page.get_by_text(words.CARDS, exact=True).click()
        screen.text(words.CARDS_NOTE)
        grid = screen.page.locator(".st-key-compute_cards_box .dvn-scroller").first
        canvas = screen.page.locator(".st-key-compute_cards_box [data-testid=data-grid-canvas]")
        grid.scroll_into_view_if_needed()

        def is_at(column: int) -> None:
            """The table moves what is selected a moment after a click or a key."""
            cell = screen.page.locator(f".st-key-compute_cards_box [data-testid=glide-cell-{column}-0]")
            expect(cell).to_have_attribute("aria-selected", "true")

        def typed(figure: str) -> None:
            grid.click(position={"x": 40, "y": 52})  # the first card's name
            for column in range(2):  # past the memory that it has, which is not to be typed over
                is_at(column)
                canvas.press("ArrowRight")
            is_at(2)
            canvas.press("Enter")
            box = screen.page.locator("#portal input")
            box.fill(figure)
            box.press("Enter")

        typed("500")
        card = devices.changed(DEVICES[0], {"gigabytes_per_second": 500})
        screen.says(words.ROOF.format(device=card.name, ridge=card.ridge))
        ridge = "document.querySelector('.js-plotly-plot')?.data?.[0]?.x[1]"  # drawn behind the sentence
        assert once(screen.page, f"wanted => Math.abs({ridge} - wanted) < 1e-6 * wanted", arg=card.ridge)
        screen.page.wait_for_url(lambda url: f"cards={devices.slug(card)}%3A500%3A{card.teraflops:g}" in url)
        screen.idle()  # the table is the last that the script draws
        typed("0")
        screen.text(words.CARDS_WRONG.format(card=card.name, most=int(devices.MOST)))
        screen.says(words.ROOF.format(device=card.name, ridge=DEVICES[0].ridge))


@pytest.mark.parametrize(
    ("text", "figures", "wrong"),
    [
        ("", None, 0),
        ("rtx-4090:2016:100", (2016, 100), 0),
        ("rtx-4090:1008:165.2", None, 0),
        ("rtx-4090:0:100", None, 1),
        ("rtx-4090:nan:100", None, 1),
        ("rtx-4090:inf:100", None, 1),
        ("rtx-4090:1e9:100", None, 1),
        ("rtx-4090:100", None, 1),
        ("abacus:1:1,rtx-4090:2016:100.5", (2016, 100.5), 1),
        ("<b>:1:1", None, 1),
    ],
)
def test_the_figures_of_a_link(text: str, figures: tuple[float, float] | None, wrong: int) -> None:
    found, sentences = devices.read(text)
    assert len(sentences) == wrong
    assert [card.name for card in found] == [card.name for card in DEVICES]
    mine = [card for card in found if card not in DEVICES]
    assert [(card.gigabytes_per_second, card.teraflops) for card in mine] == ([figures] if figures else [])
    assert devices.read(devices.written(found)) == (found, [])
    assert all(card.source.startswith("changed here") for card in mine)


def test_no_link_is_too_long_to_read() -> None:
    found, sentences = devices.read("x:1:1," * 100_000)
    assert found == list(DEVICES) and len(sentences) <= devices.LONGEST


@pytest.mark.thorough
def test_an_rnn_beside_attention(browser: Browser, address: str) -> None:
    """Lesson E9: n·d² in n steps against n²·d in one; the lines cross at n = d."""
    with visiting(browser, address) as screen:
        screen.see("Compute", compute_part=words.COMPUTE_PARTS["rnn"])
        assert f"{numbers.count(4 * 50 * 512**2)}FLOP in 50 steps" in screen.headline
        screen.text(re.compile("in 1 step"))
        lines = {trace["name"]: dict(zip(trace["x"], trace["y"], strict=True)) for trace in screen.traces()}
        rnn, maps = lines[words.RNN_LINES["rnn"]], lines[words.RNN_LINES["attention"]]
        assert rnn[512] == maps[512] and rnn[256] > maps[256] and rnn[1024] < maps[1024]


@pytest.mark.thorough
def test_the_terms_of_an_encoder_decoder(browser: Browser, address: str) -> None:
    """Lesson E10: n², m² and nm, whose sum is the trace's."""
    with visiting(browser, address) as screen:
        screen.see("Compute", False, compute_part=words.COMPUTE_PARTS["cross"])
        screen.page.get_by_role("button", name=words.TAKE_TRANSFORMER).click()
        screen.says("Transformer base reads 32 × 50 tokens and writes 32 × 50.")
        wanted = plan(PRESETS["transformer-base"].config, batch=32, source_len=50, target_len=50).flops
        sum_of = "document.querySelector('.js-plotly-plot')?.data?.[0]?.x.reduce((sum, x) => sum + x, 0)"
        once(screen.page, f"wanted => {sum_of} === wanted", arg=wanted)  # before, the encoder's own sizes are drawn
        at_once, by_word = screen.traces()
        assert sum(by_word["x"]) < sum(at_once["x"]) == wanted
        screen.page.wait_for_url(lambda url: "plan_model=transformer-base" in url)


@pytest.mark.thorough
def test_parameters_by_depth_and_beside_known_models(browser: Browser, address: str) -> None:
    """Lessons B5, D4 and D5."""
    with visiting(browser, address) as screen:
        screen.see("Compute", compute_part=words.COMPUTE_PARTS["parameters"])
        own = parameters(PRESETS["lesson-encoder"].config)
        assert f"{own.total:,} parameters" in screen.headline
        screen.text(re.compile("It has 93,324,544 parameters, not about 65 M"))
        totals = [sum(bars) for bars in zip(*(trace["y"] for trace in screen.traces()), strict=True)]
        assert {b - a for a, b in pairwise(totals)} == {own.encoder.layer.total}
        screen.part(words.COMPUTE_PARTS["known"])
        screen.text(re.compile("known models, counted from their shapes"))
        table, _ = screen.table("CSV: models")
        known = dict(zip(table["model"], table["parameters"], strict=True))
        assert (known["BERT base"], known["GPT-2 small"]) == (109_482_240, 124_439_808)
        assert known[words.YOURS] == own.total


@pytest.mark.thorough
def test_a_link_brings_back_what_was_seen(browser: Browser, address: str) -> None:
    with visiting(browser, address) as screen:
        screen.see("Compute", plan_model="gpt2")
        screen.choose("plan_attention", "efficient")
        screen.move("layers", 1)
        screen.page.wait_for_url(lambda url: "plan_attention=efficient" in url and "plan_layers=16" in url)
        found = plan(replace(GPT2.config, n_decoder_layers=16), source_len=1024, attention="efficient")
        wanted = f"{numbers.count(found.flops)}FLOP and {numbers.both(found.traffic)}"
        screen.text(wanted)  # the address is written first
        seen = screen.headline
        assert wanted in seen
        link = screen.page.url
        with visiting(browser, address) as other:
            other.page.goto(link)
            other.says(seen)
