"""Tracebacks in the log: where it failed and of what kind, and no more. What an error says may quote a visitor's text."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator

# What torch and the system say is of shapes, memory and files, never of what a visitor typed.
SPEAK = (RuntimeError, OSError, MemoryError)


def keep_texts_out() -> None:
    """From now on no logger of this process writes what an error says, except those of SPEAK."""
    make = logging.getLogRecordFactory()

    def made(*args: object, **more: object) -> logging.LogRecord:
        record = make(*args, **more)
        if record.exc_info and isinstance(record.exc_info[1], BaseException):
            record.exc_text = "\n".join(lines(record.exc_info[1]))  # which a formatter takes where it is there
        return record

    logging.setLogRecordFactory(made)


def lines(error: BaseException) -> Iterator[str]:
    """Of what led to the error, the first one first, and of the error."""
    for one in reversed([*chain(error)]):
        yield "Traceback (most recent call last):"
        yield "".join(traceback.format_tb(one.__traceback__)).rstrip("\n")
        yield f"{type(one).__qualname__}: {one}" if isinstance(one, SPEAK) else type(one).__qualname__


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what it came from, and so on."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
