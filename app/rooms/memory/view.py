"""Memory: what a model holds, item by item, how it grows, and where it no longer fits."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

import streamlit as st

from app.kit import charts, stage
from app.kit.numbers import apart, both, part_of, quoted, size
from app.rooms.memory import tables, words
from app.session.links import newly_asked
from app.shell import run
from app.sizes import controls, seen
from app.sizes import setup as sizes_setup
from app.sizes import words as sizes_words
from app.sizes.controls import Look
from app.sizes.setup import Setup, layers
from core.errors import Refused
from core.plan import DEVICES, Fit, kv_cache, memory_plan
from core.plan.measured import WORKER, Measured, Subject, free

log = logging.getLogger("headlight")

LINES = ("RTX 4090", "A100 80 GB")
VIEW = "memory"
stage.ENTRIES[VIEW] = seen.ENTRY
BUDGETS = (0.001, 1e6)  # GB that a visitor may type
SCORES_AT = (50, 100, 512, 1024)  # tokens, as lectures ask
FIGURES = "app.rooms.memory.figures"
CARDS = tuple(device.name for device in DEVICES)
CHOICES: charts.Choices = {
    "memory_vary": (sizes_words.LABELS["vary"][0], tuple(sizes_words.VARY.values())),
    "memory_devices": (sizes_words.LABELS["devices"][0], CARDS),
}


def show() -> None:
    """Draw the view."""
    controls.show(VIEW, words.MEMORY_PARTS, PARTS, CHOICES, training=True, above=run.if_wanted)


def _total(setup: Setup) -> str:
    """What it takes in all, and the largest part of it."""
    memory = memory_plan(setup.config, setup.workload)
    total, parts = memory.total, vars(memory)
    largest = max(words.COMPONENTS, key=parts.__getitem__)
    return words.GOES.format(
        title=setup.title,
        total=both(total),
        phase=words.PHASE_WORDS["training" if setup.training else "inference"],
        largest=words.COMPONENTS[largest][0],
        share=part_of(parts[largest], total),
    )


def _goes(setup: Setup, look: Look) -> None:
    found = tables.components(setup)
    total, eager = sum(found[setup.attention].values()), sum(found["eager"].values())
    table = tables.components_table(setup)
    files = [(words.FILE_PARTS, "headlight-memory-components", table)]
    figure = partial(charts.figures(FIGURES).bars, found, setup.attention)
    sentence = controls.headline(look, setup, _total, controls.Chart("bars", words.GOES_NOTE, files, figure))
    spared = words.GOES_EAGER.format(eager=both(eager), saved=both(eager - total)) if eager > total else ""
    controls.draw(look, "bars", figure, sentence, note=spared)
    st.caption(words.GOES_NOTE + sizes_words.CUDA)
    controls.show_table(table, "components")


def _budget_in_vain() -> str:
    """A sentence where a link newly asks for a memory that is none; "" otherwise."""
    asked = st.query_params.get("memory_budget", "")
    if not asked or not newly_asked("memory_budget", {"memory_budget": asked}):
        return ""
    try:
        wrong = not BUDGETS[0] <= float(asked) <= BUDGETS[1]
    except ValueError:
        wrong = True
    low, high = BUDGETS
    return words.BUDGET_WRONG.format(asked=quoted(asked), low=low, high=int(high)) if wrong else ""


def _length(setup: Setup, look: Look) -> None:
    if said := _budget_in_vain():
        st.text(said)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="memory_controls")
    label, more = sizes_words.LABELS["devices"]
    names = row.multiselect(
        label,
        CARDS,
        default=list(LINES),
        key="memory_devices",
        bind="query-params",
        persist_state="session",
        help=more,
        max_selections=4,
    )
    label, more = sizes_words.LABELS["vary"]
    options = [name for name in sizes_words.VARY if name != "target_len" or setup.config.kind == "encoder-decoder"]
    vary = row.selectbox(
        label,
        options,
        format_func=sizes_words.VARY.__getitem__,
        key="memory_vary",
        bind="query-params",
        persist_state="session",
        help=more,
        width=190,
    )
    own = row.number_input(
        words.BUDGET,
        *BUDGETS,
        value=None,
        step=None,
        key="memory_budget",
        bind="query-params",
        persist_state="session",
        help=words.BUDGET_HELP,
        format="%g",
        width=130,
    )
    pressed = row.button(words.MEASURE, key="memory_measure", help=words.MEASURE_HELP)
    budgets = [(words.THIS_MACHINE, free())]
    budgets += [(device.name, device.gigabytes * 10**9) for device in DEVICES if device.name in names]
    budgets += [(words.BUDGET_NAME.format(n=own), round(own * 1e9))] if own else []
    found = tables.fits(setup, budgets, vary)
    over, drawn, below = (st.container(gap=None) for _ in range(3))
    with below if look.projected else over, st.container(key="memory_fits", gap=None):
        for name, fit in found:
            st.text(words.BREAKS.format(device=name, size=size(fit.budget)) + _breaks(setup, fit, vary))
    with below:
        measured = _measured(setup, pressed)
    ceiling = setup.config.n_ctx if setup.config.position == "learned" else None
    figure = partial(
        charts.figures(FIGURES).curves,
        tables.curves(setup),
        setup,
        budgets,
        measured,
    )
    shown, broken = tables.curves_table(setup, measured), tables.fits_table(setup, found)
    files = [
        (words.FILE_CURVES, "headlight-memory-lengths", shown),
        (words.FILE_FITS, "headlight-memory-longest-fit", broken),
    ]
    sentence = controls.headline(look, setup, _total, controls.Chart("curves", words.LENGTH_NOTE, files, figure))
    with drawn:
        controls.draw(look, "curves", figure, sentence)
    rows = ", ".join(f"{n:,}: {both(tables.scores_of(setup, n))}" for n in SCORES_AT)
    st.text(words.SCORES_AT.format(rows=rows))
    if ceiling is not None:
        st.text(words.BREAKS_TABLE.format(ceiling=f"{ceiling:,}"))
    st.caption(words.LENGTH_NOTE + sizes_words.CUDA)
    controls.show_table(shown, "curves")
    controls.show_table(broken, "longest-fit", words.FITS_TABLE)


def _breaks(setup: Setup, fit: Fit, vary: str) -> str:
    """How many fit, and that one more does not."""
    what = sizes_words.VARY[vary]
    if not fit.n:
        return words.BREAKS_NONE.format(next=both(fit.next_bytes), what=what)
    if (n := tables.usable(setup, fit)) < fit.n:
        takes = memory_plan(setup.config, replace(setup.workload, **{vary: n})).total
        return words.BREAKS_ALL.format(n=f"{n:,}", what=what, bytes=both(takes), more=f"{fit.n:,}")
    takes, _, would = apart(fit.bytes, fit.budget, fit.next_bytes)
    return words.BREAKS_FITS.format(n=f"{fit.n:,}", what=what, bytes=takes, more=f"{fit.n + 1:,}", next=would)


def _measured(setup: Setup, pressed: bool) -> Measured | None:
    """What was measured of this setup here; the button's run is waited for, and its sentence said."""
    subject = Subject(setup.config, setup.workload)
    if pressed:
        st.session_state["memory_measuring"] = setup
    if st.session_state.get("memory_measuring") == setup:
        try:
            with st.spinner(words.MEASURING.format(title=setup.title)):
                WORKER.submit(subject).result()
        except Refused as refusal:
            st.text(str(refusal))
        except Exception:
            log.exception("A measuring run failed")
            st.text(words.MEASURE_BROKEN)
        st.session_state.pop("memory_measuring", None)
    measured = WORKER.found(subject)
    if measured is None:
        return None
    last = measured.points[-1]
    same = last.weights == last.predicted_weights
    said = (words.MEASURED if same else words.MEASURED_WEIGHTS_OFF).format(
        ran=words.RAN[measured.ran],
        batch=measured.batch,
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


def _five(setup: Setup) -> str:
    """The textbook's five terms beside what autograd keeps, of one layer."""
    stack, lesson, kept = tables.kept_sizes(setup)
    return words.KEPT.format(stack=stack, lesson=both(lesson), kept=both(kept))


def _kept(setup: Setup, look: Look) -> None:
    planned = sizes_setup.planned(setup)
    first = planned.layers[0]
    lesson, n_layers = planned.lesson_terms["total"], layers(setup.config)
    everything = words.KEPT_ALL.format(
        layers=n_layers,
        lesson_all=both(lesson * n_layers),
        kept_all=both(sum(found.total for found in planned.layers if found.stack == first.stack)),
    )
    table = tables.kept_table(planned)
    groups = tables.kept_groups(planned)
    figure = partial(charts.figures(FIGURES).kept, groups, planned.lesson_terms)
    sentence = controls.headline(
        look,
        setup,
        _five,
        controls.Chart(
            "kept",
            words.KEPT_NOTE,
            [(words.FILE_KEPT, "headlight-memory-kept", table)],
            figure,
            'plan.lesson_terms["total"], plan.saved_per_layer',
        ),
    )
    missed = [f"{name} {both(n)}" for name, term, n in groups if term is None]
    controls.draw(look, "kept", figure, sentence)
    why = words.KEPT_WHY.format(missed=", ".join(missed) or words.NOTHING)
    st.text(everything + why + (words.KEPT_FUSED if setup.attention != "eager" else ""))
    st.caption(words.KEPT_NOTE)
    controls.show_table(table, "kept")


def _grows(setup: Setup) -> str:
    """What each new token adds to the cache, or would add if an encoder's layers were a decoder's."""
    shown = setup if setup.config.n_decoder_layers else sizes_setup.as_decoder(setup)
    found = kv_cache(shown.config, batch=setup.batch, n=1, dtype=setup.kv_dtype or setup.dtype)
    said = words.CACHE if shown is setup else words.CACHE_IF
    return said.format(title=setup.title, per_token=both(found.per_token))


def _cache(given: Setup, look: Look) -> None:
    setup = given if given.config.n_decoder_layers else sizes_setup.as_decoder(given)
    config = setup.config
    n = setup.target_len or setup.source_len
    memory_len = setup.source_len if config.kind == "encoder-decoder" else 0
    kept_as = setup.kv_dtype or setup.dtype
    found = kv_cache(config, batch=setup.batch, n=n, memory_len=memory_len, dtype=kept_as)
    by = found.per_token // (2 * config.n_decoder_layers * config.n_kv_heads * config.d_head)
    more = words.CACHE_TOTAL.format(
        formula=words.CACHE_FORMULA.format(
            layers=config.n_decoder_layers,
            kv=config.n_kv_heads,
            d_head=config.d_head,
            by="1 byte" if by == 1 else f"{by} bytes",
        ),
        n=f"{n:,}",
        batch=setup.batch,
        total=both(found.total),
    )
    more += words.CACHE_MHA.format(heads=config.n_heads, mha=both(found.as_mha), mqa=both(found.as_mqa))
    if found.cross_attention:
        more += words.CACHE_CROSS.format(cross=both(found.cross_attention), source=f"{setup.source_len:,}")
    if config.window is not None:
        more += words.CACHE_WINDOW.format(window=f"{config.window:,}")
    table = tables.cache_table(setup)
    figure = partial(charts.figures(FIGURES).cache, tables.cache_lines(setup))
    sentence = controls.headline(
        look,
        given,
        _grows,
        controls.Chart(
            "cache",
            more,
            [(words.FILE_CACHE, "headlight-memory-kv-cache", table)],
            figure,
            "plan.kv_cache.per_token, plan.kv_cache.total",
            setup,
        ),
    )
    controls.draw(look, "cache", figure, sentence)
    st.text(more.strip())
    if setup is not given:
        st.button(words.TAKE_DECODER, on_click=controls.take, args=("GPT-2 small",), key="memory_take")
    controls.show_table(table, "kv-cache")


PARTS: controls.Parts = {"goes": _goes, "length": _length, "kept": _kept, "cache": _cache}
