"""Compute: what a model computes and moves, operation by operation, and which of the two is the limit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from app import languages
from app.kit import charts, frames, numbers, stage, widgets
from app.kit.numbers import both, count
from app.kit.params import Param
from app.kit.widgets import Control, Panel
from app.rooms.compute import devices, tables, words
from app.session import boxes
from app.shell import run
from app.sizes import controls, seen
from app.sizes import words as sizes_words
from app.sizes.controls import Look
from app.sizes.setup import Setup, as_pair, layers
from core.plan import DEVICES, PRESETS, Device, parameters, total_bytes, total_flops

CARD = "A100 80 GB"
CARD_HEIGHT = 55  # pixels that the choice of a card takes of a projected chart, at a type of 16
VIEW = "compute"
stage.ENTRIES[VIEW] = seen.ENTRY
FIGURES = f"{__package__}.figures"
PART = controls.part_of(VIEW, words.COMPUTE_PARTS)
NAMES = {device.name: device.name for device in DEVICES}
SHOWN_CARD = widgets.choice("compute_card", NAMES, sizes_words.LABELS["device"][0], CARD)
STEP = widgets.choice("compute_step", sizes_words.STEPS, sizes_words.STEP)
CARDS = Control(Param("cards", "", lambda text, _: text, ""), str)
PANEL = Panel(VIEW, (PART, SHOWN_CARD, STEP, CARDS))


def show() -> None:
    """Draw the view."""
    controls.show(PANEL, words.COMPUTE_PARTS, PARTS, training=False, above=run.if_wanted)


def _work(setup: Setup, step: str) -> str:
    """FLOPs and traffic of the whole text, or of one token."""
    operations = tables.operations_of(setup, step)
    n = setup.target_len or setup.source_len
    one = words.OPERATIONS_ONE if setup.batch == 1 else words.OPERATIONS_EACH
    what = (one if step == "decode" else words.OPERATIONS_ALL).format(batch=setup.batch, n=numbers.whole(n))
    return words.OPERATIONS.format(
        title=setup.title,
        flops=count(total_flops(operations)),
        traffic=both(total_bytes(operations)),
        what=what,
    )


def _operations(setup: Setup, look: Look) -> None:
    step = _step(setup)
    groups = tables.operation_groups(tables.operations_of(setup, step))
    flops, useful, moved = (sum(values[i] for values in groups.values()) for i in range(3))
    most = max(groups, key=lambda name: groups[name][0])
    mover = max(groups, key=lambda name: groups[name][2])
    more = words.OPERATIONS_MOST.format(
        largest=words.GROUPS[most],
        share=round(100 * groups[most][0] / flops),
        moves=words.GROUPS[mover],
        moved=round(100 * groups[mover][2] / moved),
    )
    if useful != flops:
        more += " " + words.OPERATIONS_CAUSAL.format(useful=count(useful))
    table = tables.operations_table(setup, step)
    figure = partial(charts.figures(FIGURES).operations, groups, causal=useful != flops)
    sentence = controls.headline(
        look,
        setup,
        lambda setup: _work(setup, step),
        controls.Chart(
            "operations",
            more,
            [(words.FILE_OPERATIONS, f"headlight-compute-{step}", table)],
            figure,
            "plan.decode_flops" if step == "decode" else "plan.flops, plan.traffic",
        ),
    )
    controls.draw(look, "operations", figure, sentence, note=more)
    shown = table.assign(
        flops=[count(n) if n else "–" for n in table["flops"]],
        useful=[count(n) if n else "–" for n in table["useful"]],
        intensity=table["intensity"].round(1),
        mib=table["mib"].round(3),
        mb=table["mb"].round(3),
    )
    names = [
        "operation",
        "flops",
        *(["useful"] if useful != flops else []),
        "formula",
        "order",
        "mib",
        "mb",
        "moved",
        "moved_order",
        "intensity",
    ]
    columns: dict[str, str | None] = {name: sizes_words.COLUMNS[name] for name in names}
    frames.show(shown[names], columns, key="compute_rows", height="content")
    if one := tables.one_head(setup):
        config = setup.config
        sizes = {"heads": config.n_heads, "d_head": config.d_head, "d": config.d_model}
        st.text(words.ONE_HEAD.format(**sizes, flops=count(one[2]), parameters=numbers.whole(one[3])))
    st.caption(words.OPERATIONS_NOTE[step] + sizes_words.CUDA)
    controls.show_table(table, "operations")


def _roofline(setup: Setup, look: Look) -> None:
    if setup.dtype == "float32":
        setup = replace(setup, dtype="bfloat16")  # the roofs are for 16 bits
    found = _cards()
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with row.container(width=260):
        name = controls.one_of("device", SHOWN_CARD, list(NAMES))
    device = next(card for card in found if card.name == name)
    steps = {step: tables.operations_of(setup, step) for step in sizes_words.STEPS}
    whole = {step: tables.ideal(setup, step) for step in sizes_words.STEPS if steps[step]}
    said = {step: _limit(device, *least) for step, least in whole.items()}
    intensity, limit, time = said["prefill"]
    n = setup.source_len + setup.target_len
    more = numbers.filled(
        words.ROOF_PREFILL,
        n=f"{setup.batch} × {numbers.whole(n)}",
        prefill=intensity,
        prefill_limit=words.LIMITS[limit],
        prefill_time=numbers.seconds(time),
    )
    if "decode" in said:
        intensity, limit, time = said["decode"]
        more += " " + numbers.filled(
            words.ROOF_DECODE,
            decode=intensity,
            decode_limit=words.LIMITS[limit],
            decode_time=numbers.seconds(time),
            rate=numbers.fixed(setup.batch / time, 0),
            batch=setup.batch,
        )
    step = "decode" if "decode" in said else "prefill"
    one, many = (f"{numbers.digits(100 * part, 3)} %" for part in tables.reached(setup, device, step).values())
    more += " " + words.ROOF_REACHED[step].format(one=one, many=many)
    table = tables.bounds_table(setup, device)
    figure = partial(charts.figures(FIGURES).roofline, device, steps, whole)
    sentence = controls.headline(
        look,
        setup,
        lambda _: numbers.filled(words.ROOF, device=device.name, ridge=device.ridge),
        controls.Chart(
            "roofline",
            more,
            [(words.FILE_ROOF, "headlight-compute-roofline", table)],
            figure,
            "plan.flops / plan.ideal_bytes",
        ),
        live=False,
    )
    controls.draw(look, "roofline", figure, sentence, note=more, above=CARD_HEIGHT)
    st.caption(words.ROOF_NOTE + sizes_words.CUDA)
    controls.show_table(table, "roofline", covers=controls.COVERS["roofline"])
    _edit_cards()


def _cards() -> list[Device]:
    """The cards with the figures that this visitor, or a link, has typed over them; the link follows."""
    if _editor() not in st.session_state:
        widgets.opens(CARDS)  # a table that comes back has the figures that it had
    found, wrong = devices.read(boxes.opened(CARDS.name))
    edited = (st.session_state.get(_editor()) or {}).get("edited_rows", {})
    for i, figures in edited.items():
        try:
            found[i] = devices.changed(found[i], figures)
        except ValueError as error:
            st.text(languages.said(error))
    for sentence in [] if edited else wrong:
        st.text(sentence)
    widgets.holds(CARDS, devices.written(found))
    return found


def _editor() -> str:
    """The table of cards: another one where a link says other figures."""
    return f"compute_{boxes.key(CARDS.name)}"


def _edit_cards() -> None:
    with st.expander(words.CARDS, key="compute_cards_box"):
        table = tables.devices_table(devices.read(boxes.opened(CARDS.name))[0])
        st.data_editor(
            table,
            hide_index=True,
            column_config=frames.editable(words.CARDS_COLUMNS, table),
            disabled=["name", "gibibytes", "ridge", "offered", "source", "memory_source"],
            key=_editor(),
        )
        st.caption(words.CARDS_NOTE)


def _limit(device: Device, flops: int, n_bytes: int) -> tuple[float, str, float]:
    """FLOPs per byte, which of the two is the limit, and the least seconds."""
    compute, memory = flops / (device.teraflops * 1e12), n_bytes / (device.gigabytes_per_second * 1e9)
    return flops / n_bytes, "compute" if compute > memory else "memory", max(compute, memory)


def _recurrent(setup: Setup) -> str:
    """What a recurrent layer of this width takes for a text of this length."""
    d, n = setup.config.d_model, setup.source_len
    return words.RNN.format(n=numbers.whole(n), d=numbers.whole(d), rnn=count(4 * n * d * d))


def _rnn(setup: Setup, look: Look) -> None:
    d, n = setup.config.d_model, setup.source_len
    table = tables.rnn_lines(setup.config, sorted({*(2**i for i in range(2, 18)), n, d}))
    here = tables.rnn_line(setup.config, n)
    more = words.RNN_ATTENTION.format(
        d=numbers.whole(d), attention=count(here["attention"]), whole=count(here["whole"])
    )
    files = [(words.FILE_RNN, "headlight-compute-rnn-attention", table)]
    figure = partial(charts.figures(FIGURES).rnn, table, n)
    sentence = controls.headline(
        look, setup, _recurrent, controls.Chart("rnn", more, files, figure, "4 * plan.source_len * config.d_model**2")
    )
    controls.draw(look, "rnn", figure, sentence, note=more)
    st.caption(words.RNN_NOTE.format(d=numbers.whole(d)))
    controls.show_table(table, "rnn-attention")


def _reads(setup: Setup) -> str:
    """How much it reads and writes, or would if its layers stood in an encoder and in a decoder."""
    shown = setup if setup.config.kind == "encoder-decoder" else as_pair(setup)
    said = words.CROSS if shown is setup else words.CROSS_IF
    n, m = (f"{setup.batch} × {numbers.whole(length)}" for length in (shown.source_len, shown.target_len))
    return said.format(title=setup.title, kind=setup.config.kind, n=n, m=m)


def _cross(given: Setup, look: Look) -> None:
    setup = given if given.config.kind == "encoder-decoder" else as_pair(given)
    terms = tables.cross_terms(setup)
    found = terms["at_once"]
    maps = sum(found[name] for name in ("encoder_maps", "decoder_maps", "cross_maps"))
    more = words.CROSS_SIZES.format(
        own=count(found["encoder_maps"]),
        other=count(found["decoder_maps"]),
        cross=count(found["cross_maps"]),
        linear=round(100 * (1 - maps / sum(found.values()))),
    )
    table = tables.cross_table(setup)
    files = [(words.FILE_CROSS, "headlight-compute-encoder-decoder", table)]
    figure = partial(charts.figures(FIGURES).cross, terms)
    sentence = controls.headline(look, given, _reads, controls.Chart("cross", more, files, figure, "plan.flops", setup))
    controls.draw(look, "cross", figure, sentence, note=more)
    st.caption(words.CROSS_NOTE)
    if setup is not given:
        st.button(words.TAKE_TRANSFORMER, on_click=controls.take, args=("transformer-base",), key="compute_take")
    controls.show_table(table, "encoder-decoder", covers=controls.COVERS["cross"])


def _counted(setup: Setup) -> str:
    """How many parameters it has."""
    return words.PARAMETERS.format(title=setup.title, total=numbers.whole(parameters(setup.config).total))


def _parameters(setup: Setup, look: Look) -> None:
    found = parameters(setup.config)
    each = [stack.layer for stack in (found.encoder, found.decoder)]
    layer, mlp = sum(one.total for one in each), sum(one.mlp for one in each)
    more = words.PARAMETERS_LAYER.format(layer=numbers.whole(layer), share=numbers.fixed(100 * mlp / layer, 1))
    table = tables.depth_lines(setup.config)
    files = [(words.FILE_PARAMETERS, "headlight-compute-parameters", table)]
    figure = partial(charts.figures(FIGURES).depth, table, layers(setup.config))
    sentence = controls.headline(
        look, setup, _counted, controls.Chart("depth", more, files, figure, "plan.parameters.total")
    )
    controls.draw(look, "depth", figure, sentence, note=more)
    st.markdown(f"**{words.TRANSLATOR}**")
    st.text(numbers.filled(words.TRANSLATOR_WHY, **tables.translator()))
    frames.show(tables.translator_table(), key="compute_translator")
    controls.show_table(table, "parameters")


def _known(setup: Setup, look: Look) -> None:
    table = tables.known_models(setup)
    worst = tables.furthest(table)
    figure = partial(charts.figures(FIGURES).known, table)
    more = words.KNOWN_WORST.format(worst=worst[0], exact=numbers.whole(worst[1]), published=worst[2])
    sentence = controls.headline(
        look,
        setup,
        lambda _: words.KNOWN.format(n=len(PRESETS)),
        controls.Chart(
            "known",
            more,
            [(words.FILE_KNOWN, "headlight-compute-known-models", table)],
            figure,
            "plan.parameters.total",
        ),
        live=False,
    )
    controls.draw(look, "known", figure, sentence, note=more, above=None)
    st.text(_heads())
    st.caption(words.KNOWN_NOTE)
    controls.show_table(table, "known-models")
    controls.show_table(tables.lesson_sizes(), "lesson-sizes", words.LESSON_TITLE)


def _heads() -> str:
    """How wide heads are among the known models: 64 is a habit and no law."""
    wide = {preset.title: preset.config for preset in PRESETS.values()}
    others = [
        f"{title} {numbers.whole(config.d_model)} / {config.n_heads} = {config.d_head}"
        for title, config in wide.items()
        if config.d_head != 64
    ]
    return words.KNOWN_HEADS.format(n=len(wide) - len(others), others=", ".join(others))


PARTS: controls.Parts = {
    "operations": _operations,
    "roofline": _roofline,
    "rnn": _rnn,
    "cross": _cross,
    "parameters": _parameters,
    "known": _known,
}


def _step(setup: Setup) -> str:
    if not setup.config.n_decoder_layers:
        st.caption(words.NO_DECODE)
        return "prefill"
    titles = sizes_words.STEPS
    return widgets.row(st, STEP, sizes_words.STEP, list(titles), titles.__getitem__, help=words.STEP_HELP)
