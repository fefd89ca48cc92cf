"""Sentences for a visitor, kept until a script that has shown them reaches its end: one that was broken off has shown nothing."""

from app.session.session_state import NOTICES, Key

SHOWN: Key[int] = Key("notices_shown")  # how many of NOTICES this script has taken


def begin() -> None:
    """Offer all sentences again, at the start of a script."""
    SHOWN.put(0)


def add(*sentences: str) -> None:
    """Show these sentences in the next room that is drawn, each once."""
    rest = waiting()
    NOTICES.put((*(NOTICES.get() or ()), *dict.fromkeys(one for one in sentences if one not in rest)))


def waiting() -> list[str]:
    """Return the sentences that no room has shown yet, and keep them."""
    return list((NOTICES.get() or ())[SHOWN.get() or 0 :])


def take() -> list[str]:
    """Return the sentences that no room has shown yet, for one that shows them now."""
    found = waiting()
    SHOWN.put(len(NOTICES.get() or ()))
    return found


def end() -> None:
    """Drop the sentences that were taken, at the end of a script."""
    NOTICES.put((NOTICES.get() or ())[SHOWN.get() or 0 :])
    SHOWN.put(0)
