"""Lessons that visitors opened from files of their own: in memory, each for the browser that brought it, and for no other."""

from __future__ import annotations

import threading
from collections import OrderedDict

from app.rooms.lessons.written.lesson import WrittenLesson

MOST_LESSONS = 10  # of a visitor
MOST_VISITORS = 100


class Desk:
    """The lessons of each visitor by their names. Of too many, what was brought first is let go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # routes put them here, and scripts read them
        self._brought: OrderedDict[str, OrderedDict[str, WrittenLesson]] = OrderedDict()

    def put(self, visitor: str, name: str, lesson: WrittenLesson) -> None:
        """From now on the visitor has it, in place of an earlier one of this name."""
        with self._lock:
            own = self._brought.setdefault(visitor, OrderedDict())
            self._brought.move_to_end(visitor)
            own[name] = lesson
            own.move_to_end(name)
            if len(own) > MOST_LESSONS:
                own.popitem(last=False)
            if len(self._brought) > MOST_VISITORS:
                self._brought.popitem(last=False)

    def lessons(self, visitor: str) -> dict[str, WrittenLesson]:
        """Those of a visitor, in the order in which they were brought."""
        with self._lock:
            return dict(self._brought.get(visitor, {}))


desk = Desk()
