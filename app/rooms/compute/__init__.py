"""Compute: what a model computes and moves."""

from app.kit.room import Room
from app.rooms.compute import view, words
from app.sizes import controls

ROOM = Room(
    id="compute",
    title=words.TITLE,
    group="count",
    line=words.LINE,
    show=view.show,
    old={"Compute": controls.OLD},
    params=(*controls.SHARED.params, *view.PANEL.params),
)
