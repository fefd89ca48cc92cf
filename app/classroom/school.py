"""The classes of this server, by their codes."""

from __future__ import annotations

import threading
from collections.abc import Callable

from app.classroom import codes, sentences
from app.classroom.state import Classroom, Screen
from core.errors import ServerBusy
from core.service.queue import VISITORS_PER_ADDRESS

MOST_CLASSES = 50
MOST_OF_ADDRESS = VISITORS_PER_ADDRESS  # classes opened from one network address, such as a school's


class School:
    """Every class that is not over. A class that is over, or was never there, cannot be told from one that no one may enter."""

    def __init__(self, random: codes.RandomBytes, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.first = codes.ALPHABET  # signs with which codes begin
        self._random = random
        self._lock = threading.Lock()
        self._classes: dict[str, Classroom] = {}
        self._addresses: dict[str, str] = {}  # that a class was opened from, by its code

    def open(self, screen: Screen, address: str) -> Classroom:
        """Open a class for a teacher at a network address. Raises Busy where there is no place left."""
        with self._lock:
            self._forget()
            if len(self._classes) >= MOST_CLASSES:
                raise ServerBusy(sentences.FULL_SERVER.format(n=MOST_CLASSES))
            if list(self._addresses.values()).count(address) >= MOST_OF_ADDRESS:
                raise ServerBusy(sentences.FULL_ADDRESS.format(n=MOST_OF_ADDRESS))
            code = codes.new(self._random, self.first)
            while code in self._classes:
                code = codes.new(self._random, self.first)
            self._addresses[code] = address
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
        self._addresses = {code: self._addresses[code] for code in self._classes}
