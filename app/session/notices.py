"""Sentences for a visitor that wait for the room which shows them."""

from app.session.session_state import NOTICES


def add(*sentences: str) -> None:
    """Have these said in the next room that is drawn."""
    NOTICES.put((*waiting(), *sentences))


def waiting() -> list[str]:
    """What there is to say, and still will be."""
    return list(NOTICES.get() or ())


def take() -> list[str]:
    """Return and clear the pending notices."""
    return list(NOTICES.take() or ())
