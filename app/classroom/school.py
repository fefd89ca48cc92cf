"""The classes of this server, by their codes."""

from __future__ import annotations

import threading
from collections.abc import Callable

from app.classroom import codes
from app.classroom.state import Classroom, Screen

MOST_CLASSES = 50


class School:
    """Every class that is not over. A class that is over, or was never there, cannot be told from one that no one may enter."""

    def __init__(self, random: codes.RandomBytes, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.guesses = codes.Guesses(clock)
        self.first = codes.ALPHABET  # signs with which codes begin
        self._random = random
        self._lock = threading.Lock()
        self._classes: dict[str, Classroom] = {}

    def open(self, screen: Screen) -> Classroom | None:
        """A new class; None while MOST_CLASSES are open."""
        with self._lock:
            self._forget()
            if len(self._classes) >= MOST_CLASSES:
                return None
            code = codes.new(self._random, self.first)
            while code in self._classes:
                code = codes.new(self._random, self.first)
            found = self._classes[code] = Classroom(code, self._random, screen, self.clock())
            return found

    def find(self, code: str) -> Classroom | None:
        with self._lock:
            self._forget()
            return self._classes.get(code)

    def classes(self) -> list[Classroom]:
        """Those that are open now."""
        with self._lock:
            self._forget()
            return list(self._classes.values())

    def _forget(self) -> None:
        now = self.clock()
        self._classes = {code: found for code, found in self._classes.items() if not found.ended(now)}
