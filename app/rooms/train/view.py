"""Train: the stage of a training; what comes of it reaches the browser by routes."""

from __future__ import annotations

from datetime import date

import streamlit as st

from app.export import about
from app.kit import stage
from app.rooms.train import records
from app.rooms.train.component import STAGE
from app.rooms.train.recorded import view as recorded
from app.session import notices, service
from core.learn.watched_training import BATCH, LIVE, STEPS, TWINS, Spec
from core.plan import parameters


def show() -> None:
    """Draw the view."""
    followed = stage.follow(STAGE, None)
    for note in [*notices.take(), *followed.notes]:
        st.text(note)  # never markdown: it quotes what a link says
    if followed.values["recorded"] == "on":
        recorded.show()
        return
    recorded.PANEL.leave()
    run = Spec(followed.values["task"], seed=int(followed.values["seed"]))
    service.calls().begin(service.service().expect_training(run))
    stage.draw(STAGE, followed, header())


def header() -> dict[str, object]:
    """What the browser needs to know of every task and twin before anything is trained."""
    tasks = {name: {"vocabulary": list(task.vocabulary), "n_ctx": task.n_ctx} for name, task in LIVE.items()}
    twins = {name: {"fixed": twin.from_step_0, "heads": Spec(twin=name).config.n_heads} for name, twin in TWINS.items()}
    return {
        "tasks": tasks,
        "twins": twins,
        "parameters": {name: parameters(Spec(name).config).total for name in LIVE},
        "steps": STEPS,
        "batch": BATCH,
        "finished": records.there(),
        "weighed": {
            task: [twin for twin in twins if records.weighs(Spec(task, twin))]
            for task, twins in records.there().items()
        },
        "version": about.version(),
        "date": date.today().isoformat(),
    }
