"""Compute: what a model works out and moves, operation by operation, and which of the two is the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from app import memory_tables as tables
from app import memory_words as words
from app import planning
from app.memory_setup import Setup, layers
from app.memory_tables import both, count
from core.planner import DEVICES, PRESETS, Device, parameters

CARD = "A100 80 GB"


def show() -> None:
    """Draw the view."""
    _view()


@st.fragment
def _view() -> None:
    left, right = st.columns([1, 2.05], gap="large")
    with right:
        chosen = planning.part(words.COMPUTE_PARTS, "compute_part")
        sentences = st.container(key="plan_sentences", gap=None)
        body = st.container(key="compute_body", gap="small")
    with left:
        setup = planning.setup(sentences, training=False)
    if setup is not None:
        with body:
            PARTS[chosen](setup)


def _operations(setup: Setup) -> None:
    step = _step(setup)
    groups = tables.operation_groups(tables.operations_of(setup, step))
    flops, useful, moved = (sum(values[i] for values in groups.values()) for i in range(3))
    most = max(groups, key=lambda name: groups[name][0])
    mover = max(groups, key=lambda name: groups[name][2])
    n = setup.target_len or setup.source_len
    what = (words.OPERATIONS_ONE if step == "decode" else words.OPERATIONS_ALL).format(batch=setup.batch, n=f"{n:,}")
    sentence = words.OPERATIONS.format(
        title=setup.title,
        flops=count(flops),
        traffic=both(moved),
        what=what,
    )
    more = words.OPERATIONS_MOST.format(
        largest=words.GROUPS[most],
        share=round(100 * groups[most][0] / flops),
        moves=words.GROUPS[mover],
        moved=round(100 * groups[mover][2] / moved),
    )
    if useful != flops:
        more += " " + words.OPERATIONS_CAUSAL.format(useful=count(useful))
    st.markdown(f"#### {sentence}")
    st.text(more)
    figure = planning.figures("compute").operations(groups, causal=useful != flops, theme=_theme())
    _chart(figure, "operations", sentence)
    table = tables.operations_table(setup, step)
    shown = table.assign(
        flops=[count(n) for n in table["flops"]],
        useful=[count(n) for n in table["useful"]],
        intensity=table["intensity"].round(1),
        mib=table["mib"].round(3),
    )
    names = ["operation", "flops", "formula", "order", "mib", "moved", "intensity"]
    columns: dict[str, str | None] = {name: words.COLUMNS[name] for name in names}
    st.dataframe(shown[names], hide_index=True, column_config=columns, key="compute_rows", height="content")
    st.caption(words.OPERATIONS_NOTE + words.CUDA)
    planning.show_table(table, "operations")


def _roofline(setup: Setup) -> None:
    if setup.dtype == "float32":
        setup = replace(setup, dtype="bfloat16")  # the roofs are for 16 bits
    cards = _cards()
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with row.container(width=260):
        st.session_state.setdefault("compute_card", CARD)
        name = planning.one_of("device", [card.name for card in cards], "compute_card")
    device = next(card for card in cards if card.name == name)
    steps = {step: tables.operations_of(setup, step) for step in words.STEPS}
    whole = {step: tables.ideal(setup, step) for step in words.STEPS if steps[step]}
    said = {step: _limit(device, *found) for step, found in whole.items()}
    intensity, limit, time = said["prefill"]
    n = setup.source_len + setup.target_len
    sentence = words.ROOF.format(
        device=device.name,
        ridge=device.ridge,
    )
    more = words.ROOF_PREFILL.format(
        n=f"{setup.batch} × {n:,}",
        prefill=intensity,
        prefill_limit=words.LIMITS[limit],
        prefill_time=tables.seconds(time),
    )
    if "decode" in said:
        intensity, limit, time = said["decode"]
        more += " " + words.ROOF_DECODE.format(
            decode=intensity,
            decode_limit=words.LIMITS[limit],
            decode_time=tables.seconds(time),
            rate=f"{setup.batch / time:,.0f}",
            batch=setup.batch,
        )
    st.markdown(f"#### {sentence}")
    st.text(more)
    _chart(planning.figures("compute").roofline(device, steps, whole, _theme()), "roofline", sentence)
    st.caption(words.ROOF_NOTE + words.CUDA)
    planning.show_table(tables.bounds_table(setup, device), "roofline")
    _edit_cards()


def _cards() -> list[Device]:
    """The cards with the figures that this visitor has typed over them."""
    cards: list[Device] = []
    edits = (st.session_state.get("compute_cards") or {}).get("edited_rows", {})
    for i, device in enumerate(DEVICES):
        changed = {"gigabytes_per_second": device.gigabytes_per_second, "teraflops": device.teraflops}
        changed |= {key: value for key, value in edits.get(i, {}).items() if key in changed}
        if all(isinstance(value, int | float) and value > 0 for value in changed.values()):
            source = device.source if i not in edits else f"changed here; was {device.source}"
            cards.append(Device(device.name, device.gigabytes, source=source, **changed))
        else:
            st.text(words.CARDS_WRONG)
            cards.append(device)
    return cards


def _edit_cards() -> None:
    with st.expander(words.CARDS, key="compute_cards_box"):
        columns = dict(words.CARDS_COLUMNS)
        st.data_editor(
            tables.devices_table(),
            hide_index=True,
            column_config=columns,
            disabled=["name", "gigabytes", "ridge", "source"],
            key="compute_cards",
        )
        st.caption(words.CARDS_NOTE)


def _limit(device: Device, flops: int, n_bytes: int) -> tuple[float, str, float]:
    """FLOPs per byte, which of the two is the limit, and the least seconds."""
    compute, memory = flops / (device.teraflops * 1e12), n_bytes / (device.gigabytes_per_second * 1e9)
    return flops / n_bytes, "compute" if compute > memory else "memory", max(compute, memory)


def _rnn(setup: Setup) -> None:
    d, n = setup.config.d_model, setup.source_len
    lengths = sorted({*(2**i for i in range(2, 18)), n, d})
    table = tables.rnn_lines(d, lengths)
    here = table[table["n"] == n].iloc[0]
    sentence = words.RNN.format(
        n=f"{n:,}",
        d=f"{d:,}",
        rnn=count(here["rnn"]),
    )
    more = words.RNN_ATTENTION.format(
        d=f"{d:,}",
        attention=count(here["attention"]),
        whole=count(here["whole"]),
    )
    st.markdown(f"#### {sentence}")
    st.text(more)
    _chart(planning.figures("compute").rnn(table, n, _theme()), "rnn", sentence)
    st.caption(words.RNN_NOTE)
    planning.show_table(table, "rnn-attention")


def _cross(setup: Setup) -> None:
    if setup.config.kind != "encoder-decoder":
        st.markdown(f"#### {words.CROSS_NONE.format(title=setup.title, kind=setup.config.kind)}")
        title = PRESETS["transformer-base"].title
        st.button(words.TAKE_TRANSFORMER, on_click=planning.take, args=(title,), key="compute_take")
        return
    terms = tables.cross_terms(setup)
    found = terms["at_once"]
    maps = sum(found[name] for name in ("encoder_maps", "decoder_maps", "cross_maps"))
    sentence = words.CROSS.format(
        title=setup.title,
        n=f"{setup.batch} × {setup.source_len:,}",
        m=f"{setup.batch} × {setup.target_len:,}",
    )
    more = words.CROSS_SIZES.format(
        own=count(found["encoder_maps"]),
        other=count(found["decoder_maps"]),
        cross=count(found["cross_maps"]),
        linear=round(100 * (1 - maps / sum(found.values()))),
    )
    st.markdown(f"#### {sentence}")
    st.text(more)
    _chart(planning.figures("compute").cross(terms, _theme()), "cross", sentence)
    st.caption(words.CROSS_NOTE)
    planning.show_table(tables.cross_table(setup), "encoder-decoder")


def _parameters(setup: Setup) -> None:
    found = parameters(setup.config)
    layer = found.encoder.layer.total + found.decoder.layer.total
    sentence = words.PARAMETERS.format(title=setup.title, total=f"{found.total:,}")
    st.markdown(f"#### {sentence}")
    st.text(words.PARAMETERS_LAYER.format(layer=f"{layer:,}", share=f"{100 * found.mlp_share:.1f}"))
    table = tables.depth_lines(setup.config)
    _chart(planning.figures("compute").depth(table, layers(setup.config), _theme()), "depth", sentence)
    st.markdown(f"**{words.TRANSLATOR}**")
    st.text(words.TRANSLATOR_WHY.format(**tables.translator()))
    planning.show_table(table, "parameters")


def _known(setup: Setup) -> None:
    table = tables.known_models(setup)
    worst = tables.furthest(table)
    sentence = words.KNOWN.format(n=len(PRESETS))
    st.markdown(f"#### {sentence}")
    st.text(words.KNOWN_WORST.format(worst=worst[0], exact=f"{worst[1]:,}", published=worst[2]))
    _chart(planning.figures("compute").known(table, _theme()), "known", sentence)
    st.caption(words.KNOWN_NOTE)
    planning.show_table(table, "known-models")


PARTS: dict[str, Callable[[Setup], None]] = {
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
    return st.segmented_control(
        words.STEP,
        list(words.STEPS),
        format_func=words.STEPS.__getitem__,
        default="prefill",
        required=True,
        key="compute_step",
        bind="query-params",
        persist_state="session",
        help=words.STEP_HELP,
        label_visibility="collapsed",
    )


def _theme() -> str:
    return st.context.theme.type or "light"


def _chart(figure: object, key: str, alt: str) -> None:
    st.plotly_chart(figure, theme=None, key=f"compute_{key}", config={"displayModeBar": False}, alt=alt)  # type: ignore[arg-type]
