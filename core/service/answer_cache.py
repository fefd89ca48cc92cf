"""AnswerCache: answers that were computed, up to a number of bytes; what is asked for twice at once is computed once."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from .arrival import arrival
from .turns import Askers, asked_by, current_askers

T = TypeVar("T")


class AnswerCache:
    """Values by key, oldest use dropped first. `size` says how many bytes a value takes. Any number of threads and loops may ask.

    `of` gives everything else that the value of a key depends on: one that was made of something else is made again.
    """

    def __init__(
        self,
        max_bytes: int,
        size: Callable[[Any], int],
        of: Callable[[Hashable], Hashable] = lambda _: None,
    ) -> None:
        self.max_bytes, self.size, self.of, self.nbytes = max_bytes, size, of, 0
        self._values: OrderedDict[Hashable, tuple[Any, int, Hashable]] = (
            OrderedDict()
        )  # with bytes and what it is made of
        self._under_way: dict[Hashable, tuple[Future[Any], Askers]] = {}
        self._lock = threading.Lock()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """The value of this key, made if it is not there. What `make` raises reaches everybody who waits, and is not kept."""
        while True:
            made_of = self.of(key)
            with self._lock:
                if key in self._values and self._values[key][2] == made_of:
                    self._values.move_to_end(key)
                    return self._values[key][0]
                making = (key, made_of)
                mine = making not in self._under_way
                if mine:
                    self._under_way[making] = Future(), Askers(parent=current_askers())
                future, askers = self._under_way[making]
                if not mine:
                    askers.join(current_askers())
            if mine:
                with asked_by(askers):
                    return await self._make(key, made_of, future, make)
            with suppress(_Abandoned):
                return await arrival(future)

    def known(self, key: Hashable) -> Any:
        """The value of this key, or None where it is not there."""
        made_of = self.of(key)
        with self._lock:
            return self._values[key][0] if key in self._values and self._values[key][2] == made_of else None

    def put(self, key: Hashable, value: object) -> None:
        """Keep a value that was made elsewhere."""
        self._put(key, value, self.of(key))

    def _put(self, key: Hashable, value: object, made_of: Hashable) -> None:
        size = self.size(value)
        with self._lock:
            if key in self._values:
                self.nbytes -= self._values.pop(key)[1]
            self._values[key] = (value, size, made_of)
            self.nbytes += size
            while self.nbytes > self.max_bytes:
                self.nbytes -= self._values.popitem(last=False)[1][1]

    async def _make(self, key: Hashable, made_of: Hashable, future: Future[Any], make: Callable[[], Awaitable[T]]) -> T:
        try:
            value = await make()
            self._put(key, value, made_of)
        except BaseException as error:
            with self._lock:
                del self._under_way[key, made_of]
            # Who began it may wait no longer, but the others do: one of them begins it again.
            future.set_exception(_Abandoned() if isinstance(error, asyncio.CancelledError) else error)
            raise
        with self._lock:
            del self._under_way[key, made_of]
        future.set_result(value)
        return value


class _Abandoned(Exception):
    """Whoever worked this out was cancelled."""
