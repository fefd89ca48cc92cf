"""Shapes: every tensor of the pass."""

from app.kit.room import Room
from app.rooms.shapes import component, values, view, words
from app.sizes import pasted

ROOM = Room(
    id="shapes",
    title=words.TITLE,
    group="count",
    line=words.LINE,
    show=view.show,
    old={"Shapes": {}},
    titles={"of": view.CHOICES},
    params=(pasted.CONFIG, *component.PARAMS),
    routes=values.ROUTES,
)
