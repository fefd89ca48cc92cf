"""Shapes: every tensor of the pass."""

from app.kit.room import Room
from app.rooms.shapes import component, dropped, values, view, words

ROOM = Room(
    id="shapes",
    title=words.TITLE,
    group="count",
    line=words.LINE,
    show=view.show,
    old={"Shapes": {}},
    params=(*view.PANEL.params, *component.PARAMS),
    routes=(*values.ROUTES, *dropped.ROUTES),
)
