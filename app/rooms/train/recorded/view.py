"""Draws the recorded curves: how models that ship have learnt, beside each other, and the way from there to their heads."""

from __future__ import annotations

from datetime import date

import streamlit as st

from app import languages
from app.export import about as export_about
from app.kit import charts, frames, headline, numbers, widgets
from app.kit import words as kit_words
from app.kit.widgets import Panel
from app.rooms.train.recorded import export, words
from app.session import room
from app.session.models import MODELS
from app.shell import request
from app.streamlit_edge import history
from core.checkpoints import curve

TASKS = ("copy", "reverse", "sort", "addition", "induction", "brackets")
COMPARED = {
    "heads": ("copy-heads-1", "copy-heads-2", "copy", "copy-heads-8", "copy-heads-16"),
    "norm": ("copy", "copy-post-ln"),
    "tasks": TASKS,
}
PLAIN = {
    "heads": {"copy": "4 heads"} | {f"copy-heads-{n}": f"{n} head{'s' * (n > 1)}" for n in (1, 2, 8, 16)},
    "norm": {"copy": "Pre-LN", "copy-post-ln": "Post-LN"},
}
VIEW = "training"
PARAM = "recorded"  # of Train, in the address
PART = widgets.choice("training_part", words.PARTS, kit_words.PART)
MEASURE = widgets.choice("training_measure", words.MEASURES, words.MEASURE)
PANEL = Panel("recorded", (PART, MEASURE))
SHARE, OVER = 0.99, 20  # when a task counts as learnt: this share of tokens right, on average over so many steps


def show() -> None:
    """Draw the view."""
    figures = charts.figures(f"{__package__}.figures")
    notes = PANEL.fill(None)
    scale = headline.scale(headline.key(VIEW))
    row = st.container(horizontal=True, gap="medium", key="training_controls")
    with row:
        part = widgets.row(st, PART, words.PART, list(words.PARTS), words.PARTS.__getitem__)
        measure = widgets.row(st, MEASURE, words.MEASURE, list(words.MEASURES), words.MEASURES.__getitem__)
        st.button(words.LIVE, key="training_live", type="tertiary", help=words.LIVE_HELP, on_click=_live)
    for note in PANEL.keep(PANEL.said(), notes):
        st.text(note)  # never markdown: it quotes what a link says
    names = {PLAIN.get(part, {}).get(name, MODELS[name].title): name for name in COMPARED[part] if name in MODELS}
    curves = {title: found for title, name in names.items() if (found := curve(name))}
    if not curves:
        st.text(words.NOTHING)
        return
    learnt = {title: figures.learnt_at(found, SHARE, OVER) for title, found in curves.items()}
    said = sentence(learnt)
    sizes = {title: MODELS[name].n_params for title, name in names.items()}
    table = figures.table(curves, sizes, measure, SHARE, OVER)
    shown = [languages.translated(words.PARTS[part]), languages.translated(words.MEASURES[measure]), ", ".join(names)]
    caption = export.caption(shown, date.today())
    code = export.snippet([name for title, name in names.items() if title in curves], measure)
    name = f"headlight-{VIEW}-{part}-{measure}"
    files = [
        (words.FILE_LINES, f"{name}-lines", figures.drawn(curves, measure)),
        (words.FILE_TABLE, f"{name}-table", table),
    ]
    about = export_about.about(name, said, words.ABOUT[part], caption, code, files)
    data = {"sentence": said, "scale": scale, "chart": "training_chart", "about": about}
    headline.headline(VIEW, data)
    st.text(words.ABOUT[part])
    figure = figures.lines(curves, measure, st.context.theme.type or "light", scale)
    st.plotly_chart(figure, theme=None, key="training_chart", config={"displayModeBar": False}, alt=said)
    st.caption(words.NOTE[measure].format(share=numbers.share(SHARE), over=OVER))
    with st.expander(words.TABLE, key="table_training", on_change="rerun") as box:
        if box.open:
            frames.show(table)
    row = st.container(horizontal=True, gap="small", key="training_heads", vertical_alignment="center")
    row.text(words.HEADS, width="content")
    for title, name in names.items():
        row.button(title, key=f"heads_of_{name}", type="tertiary", on_click=_explore, args=(name,))


def _live() -> None:
    """Back to where one trains."""
    history.write({PARAM: "off"})


def _explore(name: str) -> None:
    room.go("explore")
    request.choose_model(name)


def sentence(learnt: dict[str, int | None]) -> str:
    """Who was first and who last, in a sentence that is only what the curves say: who has the same step is named together."""
    share = numbers.share(SHARE)
    steps = sorted({step for step in learnt.values() if step is not None})
    never = [title for title, step in learnt.items() if step is None]
    if not steps:
        return words.HEADLINE_NONE.format(share=share)

    def at(step: int) -> str:
        return _listed([title for title, reached in learnt.items() if reached == step])

    first, last = steps[0], steps[-1]
    fills = {
        "share": share,
        "first": numbers.whole(first),
        "last": numbers.whole(last),
        "quickest": at(first),
        "slowest": at(last),
    }
    if never:
        return words.HEADLINE_NEVER.format(**fills, others=_listed(never))
    if first == last and len(learnt) > 1:
        return words.HEADLINE_SAME.format(**fills, all=at(first))
    return words.HEADLINE.format(**fills)


def _listed(titles: list[str]) -> str:
    """Names in a row: "A, B and C"."""
    *before, last = titles
    return words.AND.join([", ".join(before), last]) if before else last
