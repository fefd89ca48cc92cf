"""Memory: what a model holds, item by item, how it grows, and where it no longer fits."""

from __future__ import annotations

import logging
from collections.abc import Callable

import streamlit as st

from app import memory_tables as tables
from app import memory_words as words
from app import planning
from app.memory_run import WORKER, Measured, free
from app.memory_setup import Setup, layers
from app.memory_tables import both
from app.tables import size
from core.errors import Refused
from core.memory import MiB
from core.planner import DEVICES

log = logging.getLogger("headlight")

LINES = ("RTX 4090", "A100 80 GB")


def show() -> None:
    """Draw the view."""
    _view()


@st.fragment
def _view() -> None:
    left, right = st.columns([1, 2.05], gap="large")
    with right:
        chosen = planning.part(words.MEMORY_PARTS, "memory_part")
        sentences = st.container(key="plan_sentences", gap=None)
        body = st.container(key="memory_body", gap="small")
    with left:
        setup = planning.setup(sentences, training=True)
    if setup is not None:
        with body:
            PARTS[chosen](setup)


def _goes(setup: Setup) -> None:
    found = tables.components(setup)
    parts = found[setup.attention]
    total = sum(parts.values())
    largest = max(parts, key=lambda name: parts[name])
    sentence = words.GOES.format(
        title=setup.title,
        total=both(total),
        phase=words.PHASE_WORDS["training" if setup.training else "inference"],
        largest=words.COMPONENTS[largest][0].capitalize(),
        share=round(100 * parts[largest] / total),
    )
    st.markdown(f"#### {sentence}")
    eager = sum(found["eager"].values())
    if eager > total:
        st.text(words.GOES_EAGER.format(eager=both(eager), saved=both(eager - total)))
    figure = planning.figures("memory").bars(found, setup.attention, _theme())
    _chart(figure, "bars", sentence)
    st.caption(words.GOES_NOTE + words.CUDA)
    planning.show_table(tables.components_table(setup), "components")


def _length(setup: Setup) -> None:
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    label, more = words.LABELS["devices"]
    names = row.multiselect(
        label,
        [device.name for device in DEVICES],
        default=list(LINES),
        key="memory_devices",
        bind="query-params",
        persist_state="session",
        help=more,
        max_selections=4,
    )
    label, more = words.LABELS["vary"]
    options = [name for name in words.VARY if name != "target_len" or setup.config.kind == "encoder-decoder"]
    vary = row.selectbox(
        label,
        options,
        format_func=words.VARY.__getitem__,
        key="memory_vary",
        bind="query-params",
        persist_state="session",
        help=more,
        width=190,
    )
    pressed = row.button(words.MEASURE, key="memory_measure", help=words.MEASURE_HELP)
    budgets = [(words.THIS_MACHINE, free())]
    budgets += [(device.name, device.gigabytes * 10**9) for device in DEVICES if device.name in names]
    found = tables.fits(setup, budgets, vary)
    measured = _measured(setup, pressed)
    with st.container(key="memory_fits", gap=None):
        for name, fit in found:
            said = words.BREAKS.format(device=name, size=size(fit.budget))
            if fit.n:
                said += words.BREAKS_FITS.format(
                    n=f"{fit.n:,}",
                    what=words.VARY[vary],
                    bytes=_exact(fit.bytes),
                    more=f"{fit.n + 1:,}",
                    next=_exact(fit.next_bytes),
                )
            else:
                said += words.BREAKS_NONE.format(next=both(fit.next_bytes), what=f"1 of {words.VARY[vary]}")
            st.text(said)
    ceiling = setup.config.n_ctx if setup.config.position == "learned" else None
    figure = planning.figures("memory").curves(
        tables.curves(setup),
        budgets,
        setup.source_len,
        setup.attention,
        ceiling=ceiling,
        measured=measured,
        theme=_theme(),
    )
    _chart(figure, "curves", words.TOTAL_AXIS)
    if ceiling is not None:
        st.text(words.BREAKS_TABLE.format(ceiling=f"{ceiling:,}"))
    st.caption(words.LENGTH_NOTE + words.CUDA)
    planning.show_table(tables.curves_table(setup, measured), "curves")
    planning.show_table(tables.fits_table(found), "longest-fit", words.FITS_TABLE)


def _measured(setup: Setup, pressed: bool) -> Measured | None:
    """What was measured of this setup here; the button's run is waited for, and its sentence said."""
    if pressed:
        st.session_state["memory_measuring"] = setup
    if st.session_state.get("memory_measuring") == setup:
        try:
            with st.spinner(words.MEASURING.format(title=setup.title)):
                WORKER.submit(setup).result()
        except Refused as refusal:
            st.text(str(refusal))
        except Exception:
            log.exception("A measuring run failed")
            st.text(words.MEASURE_BROKEN)
        st.session_state.pop("memory_measuring", None)
    measured = WORKER.found(setup)
    if measured is None:
        return None
    last = measured.points[-1]
    same = last.weights == last.predicted_weights
    said = (words.MEASURED if same else words.MEASURED_WEIGHTS_OFF).format(
        ran=words.RAN[measured.ran],
        n=f"{last.n:,}",
        measured=both(last.measured),
        predicted=both(last.predicted),
        more=f"{100 * (last.predicted / last.measured - 1):.1f}",
        weights=f"{last.weights:,}",
        told=f"{last.predicted_weights:,}",
    )
    if last.kept or last.predicted_kept:
        said += words.MEASURED_KEPT.format(
            what=words.KEPT_WORDS[setup.training], kept=f"{last.kept:,}", told=f"{last.predicted_kept:,}"
        )
    st.text(said)
    return measured


def _kept(setup: Setup) -> None:
    planned = tables.planned(setup)
    first = planned.layers[0]
    lesson, n_layers = planned.lesson_terms["total"], layers(setup.config)
    sentence = words.KEPT.format(
        stack=first.stack,
        lesson=both(lesson),
        kept=both(planned.saved_per_layer),
    )
    everything = words.KEPT_ALL.format(
        layers=n_layers,
        lesson_all=both(lesson * n_layers),
        kept_all=both(sum(found.total for found in planned.layers if found.stack == first.stack)),
    )
    st.markdown(f"#### {sentence}")
    groups = tables.kept_groups(planned)
    missed = [f"{name} ({both(n)})" for name, term, n in groups if term is None]
    _chart(planning.figures("memory").kept(groups, planned.lesson_terms, _theme()), "kept", sentence)
    why = words.KEPT_WHY.format(missed=", ".join(missed) or words.NOTHING)
    st.text(everything + why + (words.KEPT_FUSED if setup.attention != "eager" else ""))
    st.caption(words.KEPT_NOTE)
    planning.show_table(tables.kept_table(planned), "kept")


def _cache(setup: Setup) -> None:
    if not setup.config.n_decoder_layers:
        st.markdown(f"#### {words.CACHE_NONE.format(title=setup.title)}")
        st.button(words.TAKE_DECODER, on_click=planning.take, args=("GPT-2 small",), key="memory_take")
        return
    config, planned = setup.config, tables.planned(setup)
    found = planned.kv_cache
    n = setup.target_len or setup.source_len
    by = found.per_token // (2 * config.n_decoder_layers * config.n_kv_heads * config.d_head)
    sentence = words.CACHE.format(
        title=setup.title,
        per_token=both(found.per_token),
    )
    more = words.CACHE_TOTAL.format(
        formula=words.CACHE_FORMULA.format(
            layers=config.n_decoder_layers, kv=config.n_kv_heads, d_head=config.d_head, by=by
        ),
        n=f"{n:,}",
        batch=setup.batch,
        total=both(found.total),
    )
    st.markdown(f"#### {sentence}")
    _chart(planning.figures("memory").cache(tables.cache_lines(setup), _theme()), "cache", sentence)
    more += words.CACHE_MHA.format(heads=config.n_heads, mha=both(found.as_mha), mqa=both(found.as_mqa))
    if found.cross_attention:
        more += words.CACHE_CROSS.format(cross=both(found.cross_attention), source=f"{setup.source_len:,}")
    if config.window is not None:
        more += words.CACHE_WINDOW.format(window=f"{config.window:,}")
    st.text(more.strip())
    planning.show_table(tables.cache_table(setup), "kv-cache")


PARTS: dict[str, Callable[[Setup], None]] = {"goes": _goes, "length": _length, "kept": _kept, "cache": _cache}


def _exact(n_bytes: int) -> str:
    """Bytes that differ by little must not read the same."""
    return f"{n_bytes / MiB:,.3f} MiB"


def _theme() -> str:
    return st.context.theme.type or "light"


def _chart(figure: object, key: str, alt: str) -> None:
    st.plotly_chart(figure, theme=None, key=f"memory_{key}", config={"displayModeBar": False}, alt=alt)  # type: ignore[arg-type]
