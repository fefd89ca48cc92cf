"""Train: a small model learns before one's eyes, beside a twin with one thing changed."""

from app.kit.room import Room
from app.rooms.train import component, records, routes, view, words

ROOM = Room(
    id="train",
    title=words.TITLE,
    group="try",
    line=words.LINE,
    show=view.show,
    params=component.PARAMS,
    old=("Training", "training"),
    old_state={"recorded": "on"},
    routes=routes.ROUTES,
    kept=records.news,
)
