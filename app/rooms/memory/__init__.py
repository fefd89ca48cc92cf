"""Memory: what a model holds and where it no longer fits."""

from app.kit.room import Room
from app.rooms.memory import view, words
from app.sizes import controls

ROOM = Room(
    id="memory",
    title=words.TITLE,
    group="count",
    line=words.LINE,
    show=view.show,
    old={"Memory": {"memory_part": words.MEMORY_PARTS["goes"], **controls.OLD}},
    params=(*controls.SHARED.params, *view.PANEL.params),
)
