"""Training: how models that ship have learnt."""

from app.rooms.training import view, words
from app.shell.registry import Room

ROOM = Room(
    id="training",
    title=words.TITLE,
    group="learn",
    line=words.LINE,
    show=view.show,
    old=("Training",),
)
