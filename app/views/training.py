"""Training: how models that ship have learnt, beside each other, and the way from there to their heads."""

from __future__ import annotations

from datetime import date

import streamlit as st

from app import controls, plan_export, planning, tables
from app import training_words as words
from app import words as shared
from app.components.planner import planner
from app.offered import MODELS
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
SHARE, OVER = 0.99, 20  # when a task counts as learnt: this share of tokens right, on average over so many steps


def show() -> None:
    """Draw the view."""
    figures = planning.figures(VIEW)
    wrong = planning.in_vain(VIEW, words.PARTS)
    page = planner.page(VIEW)
    row = st.container(horizontal=True, gap="medium", key="training_controls")
    with row:
        part = planning.part(words.PARTS, "training_part", words.PART)
        measure = planning.part(words.MEASURES, "training_measure", words.MEASURE)
    for note in [*wrong, *([page.note] if page.note else [])]:
        st.text(note)  # never markdown: it quotes what a link says
    names = {PLAIN.get(part, {}).get(name, MODELS[name].title): name for name in COMPARED[part] if name in MODELS}
    curves = {title: found for title, name in names.items() if (found := curve(name))}
    if not curves:
        st.text(words.NOTHING)
        return
    learnt = {title: figures.learnt_at(found, SHARE, OVER) for title, found in curves.items()}
    sentence = _headline(learnt)
    sizes = {title: MODELS[name].n_params for title, name in names.items()}
    table = figures.table(curves, sizes, measure, SHARE, OVER)
    shown = [words.PARTS[part], words.MEASURES[measure], ", ".join(names)]
    caption = plan_export.training_caption(shown, date.today())
    code = plan_export.training_snippet([name for title, name in names.items() if title in curves], measure)
    name = f"headlight-{VIEW}-{part}-{measure}"
    files = [
        (words.FILE_LINES, f"{name}-lines", figures.drawn(curves, measure)),
        (words.FILE_TABLE, f"{name}-table", table),
    ]
    about = plan_export.about(name, sentence, words.ABOUT[part], caption, code, files)
    data = {"sentence": sentence, "scale": page.scale, "chart": "training_chart", "about": about}
    planner.headline(VIEW, page, data)
    st.text(words.ABOUT[part])
    figure = figures.lines(curves, measure, st.context.theme.type or "light", page.scale)
    st.plotly_chart(figure, theme=None, key="training_chart", config={"displayModeBar": False}, alt=sentence)
    st.caption(words.NOTE[measure].format(share=tables.share(SHARE), over=OVER))
    with st.expander(words.TABLE, key="table_training", on_change="rerun") as box:
        if box.open:
            st.dataframe(table, hide_index=True)
    row = st.container(horizontal=True, gap="small", key="training_heads", vertical_alignment="center")
    row.text(words.HEADS, width="content")
    for title, name in names.items():
        row.button(title, key=f"heads_of_{name}", type="tertiary", on_click=_explore, args=(name,))


def _explore(name: str) -> None:
    st.session_state["view"] = shared.EXPLORE
    controls.take_model(name)


def _headline(learnt: dict[str, int | None]) -> str:
    """Who was first and who last, in a sentence that is only what the curves say."""
    share = tables.share(SHARE)
    reached = sorted((step, title) for title, step in learnt.items() if step is not None)
    never = [title for title, step in learnt.items() if step is None]
    if not reached:
        return words.HEADLINE_NONE.format(share=share)
    (first, quickest), (last, slowest) = reached[0], reached[-1]
    if never:
        return words.HEADLINE_NEVER.format(quickest=quickest, share=share, first=f"{first:,}", others=", ".join(never))
    return words.HEADLINE.format(quickest=quickest, slowest=slowest, share=share, first=f"{first:,}", last=f"{last:,}")
