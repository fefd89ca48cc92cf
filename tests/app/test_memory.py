"""Memory and Compute: tables, sentences, sliders, links and the run that is measured, on the page as on paper."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser
from streamlit.testing.v1 import AppTest
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from app.kit import numbers
from app.rooms.compute import tables as compute_tables
from app.rooms.compute import words as compute_words
from app.rooms.memory import tables
from app.rooms.memory import words as memory_words
from app.shell import words as shell_words
from app.sizes import pasted, words
from app.sizes.setup import Setup, Sizes, shaped
from core.errors import ConfigError, HeadlightError, TooLarge
from core.model.config import ModelConfig
from core.plan import DEVICES, PRESETS, longest_fit, parameters, plan, prefill, trace_shapes
from core.plan import live_memory as measure
from tests.app.browsing import box_of, once
from tests.app.planning_screen import visiting
from tests.app.script import box, headline, keyed, said, slider, visit

APP = "app/main.py"
MiB = 1 << 20
LESSON = Setup("lesson", PRESETS["lesson-encoder"].config, 32, 50, 0, attention="eager")
EAGER = {"plan_attention": "eager"}  # as lectures count it
SMALL = ModelConfig(vocab_size=50, d_model=32, n_heads=4, d_ff=64, n_decoder_layers=2, n_ctx=64)
TRANSLATOR = ModelConfig(
    vocab_size=50, d_model=32, n_heads=4, d_ff=64, n_encoder_layers=2, n_decoder_layers=2, position="sinusoidal", n_ctx=64
)  # fmt: skip

# tables


def cell(table: Any, row: str, column: str) -> Any:
    return table.loc[row, column]


def test_a_memory_about_as_large_as_the_one_that_is_asked_about_tells_its_answer() -> None:
    GiB = 1 << 30
    budgets = [("this machine", round(7.98 * GiB)), ("RTX 4090", 24 * GiB), ("8.59 GB", 8 * GiB)]
    found = tables.fits(LESSON, budgets, "source_len")
    assert found[0][1].n < found[2][1].n < found[1][1].n
    assert tables.telling(found) == [True, False, True]


def test_lesson_a4_and_a5_stand_side_by_side() -> None:
    table = tables.kept_table(plan(LESSON.config, LESSON.workload)).set_index("item")
    told = {"input": 3.125, "q, k, v": 9.375, "weights": 2.441, "z": 3.125, "MLP hidden": 12.5, "total": 30.566}
    for label, mib in told.items():
        assert round(cell(table, f"five terms: {label}", "mib"), 3) == mib
    assert round(cell(table, "total", "mib"), 3) == 52.466
    missed = table[table["term"] == "–"]
    assert round(sum(missed["mib"].tolist()), 3) == round(7 * 3.125 + 2 * 0.0122, 3)
    assert (table["mib"] * MiB).round().tolist() == (table["mb"] * 1e6).round().tolist()


def test_lesson_a6_scores_against_length() -> None:
    for n, mib in ((50, 2.44), (100, 9.77), (512, 256), (1024, 1024)):
        config = replace(LESSON.config, n_ctx=1024)
        assert round(plan(config, batch=32, source_len=n).lesson_terms["scores"] / MiB, 2) == mib


def test_lesson_a7_n_fits_and_one_more_does_not() -> None:
    (name, fit), *_ = tables.fits(LESSON, [("8 GiB", 8 << 30)], "source_len")
    assert fit.bytes <= 8 << 30 < fit.next_bytes
    row = tables.fits_table(LESSON, [(name, fit)]).iloc[0]
    assert int(row["does not fit"]) == int(row["fits"]) + 1
    assert float(row["takes MiB"]) <= 8192 < float(row["would take MiB"])
    for vary in ("batch", "layers"):
        (_, fit), *_ = tables.fits(LESSON, [("8 GiB", 8 << 30)], vary)
        assert fit.bytes <= 8 << 30 < fit.next_bytes


def test_e7_rows_have_exact_numbers_beside_the_order() -> None:
    setup = Setup("gpt2", PRESETS["gpt2"].config, 1, 1024, 0, attention="eager")
    table = compute_tables.operations_table(setup, "prefill").set_index("operation")
    tokens, d = 1024, 768
    assert cell(table, "q, k, v", "flops") == 12 * 6 * tokens * d * d
    assert cell(table, "q, k, v", "formula") == "6Td²"
    assert cell(table, "MLP", "flops") == 12 * 16 * tokens * d * d
    assert cell(table, "scores q kᵀ", "flops") == 12 * 2 * tokens * tokens * d
    assert cell(table, "scores q kᵀ", "useful") == 12 * tokens * (tokens + 1) * d
    assert cell(table, "total", "flops") == plan(setup.config, setup.workload).flops == 291_648_307_200
    one = compute_tables.operations_table(setup, "decode").set_index("operation")
    assert cell(one, "scores q kᵀ", "flops") == 12 * 2 * 1024 * d
    assert [cell(one, "scores q kᵀ", column) for column in ("formula", "order", "moved")] == [
        "2bnd",
        "O(b·n·d)",
        "bq + bnk + bhn",
    ]
    assert [cell(one, "q, k, v", column) for column in ("formula", "order", "moved_order")] == [
        "6bd²",
        "O(b·d²)",
        "O(b·d + d²)",
    ]
    assert one.loc["total", "order"] == "O(b·d² + b·n·d)"
    assert table.loc["total", "order"] == "O(b·n·d² + b·n²·d)"
    assert table.loc["scores q kᵀ", "moved_order"] == "O(b·n·d + b·h·n²)"


@pytest.mark.parametrize("name", ["lesson-encoder", "gpt2", "llama-3-8b", "transformer-base", "mistral-7b"])
@pytest.mark.parametrize("attention", ["eager", "flash"])
@pytest.mark.parametrize("step", ["prefill", "decode"])
def test_e7_the_formulas_give_the_numbers_beside_them(name: str, attention: str, step: str) -> None:
    """Every formula of the table, read as written, is the exact number of one layer (FLOPs of products, numbers moved)."""
    config = replace(PRESETS[name].config, n_encoder_layers=0, n_decoder_layers=1, window=None)
    config = replace(config, qkv_bias=False, out_bias=False, mlp_bias=False)
    setup = Setup(name, config, 3, 40, 0, attention=attention)  # type: ignore[arg-type]
    values = {"b": 3, "d": config.d_model, "h": config.n_heads, "F": config.d_ff, "V": config.vocab_size, "T": 120}
    values |= {"q": config.n_heads * config.d_head, "k": config.n_kv_heads * config.d_head, "n": 40, "m": 40}
    told = compute_tables.formulas(config, step)
    for group, (flops, _, n_bytes) in compute_tables.operation_groups(
        compute_tables.operations_of(setup, step)
    ).items():
        if flops:
            assert flops == evaluated(told[group].flops, values), (group, told[group])
        if group in ("qkv", "scores", "mix", "fused", "o"):
            assert n_bytes == 4 * evaluated(told[group].moved, values), (group, told[group])
        assert flops or told[group].flops.startswith(("–", "about"))


def evaluated(formula: str, values: dict[str, int]) -> int:
    """A formula of the table, where letters side by side are multiplied: "2Td(q + 2k)"."""
    spaced = re.sub(r"([A-Za-z])²", r"\1\1", formula)
    spaced = re.sub(r"(?<=[A-Za-z0-9)])(?=[A-Za-z(])", "*", spaced)
    return eval(spaced, {}, values)


def test_e9_an_rnn_is_what_torch_counts() -> None:
    d, n = 48, 10
    cell = nn.RNNCell(d, d, bias=False)
    with FlopCounterMode(display=False) as counted:
        hidden = torch.zeros(1, d)
        for _ in range(n):
            hidden = torch.tanh(torch.zeros(1, d) @ cell.weight_ih.T + hidden @ cell.weight_hh.T)
    shared = ModelConfig(vocab_size=9, d_model=d, n_heads=4, n_kv_heads=2, d_ff=9, n_decoder_layers=1, n_ctx=99)
    config = replace(shared, n_kv_heads=4)
    row = compute_tables.rnn_lines(config, [n]).iloc[0]
    assert int(row["rnn"]) == counted.get_total_flops()
    assert row["attention"] == 4 * n * n * d
    assert row["whole"] == 4 * n * n * d + 8 * n * d * d
    crossing = compute_tables.rnn_lines(config, [d]).iloc[0]
    assert int(crossing["rnn"]) == int(crossing["attention"])
    # Of heads that share their keys it is the layer that Operations counts.
    groups = compute_tables.operation_groups(prefill(shared, source_len=n, attention="eager"))
    assert compute_tables.rnn_line(shared, n)["whole"] == sum(groups[name][0] for name in ("scores", "mix", "qkv", "o"))


def test_e10_terms_are_the_traces_flops() -> None:
    setup = Setup("translator", TRANSLATOR, 3, 20, 12, attention="eager")
    terms = compute_tables.cross_terms(setup)
    d, layers = 32, 2
    assert sum(terms["at_once"].values()) == trace_shapes(TRANSLATOR, batch=3, source_len=20, target_len=12).flops
    assert terms["at_once"]["encoder_maps"] == layers * 4 * 3 * 20 * 20 * d
    assert terms["at_once"]["decoder_maps"] == layers * 4 * 3 * 12 * 12 * d
    assert terms["at_once"]["cross_maps"] == layers * 4 * 3 * 20 * 12 * d
    assert terms["by_word"]["decoder_maps"] == layers * 4 * 3 * (12 * 13 // 2) * d
    assert terms["by_word"]["cross_maps"] == terms["at_once"]["cross_maps"]


def test_b5_and_d4_have_the_true_totals() -> None:
    assert compute_tables.translator() == {
        "three": 93_324_544,
        "one": 60_522_496,
        "paper": 63_082_496,
        "layer": 3_152_384,
        "lesson": 3_147_776,
    }
    table = compute_tables.known_models()
    known = dict(zip(table["model"], table["parameters"], strict=True))
    assert (known["BERT base"], known["BERT large"]) == (109_482_240, 335_141_888)
    assert known["GPT-2 XL"] == 1_557_611_200
    assert compute_tables.furthest(compute_tables.known_models())[0] == "Transformer base"


def test_b5_the_translator_by_component_and_large() -> None:
    table = compute_tables.translator_table().set_index(compute_words.TRANSLATOR_COLUMN)
    assert list(table.loc["total"]) == [93_324_544, 274_697_472]
    assert table["base"].tolist()[:-1] == [16_384_000, 16_384_000, 18_915_328, 25_225_216, 16_416_000]
    assert (table.iloc[:-1].sum() == table.loc["total"]).all()


def test_f12_the_textbook_class_in_its_five_sizes() -> None:
    table = compute_tables.lesson_sizes()
    assert table["parameters"].tolist() == [919_296, 4_302_592, 28_229_632, 108_460_032, 333_467_648]
    assert table["block"].tolist()[0] == 197_760


def test_f5_many_narrow_heads_cost_what_one_wide_head_costs() -> None:
    for name in ("lesson-encoder", "gpt2", "transformer-base"):
        found = compute_tables.one_head(Setup(name, PRESETS[name].config, 2, 40, 30 * (name == "transformer-base")))
        assert found is not None and found[:2] == found[2:]
    assert compute_tables.one_head(Setup("gqa", PRESETS["llama-3-8b"].config, 1, 8, 0)) is None


def test_f11_a_batch_feeds_the_card() -> None:
    setup = Setup("llama", PRESETS["llama-2-7b"].config, 7, 1024, 0, dtype="bfloat16")
    card = next(device for device in DEVICES if device.name == "A100 80 GB")
    found = compute_tables.reached(setup, card)
    assert [round(100 * found[batch], 1) for batch in (1, 32)] == [0.7, 9.4]


def test_lesson_5_8_and_the_room_say_one_share_by_one_name() -> None:
    app = opened(compute_page, plan_model="GPT-2 small", compute_part="Roofline")
    assert f"{words.SHARE_OF_PEAK}, all of one token: 0.652 % at a batch of 1, 4.05 % at 32." in said(app)


def test_f4_and_f10_are_said_on_the_page() -> None:
    assert "GPT-3 12,288 / 96 = 128" in said(opened(compute_page, compute_part="Known models"))
    app = opened(compute_page, plan_model="GPT-2 small")
    assert "12 heads of 64 cost what 1 head of 768 costs" in said(app)
    assert any("[n, m] · [m, k] takes 2·n·m·k and writes n·k numbers" in item.value for item in app.caption)


def test_d5_layers_are_a_straight_line() -> None:
    line = compute_tables.depth_lines(LESSON.config)
    steps = line["parameters"].diff().dropna().unique().tolist()
    assert list(line["layers"]) == list(range(2, 13))
    assert steps == [parameters(LESSON.config).encoder.layer.total]


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 bytes"), (32_051_200, "30.6 MiB (32.1 MB)"), (2_621_440, "2.5 MiB (2.6 MB)"), (24 * 10**9, "22.4 GiB (24.0 GB)")],
)  # fmt: skip
def test_both_units(n_bytes: int, text: str) -> None:
    assert numbers.both(n_bytes) == text


def test_sizes_share_d_model_among_heads() -> None:
    sizes = {"d_model": 1024, "n_heads": 16, "n_kv_heads": 4, "n_layers": 3, "d_ff": 99, "vocab_size": 10}
    found = shaped(PRESETS["llama-3-8b"].config, Sizes(**sizes), longest=9)
    assert (found.d_head, found.n_kv_heads, found.n_decoder_layers) == (64, 4, 3)
    with pytest.raises(ConfigError, match=r"n_heads \(16\)"):
        shaped(PRESETS["gpt2"].config, Sizes(**{**sizes, "n_kv_heads": 5}), longest=9)


# measured beside predicted


def subject(setup: Setup) -> measure.MeasurementSetup:
    return measure.MeasurementSetup(setup.config, setup.workload)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("attention", ["eager", "flash"])
@pytest.mark.parametrize("config", [SMALL, TRANSLATOR], ids=["decoder", "encoder-decoder"])
def test_a_run_here_is_what_was_predicted(config: ModelConfig, attention: str, training: bool) -> None:
    target = 20 if config.kind == "encoder-decoder" else 0
    setup = Setup("small", config, 2, 16, target, attention=attention, training=training)  # type: ignore[arg-type]
    found = measure.measure(subject(setup), 1 << 30)
    assert found.ran == attention
    assert [point.n for point in found.points] == [16, 32, 64]
    for point in found.points:
        assert point.weights == point.predicted_weights
        assert point.kept == point.predicted_kept
        assert point.measured <= point.predicted * 1.02
        assert point.predicted <= point.measured * (1.7 if training else 1.4)


def test_what_is_too_large_is_refused_with_both_numbers() -> None:
    with pytest.raises(TooLarge, match=r"would need [\d,]+ MiB, and 1 MiB are free"):
        measure.lengths(subject(replace(LESSON, training=True)), MiB)
    work = replace(LESSON.config, d_model=8192, n_heads=64, d_ff=32_768)
    with pytest.raises(TooLarge, match=r"would take [\d,]+ GFLOP, and at most [\d,]+ are run"):
        measure.lengths(subject(replace(LESSON, config=work)), 1 << 50)
    with pytest.raises(HeadlightError, match="float32"):
        measure.lengths(subject(replace(LESSON, dtype="bfloat16")), 1 << 30)
    with pytest.raises(HeadlightError, match="dropout"):
        measure.lengths(subject(replace(LESSON, training=True, dropout=True)), 1 << 30)


def test_the_worker_remembers_and_is_bounded() -> None:
    worker = measure.Worker()
    setup = Setup("small", SMALL, 1, 16, 0)
    assert worker.found(subject(setup)) is None
    run = worker.submit(subject(setup))
    found = run.result(60)
    assert worker.found(subject(setup)) == found
    assert worker.submit(subject(setup)) is run


# pages


def memory_page() -> None:
    from app.rooms.memory import view
    from app.session import chosen

    chosen.begin()
    view.show()


def compute_page() -> None:
    from app.rooms.compute import view
    from app.session import chosen

    chosen.begin()
    view.show()


def opened(page: object, **params: str) -> AppTest:
    app = AppTest.from_function(page, default_timeout=60)  # type: ignore[arg-type]
    opens = {"plan_model": "lesson-encoder"} | ({"memory_part": "Where it goes"} if page is memory_page else {})
    for name, value in (opens | params).items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def test_memory_opens_on_the_lessons_encoder() -> None:
    app = opened(memory_page, **EAGER)
    planned = plan(LESSON.config, replace(LESSON, training=True).workload)
    assert numbers.both(planned.total) in headline(app)
    assert len(app.get("plotly_chart")) == 1


@pytest.mark.parametrize("page", [memory_page, compute_page])
def test_no_two_boxes_have_one_name(page: object) -> None:
    """Nor the one of the model above them: a screen reader has nothing but the names."""
    app = opened(page)
    names = [box.label for box in (*app.selectbox, *app.select_slider, *app.slider, *app.number_input)]
    assert len(names) > 8
    assert sorted([*names, shell_words.MODEL]) == sorted({*names, shell_words.MODEL})


def test_a_slider_changes_the_number() -> None:
    app = opened(memory_page, **EAGER)
    slider(app, "batch").set_value(64).run()
    planned = plan(LESSON.config, replace(LESSON, training=True, batch=64).workload)
    assert numbers.both(planned.total) in headline(app)


def test_a_preset_sets_the_sliders() -> None:
    app = opened(memory_page)
    next(box for box in app.selectbox if str(box.key).startswith("box_plan_model_")).set_value("llama-3-8b").run()
    assert not app.exception
    assert (slider(app, "kv_heads").value, slider(app, "d_ff").value) == (8, 14_336)


@pytest.mark.parametrize(
    ("size", "follower", "times", "to"), [("heads", "kv_heads", 1, 16), ("d_model", "d_ff", 4, 1024)]
)
def test_a_size_that_was_tied_to_another_follows_it_and_one_that_was_not_stays(
    size: str, follower: str, times: int, to: int
) -> None:
    app = opened(memory_page)
    slider(app, size).set_value(to).run()
    assert slider(app, follower).value == times * to and not app.exception
    apart = slider(app, follower).set_value(2 if size == "heads" else 512).run()
    kept = slider(apart, follower).value
    slider(apart, size).set_value(to // 2).run()
    assert slider(apart, follower).value == kept != times * to // 2


def test_what_does_not_fit_together_gets_its_sentence_and_the_picture_stays() -> None:
    app = opened(memory_page)
    before = headline(app)
    slider(app, "heads").set_value(12).run()
    assert "d_model (512) must be a multiple of n_heads (12)" in said(app)
    assert words.LAST_PICTURE in said(app)
    assert headline(app) == before
    assert len(app.get("plotly_chart")) == 1


def test_what_left_before_it_knew_of_a_link_takes_no_slider_back() -> None:
    """The sliders that a link fills are new ones: what the browser still says of those before counts for nothing."""
    app = opened(memory_page)
    before = {name: slider(app, name).key for name in ("layers", "batch", "heads")}
    app.query_params["plan_layers"], app.query_params["plan_batch"] = "12", "8"
    app.query_params["arrived"] = "1"
    app.run()
    linked = headline(app)
    after = {name: slider(app, name) for name in before}
    assert {name: found.key != before[name] for name, found in after.items()} == {
        "layers": True,
        "batch": True,
        "heads": False,
    }
    assert (after["layers"].value, after["batch"].value) == (12, 8)
    slider(app, "batch").set_value(16).run()
    assert headline(app) != linked and slider(app, "layers").value == 12, "one is moved by a hand"
    slider(app, "batch").set_value(8).run()
    assert headline(app) == linked, "also back"


def test_a_link_says_sizes_that_no_slider_has_and_what_it_cannot_say() -> None:
    app = opened(memory_page, plan_model="GPT-2 small", plan_batch="7", plan_heads="<b>many</b>", plan_phase="run")
    assert slider(app, "batch").value == 7
    assert slider(app, "heads").value == 12
    assert "“<b>many</b>”" in said(app)
    assert headline(app).startswith("GPT-2 small")
    other = opened(memory_page, plan_model="no such model")
    assert "no such model" in said(other) and "encoder" in headline(other)


def test_a_text_longer_than_the_table_is_said() -> None:
    app = opened(memory_page, plan_model="GPT-2 small", plan_source="2048")
    assert "n_ctx (1,024)" in said(app)


def test_longer_texts_say_where_it_breaks_and_measure() -> None:
    params = {"memory_part": "Longer texts", "plan_model": "BERT tiny", "plan_source": "16", "plan_batch": "1"}
    app = opened(memory_page, **params)
    assert "RTX 4090, 23.64 GiB for programs of 23.99 GiB: all 512 source tokens of its table fit" in said(app)
    next(button for button in app.button if button.key == "memory_measure").click().run()
    assert not app.exception
    assert re.search(r"Measured here, the processor's fused kernel: at 1 × [\d,]+ tokens", said(app))
    assert "predicted to the byte" in said(app)


@pytest.mark.thorough
def test_lessons_a6_and_a7_on_the_page() -> None:
    """Scores against length; a memory of one's own with the largest that fits, and the table of positions where it ends first."""
    params = {"memory_part": "Longer texts", "plan_phase": "train", **EAGER}
    app = opened(memory_page, **params, memory_budget="8")
    assert "50: 2.4 MiB (2.6 MB), 100: 9.8 MiB (10.2 MB), 512: 256.0 MiB (268.4 MB), 1,024: 1.0 GiB (1.1 GB)" in said(
        app
    )
    assert "8 GB, 7.5 GiB: by an upper bound 591 source tokens fit (7.44 GiB), 592 may not (7.46 GiB)." in said(app)
    next(button for button in app.button if button.key == "memory_alive").click().run()
    assert not app.exception
    assert "592 may not (7.46 GiB); by what is alive at once 668 fit (7.44 GiB), 669 do not (7.46 GiB)." in said(app)
    app = opened(memory_page, **params, plan_model="GPT-2 medium", memory_budget="24")
    assert "24 GB, 22.4 GiB: all 1,024 source tokens of its table fit" in said(app)
    assert "by memory alone 2,797." in said(app)
    assert "“-1”" in said(opened(memory_page, **params, memory_budget="-1"))


def test_llama_on_a_card_as_an_engineer_asks() -> None:
    """Llama 3 8B in float16 at 32,768 tokens: the last row's logits, and read in pieces; on a 4090; with other weights; chats."""
    params = {"plan_model": "llama-3-8b", "plan_dtype": "float16", "plan_source": "32768", "plan_phase": "run"}
    app = opened(memory_page, **params)
    assert "Llama 3 8B takes 22.4 GiB (24.0 GB) to run" in headline(app)
    assert "Read in pieces of 2,048 tokens, as vLLM reads a prompt, it would be 19.2 GiB" in said(app)
    assert "With the logits of every position it would be 27.3 GiB" in said(app)
    assert "The model was made for texts of at most 8,192 tokens." in said(app)
    assert "With scores and weights as tensors it would be 149.4 GiB" in said(app)
    assert "the smallest of them the RTX 4090: 1.3 GiB of its 23.6 GiB for programs are left." in said(app)
    pieces = opened(memory_page, **params, plan_piece="2,048 tokens at a time", plan_weights="Q4_K_M", plan_kv="Q8_0")
    assert "takes 6.9 GiB" in headline(pieces)
    large = opened(memory_page, plan_model="llama-3.1-405b", plan_phase="run")
    assert "It fits on none of the 18 cards here; the largest, MI300X, offers programs 191.7 GiB" in said(large)
    longer = opened(memory_page, **params, memory_part="Longer texts", memory_devices="A100 80 GB")
    config = PRESETS["llama-3-8b"].config
    card = next(device for device in DEVICES if device.name == "A100 80 GB")
    most = longest_fit(config, card.memory, source_len=32_768, dtype="float16", vary="batch").n
    # How many fit on this machine depends on what else runs on it.
    chats = rf"Chats at once, 32,768 tokens each: This machine \d+, A100 80 GB {most}\."
    assert any(re.search(chats, line) for line in said(longer).splitlines())
    assert not any(re.search(r"\((\S+ \S+)\), [\d,]+ may not \(\1\)", line) for line in said(longer).splitlines())


GEMMA_3_1B = {
    "model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26, "num_attention_heads": 4,
    "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262_144, "max_position_embeddings": 32_768, "sliding_window": 512,
    "sliding_window_pattern": 6, "query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh",
    "architectures": ["Gemma3ForCausalLM"],
}  # fmt: skip


def test_a_config_json_is_counted_in_both_rooms() -> None:
    """Pasted, or brought by a link: its d_head and its window, which no slider has, are counted."""
    link = pasted.to_link(json.dumps(GEMMA_3_1B))
    params = {
        "plan_model": "pasted",
        "config": link,
        "plan_source": "32768",
        "plan_dtype": "bfloat16",
        "plan_phase": "run",
    }
    app = opened(memory_page, **params, memory_part="KV cache")
    assert "139.0 MiB (145.8 MB)" in said(app) and headline(app).startswith(words.PASTED_TITLE)
    compute = opened(compute_page, plan_model="pasted", config=link, compute_part="Parameters")
    total = parameters(pasted.config_of(json.dumps(GEMMA_3_1B))).total
    assert f"has {total:,} parameters" in headline(compute)
    empty = opened(memory_page, plan_model="pasted")
    assert words.PASTE_FIRST in said(empty)
    box = next(area for area in empty.text_area if str(area.key).startswith("box_config_"))
    box.set_value(json.dumps(GEMMA_3_1B)).run()
    assert not empty.exception and headline(empty).startswith(words.PASTED_TITLE)
    assert slider(empty, "layers").value == 26 and empty.query_params["config"] in (link, [link])
    box = next(area for area in empty.text_area if str(area.key).startswith("box_config_"))
    box.set_value('{"model_type": "dbrx"}').run()
    assert "mixture of experts" in said(empty) and words.LAST_PICTURE in said(empty)


def test_each_total_has_one_name() -> None:
    table = tables.totals_table(LESSON).set_index("total")
    assert round(cell(table, memory_words.TOTALS["terms"], "mib"), 3) == 30.566
    assert round(cell(table, memory_words.TOTALS["terms_all"], "mib"), 1) == 183.4
    assert round(cell(table, memory_words.TOTALS["kept"], "mib"), 3) == 52.466
    assert round(cell(table, memory_words.TOTALS["kept_all"], "mib"), 1) == 314.8
    whole = plan(LESSON.config, replace(LESSON, training=True).workload)
    assert cell(table, memory_words.TOTALS["activations"], "mib") * MiB == whole.memory.activations
    assert cell(table, memory_words.TOTALS["all"], "mib") * MiB == whole.total
    assert len(set(memory_words.TOTALS.values())) == len(memory_words.TOTALS)


def test_what_is_measured_lies_where_the_curve_is() -> None:
    """At the default settings 32 texts are too much work for lengths that say something: fewer run, at the length of the sliders."""
    setup, lengths = measure.largest_safe_setup(subject(replace(LESSON, training=True)), 8 << 30)
    assert 1 <= setup.workload.batch < 32 and lengths[-1] >= 50
    assert lengths[0] >= 12
    alone = subject(replace(LESSON, batch=1, source_len=16))
    assert measure.largest_safe_setup(alone, 8 << 30)[0] == alone


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((22_880_000_000, 22_910_000_000), ["21.31 GiB", "21.34 GiB"]),
        ((5 << 20, 7 << 20), ["5.0 MiB", "7.0 MiB"]),
        ((100, 101), ["100 bytes", "101 bytes"]),
        ((24_000_000_000, 24_000_100_000), ["22.3517 GiB", "22.3518 GiB"]),
        ((24 << 30, (24 << 30) + 1), ["25,769,803,776 bytes", "25,769,803,777 bytes"]),
        ((5 << 20, 5 << 20), ["5.0 MiB", "5.0 MiB"]),
    ],
)
def test_sizes_that_differ_by_little_have_the_digits_that_tell_them_apart(
    sizes: tuple[int, int], said: list[str]
) -> None:
    assert numbers.apart(*sizes) == said


def test_too_large_to_measure_is_said_on_the_page() -> None:
    app = opened(memory_page, memory_part="Longer texts", plan_model="GPT-3", plan_source="16")
    next(button for button in app.button if button.key == "memory_measure").click().run()
    assert not app.exception
    assert re.search(r"would need [\d,]+ MiB, and [\d,]+ MiB are free", said(app))


def test_what_is_kept_is_itemised() -> None:
    app = opened(memory_page, memory_part="What is kept", **EAGER)
    assert "five terms come to 30.6 MiB (32.1 MB), autograd keeps 52.5 MiB (55.0 MB)" in headline(app)
    assert "183.4 MiB (192.3 MB) and 314.8 MiB (330.1 MB)" in said(app)
    assert "mlp up 12.5 MiB (13.1 MB)" in said(app)


def test_what_the_other_attention_keeps_is_one_press_away() -> None:
    app = opened(memory_page, memory_part="What is kept", plan_attention="flash")
    button = next(button for button in app.button if button.key == "memory_kept_other")
    assert "eager" in button.label and "52.466" in button.label
    button.click().run()
    assert "autograd keeps 52.5 MiB" in headline(app)
    back = next(button for button in app.button if button.key == "memory_kept_other")
    assert "flash" in back.label and "50.073" in back.label


def test_a_cache_grows_and_an_encoder_is_shown_what_a_decoder_of_its_sizes_would_keep() -> None:
    app = opened(memory_page, memory_part="KV cache")
    per_token = numbers.both(2 * 6 * 512 * 4)
    assert f"is an encoder: it keeps nothing for later. A decoder of its sizes would add {per_token}" in headline(app)
    assert len(app.get("plotly_chart")) == 1
    next(button for button in app.button if button.key == "memory_take").click().run()
    assert headline(app).startswith("GPT-2 small adds 72.0 KiB")
    half = opened(memory_page, memory_part="KV cache", plan_model="Llama 3 8B", plan_dtype="float16", plan_phase="run")
    assert "128.0 KiB" in headline(half)


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["BERT tiny", "GPT-2 small", "Transformer base", "T5 small", "Mistral 7B"])
def test_every_part_of_both_views_draws_every_model(model: str) -> None:
    for page, key, parts in (
        (memory_page, "memory_part", memory_words.MEMORY_PARTS),
        (compute_page, "compute_part", compute_words.COMPUTE_PARTS),
    ):
        for part in parts.values():
            app = opened(page, plan_model=model, **{key: part})
            if part == memory_words.MEMORY_PARTS["fit"]:
                continue  # which the browser draws: test_fit.py
            assert app.get("plotly_chart")
            assert said(app) or headline(app)


def test_compute_says_prefill_and_decode() -> None:
    app = opened(compute_page, plan_model="GPT-2 small")
    assert "291.6 GFLOP" in headline(app) and "are of use" in said(app)
    roof = opened(compute_page, plan_model="GPT-2 small", compute_part="Roofline")
    assert "153 FLOPs" in headline(roof)
    assert "arithmetic is the limit" in said(roof) and "memory is the limit" in said(roof)


def test_compute_cross_needs_an_encoder_decoder() -> None:
    app = opened(compute_page, compute_part="Encoder–decoder")
    next(button for button in app.button if button.key == "compute_take").click().run()
    assert headline(app).startswith("Transformer base reads 32 × 50 tokens")


# the whole page


@pytest.mark.parametrize(
    ("view", "params", "wanted"),
    [
        (
            "Memory",
            {
                "plan_attention": "slow",
                "plan_dtype": "<b>float8</b>",
                "memory_part": "Everything",
                "plan_batch": "1e9",
                "projector": "maybe",
            },
            ["Attention “slow”", "Data type “<b>float8</b>”", "Part “Everything”", "Batch “1e9”", "projector “maybe”"],
        ),
        ("Memory", {"memory_part": "Longer texts", "memory_devices": "Abacus"}, ["Compare cards “Abacus”"]),
        (
            "Compute",
            {"compute_part": "Roofline", "compute_card": "Abacus", "cards": "abacus:1:2"},
            ["Card “Abacus”", "“abacus:1:2”"],
        ),
        ("Compute", {"compute_step": "backwards", "plan_model": "gpt2"}, ["Step “backwards”"]),
        (
            "Training",
            {"training_part": "Everything", "training_measure": "luck"},
            ["Part “Everything”", "Measure “luck”"],
        ),
    ],
)
def test_a_link_with_values_that_are_not_possible_says_so(view: str, params: dict[str, str], wanted: list[str]) -> None:
    sentences = said(visit(view, **params))
    assert [sentence for sentence in wanted if sentence not in sentences] == []


def test_memory_and_compute_count_the_run_of_the_visitor_and_follow_its_sentence() -> None:
    config = PRESETS["minilm"].config
    app = visit("memory", memory_part="Where it goes", text="The cat sat on the mat.")
    assert headline(app).startswith(f"MiniLM-L6 takes {numbers.both(plan(config, source_len=9).total)} to run")
    assert slider(app, "source").value == 9
    box(app, shell_words.TEXT).set_value("A cat.").run()
    assert slider(app, "source").value == 5
    keyed(app.selectbox, "plan_model").set_value("gpt2").run()
    assert headline(app).startswith("GPT-2 small takes") and not app.text_area
    keyed(app.selectbox, "plan_model").set_value("run").run()
    assert box(app, shell_words.TEXT).value == "A cat." and slider(app, "source").value == 5
    compute = visit("compute", plan_model="run", text="A cat.")
    work = numbers.count(plan(config, source_len=5).flops)
    assert headline(compute).startswith(f"MiniLM-L6, 1 × 5 tokens: {work}FLOP")


# in a browser


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_sliders_presets_and_links(browser: Browser, address: str, scheme: str) -> None:
    """A slider changes the number to core.plan's, a preset sets the sliders, the link brings both back."""
    with visiting(browser, address, scheme) as screen:
        screen.see("Memory", **EAGER)
        assert numbers.both(plan(LESSON.config, replace(LESSON, training=True).workload).total) in screen.headline
        screen.move("batch", 2)  # 48, 64
        wanted = plan(LESSON.config, replace(LESSON, training=True, batch=64).workload)
        screen.page.locator(".js-plotly-plot text", has_text=numbers.both(wanted.total)).first.wait_for()
        assert numbers.both(wanted.total) in screen.headline
        drawn = {trace["name"]: trace["x"][0] for trace in screen.traces()}
        named = {
            memory_words.COMPONENTS[name][0]: n
            for name, n in wanted.memory.to_dict().items()
            if n and name in memory_words.COMPONENTS
        }
        assert drawn == named  # eager, byte for byte
        screen.choose("plan_model", "Llama 3 8B")
        llama = plan(PRESETS["llama-3-8b"].config, source_len=1024, training=True, attention="eager")
        screen.page.locator(".hl.planner h2", has_text=numbers.both(llama.total)).wait_for()
        screen.part("run")
        run = plan(PRESETS["llama-3-8b"].config, source_len=1024, attention="eager")
        screen.page.locator(".hl.planner h2", has_text=numbers.both(run.total)).wait_for()
        screen.page.wait_for_url(lambda url: "plan_model=llama-3-8b" in url and "plan_phase=run" in url)
        seen, link = screen.headline, screen.page.url
        with visiting(browser, address) as other:
            other.page.goto(link)
            other.says(seen)


@pytest.mark.thorough
def test_lines_of_cards_and_where_it_breaks(browser: Browser, address: str) -> None:
    """Lesson A7: n fits, n + 1 does not, each with its bytes, and the line of every card that was chosen."""
    with visiting(browser, address) as screen:
        screen.see("Memory", memory_part="Longer texts", plan_model="gpt2-medium", memory_devices="T4")
        config = PRESETS["gpt2-medium"].config
        card = next(device for device in DEVICES if device.name == "T4")
        found = longest_fit(config, card.memory, training=True)
        said = screen.text(re.compile("^T4, ")).inner_text()
        ceiling = config.n_ctx
        assert found.n > ceiling  # the memory would allow more than the table of positions has
        assert f"all {ceiling:,} source tokens of its table fit" in said
        assert f"by memory alone {found.n:,}." in said
        assert found.bytes <= card.memory < found.next_bytes
        shapes = screen.page.locator(".js-plotly-plot").evaluate(
            "host => host.layout.shapes.map(line => [line.y0, line.y1])"
        )
        assert [card.memory] * 2 in shapes
        screen.text(re.compile("Its table of positions ends at 1,024"))
        table, _ = screen.table("CSV: where it breaks")
        row = table.set_index("device").loc["T4"]
        assert (row["fits"], row["by memory alone"], row["does not fit"]) == (ceiling, found.n, found.n + 1)
        curve, _ = screen.table("CSV: lengths")
        at = curve.set_index("n").loc[1024]
        assert round(at["flash MiB"] * MiB) == plan(config, source_len=1024, training=True, attention="flash").total


@pytest.mark.thorough
def test_predicted_beside_measured(browser: Browser, address: str) -> None:
    """The button runs it here; its points are drawn on the curve and what stays is predicted to the byte."""
    with visiting(browser, address) as screen:
        screen.see(
            "Memory",
            memory_part="Longer texts",
            plan_model="bert-tiny",
            plan_source="16",
            plan_batch="1",
            plan_phase="run",
        )
        screen.page.get_by_role("button", name=memory_words.MEASURE).click()
        said = screen.text(re.compile("Measured here, the processor's fused kernel")).inner_text()
        alive = re.search(r"Weights: ([\d,]+) bytes, predicted to the byte", said)
        assert (
            alive and int(alive[1].replace(",", "")) == plan(PRESETS["bert-tiny"].config, source_len=16).memory.weights
        )
        once(screen.page, "document.querySelector('.js-plotly-plot')?.data?.some(t => t.name === 'measured here')")
        points = next(trace for trace in screen.traces() if trace["name"] == "measured here")
        assert len(points["x"]) == 3
        for n, measured in zip(points["x"], points["y"], strict=True):
            predicted = plan(PRESETS["bert-tiny"].config, source_len=n).total
            assert predicted / 1.5 < measured <= predicted * 1.02
        screen.idle()
        chart = box_of(screen.page.locator(".js-plotly-plot"))
        assert chart["y"] + chart["height"] <= 720  # what was measured is seen where it lies


@pytest.mark.thorough
def test_the_cache_grows_by_the_token(browser: Browser, address: str) -> None:
    """Lesson E6, with grouped heads: 2 · layers · KV heads · d_head · bytes."""
    with visiting(browser, address) as screen:
        screen.see("Memory", memory_part="KV cache", plan_model="llama-3-8b", plan_dtype="float16", plan_phase="run")
        assert "adds 128.0 KiB (131.1 kB) for each new token" in screen.headline
        lines = {trace["name"]: trace for trace in screen.traces()}
        own, mha = (lines[memory_words.CACHE_LINES[name]] for name in ("own", "mha"))
        assert own["y"][-1] == 1024 * 131_072 and mha["y"][-1] == 4 * own["y"][-1]
        screen.text(re.compile(r"2 · 32 layers · 8 KV heads · 128 · 2 bytes"))


@pytest.mark.thorough
def test_five_terms_beside_autograd(browser: Browser, address: str) -> None:
    """Lessons A4 and A5, in MiB and in MB."""
    with visiting(browser, address) as screen:
        screen.see("Memory", memory_part="What is kept", **EAGER)
        screen.says("One encoder layer: five terms come to 30.6 MiB (32.1 MB), autograd keeps 52.5 MiB (55.0 MB).")
        screen.text(re.compile(r"183.4 MiB \(192.3 MB\) and 314.8 MiB \(330.1 MB\)"))
        lesson, kept = (sum(trace["x"][i] for trace in screen.traces()) for i in (0, 1))
        planned = plan(LESSON.config, LESSON.workload)
        assert (lesson, kept) == (planned.lesson_terms["total"], planned.saved_per_layer)
        table, _ = screen.table("CSV: kept tensors")
        assert round(cell(table.set_index("item"), "total", "mib"), 3) == 52.466


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
