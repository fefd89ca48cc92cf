"""Memory: what a model holds, item by item, how it grows, and where it no longer fits."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from app import languages
from app.kit import charts, cover, frames, stage, widgets
from app.kit.figure import ASKED
from app.kit.numbers import MIB, apart, both, filled, fixed, part_of, plain, size, whole
from app.kit.params import Param
from app.kit.widgets import Control, Panel
from app.rooms.memory import fit as first
from app.rooms.memory import tables, words
from app.session import boxes, chosen
from app.shell import run
from app.sizes import controls, seen
from app.sizes import setup as sizes_setup
from app.sizes import words as sizes_words
from app.sizes.controls import Look
from app.sizes.setup import Setup, layers
from core.errors import ConfigError, HeadlightError
from core.plan import DEVICES, Fit, kv_cache, memory_plan
from core.plan.live_memory import WORKER, Measured, MeasurementSetup, free

log = logging.getLogger("headlight")

LINES = ("RTX 4090", "A100 80 GB")
VIEW = first.VIEW
stage.ENTRIES[VIEW] = seen.ENTRY
PIECE = 2048  # tokens that vLLM reads of a prompt at once
SCORES_AT = (50, 100, 512, 1024)  # tokens, as lectures ask
FIGURES = f"{__package__}.figures"
CARDS = tuple(device.name for device in DEVICES)
MOST_CARDS = 4


def _cards_of(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _read_cards(text: str, _: Any) -> str:
    names = _cards_of(text)
    if len(names) > MOST_CARDS or not set(names) <= set(CARDS):
        raise ValueError
    return ",".join(names)


LABELS = sizes_words.LABELS
VARY = widgets.choice("memory_vary", sizes_words.VARY, LABELS["vary"][0])
DEVICES_SHOWN = Control(
    Param("memory_devices", ",".join(LINES), _read_cards, ", ".join(CARDS), LABELS["devices"][0]), _cards_of, ",".join
)
PANEL = Panel(VIEW, (first.PART, VARY, DEVICES_SHOWN, first.BUDGET, *first.OWN))
chosen.know(VIEW, many=(DEVICES_SHOWN.name,))


def show() -> None:
    """Draw the view."""
    wide = controls.Wide("fit", first.KEY, first.take)
    controls.show(PANEL, words.MEMORY_PARTS, PARTS, training=True, above=run.if_wanted, wide=wide)


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
    spared = [words.GOES_EAGER.format(eager=both(eager), saved=both(eager - total))] if eager > total else []
    controls.draw(look, "bars", figure, sentence, note=" ".join([*_otherwise(setup), *spared]))
    st.text(_cards(setup, total))
    st.caption(words.GOES_NOTE + sizes_words.CUDA)
    controls.show_table(table, "components")


def _otherwise(setup: Setup) -> list[str]:
    """What a run for writing would take if its prompt were read in pieces, or if all logits were kept."""
    if setup.training or setup.config.kind == "encoder":
        return []
    said = []

    def total(**change: Any) -> int:
        return memory_plan(setup.config, replace(setup.workload, **change)).total

    if setup.config.kind == "decoder" and not setup.piece and setup.batch * setup.source_len > PIECE:
        said.append(words.GOES_PIECES.format(piece=whole(PIECE), pieces=both(total(piece=PIECE))))
    if not setup.config.has_position_table and setup.workload.last_len > setup.config.n_ctx:
        said.append(words.GOES_BEYOND.format(n=whole(setup.config.n_ctx)))
    if setup.logits == "last" and total(logits="all") > total():
        said.append(words.GOES_LOGITS.format(all=both(total(logits="all"))))
    return said


def _cards(setup: Setup, total: int) -> str:
    """On which cards it fits, and what the smallest of them has left."""
    fitting, largest = tables.cards(setup)
    if not fitting:
        short = size(total - largest.memory)
        return words.CARD_NONE.format(all=len(DEVICES), device=largest.name, offered=size(largest.memory), short=short)
    first = fitting[0]
    left, offered = apart(first.memory - total, first.memory)
    return words.CARD_FITS.format(n=len(fitting), all=len(DEVICES), device=first.name, left=left, offered=offered)


def _length(setup: Setup, look: Look) -> None:
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="memory_controls")
    label, more = LABELS["devices"]
    default, key = widgets.opens(DEVICES_SHOWN), boxes.key(DEVICES_SHOWN.name)
    names = row.multiselect(label, CARDS, default=default, key=key, help=more, max_selections=MOST_CARDS)
    widgets.holds(DEVICES_SHOWN, names)
    label, more = LABELS["vary"]
    options = [name for name in sizes_words.VARY if name != "target_len" or setup.config.kind == "encoder-decoder"]
    vary = widgets.select(row, VARY, label, options, sizes_words.VARY.__getitem__, help=more, width=190)
    opened, key = widgets.opens(first.BUDGET), boxes.key(first.BUDGET.name)
    more = {"step": None, "help": words.BUDGET_HELP, "format": "%g", "width": 130}
    own = widgets.holds(first.BUDGET, row.number_input(words.BUDGET, *first.BUDGETS, opened, key=key, **more))
    pressed = row.button(words.MEASURE, key="memory_measure", help=words.MEASURE_HELP)
    counting = row.button(words.ALIVE, key="memory_alive", help=words.ALIVE_HELP)
    budgets = [(words.THIS_MACHINE, free())]
    budgets += [(device.name, device.memory) for device in DEVICES if device.name in names]
    budgets += [(filled(words.BUDGET_NAME, n=own), round(own * 1e9))] if own else []
    found = tables.fits(setup, budgets, vary)
    alive = _alive(setup, budgets, vary, counting)
    over, drawn, below = (st.container(gap=None) for _ in range(3))
    with below if look.projected else over, st.container(key="memory_fits", gap=None):
        for i, ((name, fit), tells) in enumerate(zip(found, tables.telling(found), strict=True)):
            with cover.over(f"fit_{i}", *(("number",) if tells else ())):
                st.text(_memory(name, fit.budget) + _breaks(setup, fit, vary, alive.get(name)))
        if not setup.training and setup.config.n_decoder_layers and vary != "batch":
            n = setup.source_len + setup.target_len
            each = (words.CHAT.format(device=name, n=whole(most)) for name, most in tables.chats(setup, budgets))
            st.text(words.CHATS.format(n=whole(n), chats=", ".join(each)))
    with below:
        measured = _measured(setup, pressed)
    ceiling = setup.config.longest_text
    every = tables.curves(setup)

    def figure(covered: str = "", **look: Any) -> Any:
        known = tables.known(every, covered, budgets[-1][1])
        return charts.figures(FIGURES).curves(known, setup, budgets, measured, **look)

    rows = [(name, fit) for name, bound in found for fit in (bound, alive.get(name)) if fit is not None]
    shown, broken = tables.curves_table(setup, measured), tables.fits_table(setup, rows)
    files = [
        (words.FILE_CURVES, "headlight-memory-lengths", shown),
        (words.FILE_FITS, "headlight-memory-longest-fit", broken),
    ]
    sentence = controls.headline(look, setup, _total, controls.Chart("curves", words.LENGTH_NOTE, files, figure))
    with drawn:
        controls.draw(look, "curves", figure, sentence)
    scores = {n: f"{whole(n)}: {both(tables.scores_of(setup, n))}" for n in SCORES_AT}
    with cover.instead("scores", "curve") as other:
        if cover.asked("curve"):
            known = [said if n <= tables.KNOWN else f"{whole(n)}: {ASKED}" for n, said in scores.items()]
            with other():
                st.text(words.SCORES_AT.format(rows=", ".join(known)))
        st.text(words.SCORES_AT.format(rows=", ".join(scores.values())))
    if ceiling is not None:
        st.text(words.BREAKS_TABLE.format(ceiling=whole(ceiling)))
    st.caption(words.LENGTH_NOTE + sizes_words.CUDA)
    covers = controls.COVERS["curves"]
    controls.show_table(shown, "curves", covers=covers)
    controls.show_table(broken, "longest-fit", words.FITS_TABLE, covers=covers)


def _memory(name: str, budget: int) -> str:
    """A memory and how large it is: of a card what it offers, and what it has."""
    card = next((device for device in DEVICES if device.name == name), None)
    if card is None:
        return words.BREAKS.format(device=name, size=size(budget))
    offered, everything = (f"{fixed(n / 1024, 2)} GiB" for n in (card.offered_mebibytes, card.mebibytes))
    return words.BREAKS_CARD.format(device=name, offered=offered, all=everything)


def _alive(setup: Setup, budgets: Sequence[tuple[str, int]], vary: str, pressed: bool) -> dict[str, Fit]:
    """The largest by what is alive at once, of every budget by its name, once the button asked for it; of this machine's memory,
    which is another every moment, none."""
    key = (setup, vary)
    if pressed:
        st.session_state["memory_counting"] = key
    if st.session_state.get("memory_counting") != key:
        return {}
    named = [(name, budget) for name, budget in budgets if name != words.THIS_MACHINE]
    try:
        with st.spinner(words.COUNTING.format(title=setup.title)):
            return dict(tables.fits(setup, named, vary, "alive"))
    except ConfigError as refusal:
        st.text(f"{refusal}.")
        return {}


def _breaks(setup: Setup, fit: Fit, vary: str, alive: Fit | None) -> str:
    """How many fit, and that one more does not; by the bound, and where it was counted by what is alive at once."""
    what = languages.translated(sizes_words.VARY[vary])
    if not fit.n:
        return words.BREAKS_NONE.format(next=both(fit.next_bytes), what=what)
    if (n := tables.usable(setup, fit)) < fit.n:
        most: dict[str, Any] = {vary: n}
        takes = memory_plan(setup.config, replace(setup.workload, **most)).total
        return words.BREAKS_ALL.format(n=whole(n), what=what, bytes=both(takes), more=whole(fit.n))
    takes, _, would = apart(fit.bytes, fit.budget, fit.next_bytes)
    counted = ""
    if alive is not None:
        least, _, more = apart(alive.bytes, alive.budget, alive.next_bytes)
        counted = words.BREAKS_ALIVE.format(n=whole(alive.n), bytes=least, more=whole(alive.n + 1), next=more)
    return words.BREAKS_FITS.format(
        n=whole(fit.n), what=what, bytes=takes, more=whole(fit.n + 1), next=would, alive=counted
    )


def _measured(setup: Setup, pressed: bool) -> Measured | None:
    """What was measured of this setup here; the button's run is waited for, and its sentence said."""
    subject = MeasurementSetup(setup.config, setup.workload)
    if pressed:
        st.session_state["memory_measuring"] = setup
    if st.session_state.get("memory_measuring") == setup:
        try:
            with st.spinner(words.MEASURING.format(title=setup.title)):
                WORKER.submit(subject).result()
        except HeadlightError as refusal:
            st.text(languages.said(refusal))
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
        n=whole(last.n),
        measured=both(last.measured),
        predicted=both(last.predicted),
        more=fixed(100 * (last.predicted / last.measured - 1), 1),
        weights=whole(last.weights),
        told=whole(last.predicted_weights),
    )
    if last.kept or last.predicted_kept:
        said += words.MEASURED_KEPT.format(
            what=words.KEPT_WORDS[setup.training], kept=whole(last.kept), told=whole(last.predicted_kept)
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
    table, totals = tables.kept_table(planned), tables.totals_table(setup)
    groups = tables.kept_groups(planned)
    figure = partial(charts.figures(FIGURES).kept, groups, planned.lesson_terms)
    sentence = controls.headline(
        look,
        setup,
        _five,
        controls.Chart(
            "kept",
            words.KEPT_NOTE,
            [(words.FILE_KEPT, "headlight-memory-kept", table), (words.FILE_TOTALS, "headlight-memory-totals", totals)],
            figure,
            'plan.lesson_terms["total"], plan.saved_per_layer',
        ),
    )
    missed = [f"{name} {both(n)}" for name, term, n in groups if term is None]
    controls.draw(look, "kept", figure, sentence)
    why = words.KEPT_WHY.format(missed=", ".join(missed) or words.NOTHING)
    covers = controls.COVERS["kept"]
    with cover.over("kept_all", *covers):
        st.text(everything + why + (words.KEPT_FUSED if setup.attention != "eager" else ""))
    other = "flash" if setup.attention == "eager" else "eager"
    *_, kept = tables.kept_sizes(replace(setup, attention=other))
    title = words.KEPT_OTHER.format(attention=other, kept=fixed(kept / MIB, 3))
    with cover.over("kept_other", *covers):
        take = partial(boxes.fill, controls.CONTROLS["attention"].name, other)
        st.button(title, key="memory_kept_other", type="tertiary", on_click=take)
    st.caption(words.KEPT_NOTE)
    st.text(words.TOTALS_TABLE)
    with cover.over("totals", "headline"):
        frames.show(totals, controls.columns(totals), key="memory_totals")
    controls.show_table(table, "kept", covers=covers)


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
    by = found.per_token / (2 * config.n_decoder_layers * config.n_kv_heads * config.d_head)
    more = words.CACHE_TOTAL.format(
        formula=words.CACHE_FORMULA.format(
            layers=config.n_decoder_layers,
            kv=config.n_kv_heads,
            d_head=config.d_head,
            by="1 byte" if by == 1 else f"{plain(by)} bytes",
        ),
        n=whole(n),
        batch=setup.batch,
        total=both(found.total),
    )
    more += words.CACHE_MHA.format(heads=config.n_heads, mha=both(found.as_mha), mqa=both(found.as_mqa))
    if found.cross_attention:
        more += words.CACHE_CROSS.format(cross=both(found.cross_attention), source=whole(setup.source_len))
    if config.window is not None:
        more += words.CACHE_WINDOW.format(window=whole(config.window))
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
    with cover.over("formula", *controls.COVERS["cache"]):
        st.text(more.strip())
    if setup is not given:
        st.button(words.TAKE_DECODER, on_click=controls.take, args=("gpt2",), key="memory_take")
    controls.show_table(table, "kv-cache", covers=controls.COVERS["cache"])


PARTS: controls.Parts = {"fit": first.show, "goes": _goes, "length": _length, "kept": _kept, "cache": _cache}
