"""The figures of the memory and compute views: every number in a trace is the planner's, and none is large to send."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from app.kit import figure as kit_figure
from app.kit.theme import PALETTES
from app.rooms.compute import figures as compute_figures
from app.rooms.compute import tables as compute_tables
from app.rooms.compute import words as compute_words
from app.rooms.memory import figures, tables, words
from app.sizes import setup as sizes_setup
from app.sizes import words as sizes_words
from app.sizes.setup import Setup
from core.plan import DEVICES, PRESETS, decode, kv_cache, memory_plan, parameters, plan, prefill, with_layers
from core.plan.live_memory import Measured, Point

LESSON = Setup("lesson", PRESETS["lesson-encoder"].config, 32, 50, 0, attention="eager", training=True)
GPT2 = Setup("gpt2", PRESETS["gpt2"].config, 2, 512, 0)
BASE = Setup("base", PRESETS["transformer-base"].config, 4, 30, 20)
LLAMA = Setup("llama", PRESETS["llama-3-8b"].config, 1, 1024, 0, dtype="bfloat16")
BUDGET = 60_000  # characters of JSON: a chart is a fraction of a picture
SETUPS = {"lesson": LESSON, "gpt2": GPT2, "base": BASE, "llama": LLAMA}
MEASURED = Measured(
    "eager", 2, (Point(8, 100 << 20, 110 << 20, 1, 1, 0, 0, 0.1), Point(64, 200 << 20, 210 << 20, 1, 1, 0, 0, 0.2))
)


def data(figure: go.Figure) -> list[Any]:
    return list(figure.data)


def layout(figure: go.Figure) -> Any:
    return figure.layout


def traces(figure: go.Figure) -> dict[str, Any]:
    return {trace.name: trace for trace in data(figure)}


@pytest.mark.parametrize("name", SETUPS)
def test_bars_are_the_plans_components(name: str) -> None:
    setup = SETUPS[name]
    found = traces(figures.bars(tables.components(setup), setup.attention))
    for i, way in enumerate(tables.WAYS):
        told = memory_plan(setup.config, replace(setup.workload, attention=way)).to_dict()
        drawn = sum(trace.x[i] for trace in found.values())
        assert drawn == told["total"]
        for part, (label, _) in words.COMPONENTS.items():
            assert (found[label].x[i] if label in found else 0) == told[part]


def test_curves_are_the_plans_totals_with_budgets_and_points() -> None:
    budgets = [("here", 8 << 30), ("card", 24 * 10**9)]
    table = tables.curves(GPT2)
    figure = figures.curves(table, GPT2, budgets, MEASURED)
    found = traces(figure)
    for way in tables.WAYS:
        for n, value in list(zip(found[way].x, found[way].y, strict=True))[::7]:
            workload = replace(GPT2.workload, attention=way, source_len=n)
            assert value == memory_plan(GPT2.config, workload).total
    assert list(found["measured here"].y) == [point.measured for point in MEASURED.points]
    levels = {shape.y0 for shape in layout(figure).shapes if shape.y0 == shape.y1}
    assert levels == {budget for _, budget in budgets}
    assert {512, 1024} <= {shape.x0 for shape in layout(figure).shapes}
    assert layout(figure).xaxis.type == layout(figure).yaxis.type == "log"


def test_kept_draws_the_five_terms_and_what_autograd_keeps() -> None:
    planned = plan(LESSON.config, LESSON.workload)
    figure = figures.kept(tables.kept_groups(planned), planned.lesson_terms)
    lesson, kept = (sum(trace.x[i] for trace in data(figure)) for i in (0, 1))
    assert lesson == planned.lesson_terms["total"] == 32_051_200  # 30.566 MiB
    assert kept == planned.saved_per_layer
    assert round(kept / (1 << 20), 3) == 52.466
    for trace in data(figure):  # every part that can be seen is named, in it or in the legend
        assert any(trace.text) or trace.showlegend or max(trace.x) < 0.005 * kept, trace.name
    looks = [(trace.marker.color, trace.marker.pattern.shape) for trace in data(figure) if max(trace.x) > 0.005 * kept]
    assert len(set(looks)) == len(looks)


@pytest.mark.parametrize("setup", [GPT2, BASE, LLAMA], ids=["mha", "cross", "gqa"])
def test_cache_lines_are_the_caches(setup: Setup) -> None:
    found = traces(figures.cache(tables.cache_lines(setup)))
    own, mha, mqa = (found[words.CACHE_LINES[name]] for name in ("own", "mha", "mqa"))
    for i, n in enumerate(own.x):
        told = kv_cache(setup.config, batch=setup.batch, n=n, dtype=setup.dtype)
        assert (own.y[i], mha.y[i], mqa.y[i]) == (told.self_attention, told.as_mha, told.as_mqa)


def test_shares_of_operations_add_up_to_all() -> None:
    groups = compute_tables.operation_groups(prefill(GPT2.config, batch=2, source_len=512))
    figure = compute_figures.operations(groups, causal=True)
    assert [round(sum(trace.x[i] for trace in data(figure)), 9) for i in range(3)] == [100, 100, 100]
    total = sum(op.times * op.flops for op in prefill(GPT2.config, batch=2, source_len=512))
    mlp = traces(figure)[compute_words.GROUPS["mlp"]]
    assert mlp.x[0] == 100 * groups["mlp"][0] / total


def test_roofline_puts_every_operation_under_its_roof() -> None:
    device = next(device for device in DEVICES if device.name == "A100 80 GB")
    steps = {step: compute_tables.operations_of(LLAMA, step) for step in sizes_words.STEPS}
    whole = {step: compute_tables.ideal(LLAMA, step) for step in sizes_words.STEPS}
    found = traces(compute_figures.roofline(device, steps, whole))
    roof = found[device.name]
    assert (roof.x[1], roof.y[1]) == (device.ridge, device.teraflops)
    ops = [op for op in decode(LLAMA.config, cached=1024, dtype="bfloat16") if op.flops]
    assert list(found["one token"].x) == [op.intensity for op in ops]
    for step in sizes_words.STEPS.values():
        for x, y in zip(found[step].x, found[step].y, strict=True):
            assert y == pytest.approx(min(device.teraflops, x * device.gigabytes_per_second / 1000))


def test_depth_and_known_are_the_parameters() -> None:
    figure = compute_figures.depth(compute_tables.depth_lines(BASE.config), 6)
    for i, n in enumerate(range(2, 13)):
        assert sum(trace.y[i] for trace in data(figure)) == parameters(with_layers(BASE.config, n)).total
    drawn = data(compute_figures.known(compute_tables.known_models(GPT2)))[0]
    counts = dict(zip(drawn.y, drawn.x, strict=True))
    assert counts["GPT-2 small"] == counts[compute_words.YOURS] == 124_439_808
    assert counts["GPT-3"] == 174_604_259_328


def test_rnn_and_cross_are_their_tables() -> None:
    table = compute_tables.rnn_lines(BASE.config, [16, 64, 256])
    assert [list(trace.y) for trace in data(compute_figures.rnn(table, 64))] == [
        table[name].tolist() for name in compute_words.RNN_LINES
    ]
    terms = compute_tables.cross_terms(BASE)
    for way, trace in zip(compute_words.CROSS_WAYS, data(compute_figures.cross(terms)), strict=True):
        assert list(trace.x) == [terms[way][name] for name in compute_words.CROSS_TERMS]


def every_figure(setup: Setup, theme: kit_figure.Theme) -> list[go.Figure]:
    planned = sizes_setup.planned(setup)
    steps = {step: compute_tables.operations_of(setup, step) for step in sizes_words.STEPS}
    whole = {step: compute_tables.ideal(setup, step) for step in sizes_words.STEPS if steps[step]}
    groups = compute_tables.operation_groups(steps["prefill"])
    found = [
        figures.bars(tables.components(setup), setup.attention, theme),
        figures.curves(tables.curves(setup), setup, [("here", 1 << 33)], MEASURED, theme),
        figures.kept(tables.kept_groups(planned), planned.lesson_terms, theme),
        compute_figures.operations(groups, causal=True, theme=theme),
        compute_figures.roofline(DEVICES[0], steps, whole, theme),
        compute_figures.rnn(compute_tables.rnn_lines(setup.config, [16, 64]), 16, theme),
        compute_figures.depth(compute_tables.depth_lines(setup.config), 6, theme),
        compute_figures.known(compute_tables.known_models(setup), theme),
    ]
    if setup.config.n_decoder_layers:
        found.append(figures.cache(tables.cache_lines(setup), theme))
    if setup.config.kind == "encoder-decoder":
        found.append(compute_figures.cross(compute_tables.cross_terms(setup), theme))
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", SETUPS)
def test_every_figure_is_small_and_says_its_colours(name: str, theme: kit_figure.Theme) -> None:
    for setup in (SETUPS[name], replace(SETUPS[name], attention="flash")):
        for figure in every_figure(setup, theme):
            assert len(figure.to_json() or "") < BUDGET
            assert layout(figure).paper_bgcolor == PALETTES[theme]["background"]
            assert layout(figure).font.color == PALETTES[theme]["ink"]
            assert "#000001" not in (figure.to_json() or "")  # a placeholder of Streamlit's template
