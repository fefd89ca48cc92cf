"""Sentences for a visitor that wait for the room which shows them, and for the end of the script in which it does."""

from app.session import at_end
from app.session.session_state import NOTICES


def add(*sentences: str) -> None:
    """Have these said in the next room that is drawn, each once."""
    rest = at_end.get(NOTICES, ())
    new = tuple(dict.fromkeys(sentence for sentence in sentences if sentence not in rest))
    NOTICES.put((*(NOTICES.get() or ()), *new))
    at_end.put(NOTICES, (*rest, *new))


def waiting() -> list[str]:
    """What there is to say, and still will be."""
    return list(at_end.get(NOTICES, ()))


def take() -> list[str]:
    """What there is to say, for a room that shows it now. A script that is broken off before its end leaves it to the next."""
    found = waiting()
    at_end.put(NOTICES, ())
    return found
