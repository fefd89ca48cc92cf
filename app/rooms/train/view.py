"""Train: the stage of a training; what comes of it reaches the browser by routes."""

from __future__ import annotations

import streamlit as st

from app.kit import stage
from app.rooms.train import message
from app.rooms.train.component import STAGE
from app.rooms.train.recorded import view as recorded
from app.session import notices, service
from core.learn.watched_training import Spec


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
    service.calls().begin(service.service().prepare_trainer(run))
    stage.draw(STAGE, followed, message.header())
