"""Codes that open a class, keys that tell its teacher from its followers, and how often a visitor may guess a code."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from app.classroom import sentences

ALPHABET = "BCDFGHJKLMNPQRSTVWXYZ3479"  # no vowels, which make words, and no sign that is read as another: 0 1 2 5 6 8
SIGNS = 8  # 25^8: 37 bits
OURS = "HEADLIGHT_CODES"  # the first signs of the codes of this process, where there are several
BETWEEN = str.maketrans("", "", " -\u2009\u00a0")  # what a visitor types between the signs
MINUTE = 60.0  # seconds
WRONG_OF_ONE = 30  # codes a minute from one address: from then on a wrong one has to wait
MOST_OF_ONE = 300  # the same: from then on none is looked up, also no right one
MOST_OF_ALL = 3_000  # of all together, so that many addresses are no way around it

RandomBytes = Callable[[int], bytes]  # secrets.token_bytes


def new(random: RandomBytes, first: str = ALPHABET) -> str:
    """A code that begins with a sign of `first`, each as likely as any other."""
    signs = ""
    while len(signs) < SIGNS:
        (byte,) = random(1)
        sign = ALPHABET[byte % len(ALPHABET)]
        # 250 is ten times the alphabet: the rest would make its first signs likelier.
        if byte < 250 and (signs or sign in first):
            signs += sign
    return signs


def ours(value: str | None = None) -> str:
    """With what the codes of this process begin, as HEADLIGHT_CODES says: a proxy then knows from a code where its class is. Without
    it, any sign. Raises ValueError for what is no such signs."""
    asked = os.environ.get(OURS, "") if value is None else value
    if len(set(asked)) != len(asked) or not set(asked) <= set(ALPHABET):
        raise ValueError(sentences.NO_SIGNS.format(name=OURS, value=asked[:40], signs=ALPHABET))
    return asked or ALPHABET


def read(text: object) -> str:
    """The code that a visitor typed, in capitals and without what stands between; "" for what can be none."""
    if not isinstance(text, str) or len(text) > 4 * SIGNS:
        return ""
    found = text.translate(BETWEEN).upper()
    return found if len(found) == SIGNS and set(found) <= set(ALPHABET) else ""


class Guesses:
    """Wrong codes of the last minute, by address; right ones cost nothing, since a whole school may have one address.

    A right code opens its class while its address has to wait: one pupil who types wrong codes locks no one out. So what bounds guessing
    is how many codes are looked up at all, MOST_OF_ONE and MOST_OF_ALL a minute. There are 25^8 = 1.5e11 codes. One address has a chance
    of 300 · 60 / 1.5e11 = 1 in 8 million to find a certain class within an hour. All addresses together, that guess day and night
    against 50 open classes, find one of them on one day in 700 (3,000 · 1,440 · 50 / 1.5e11 = 0.14 %); what they see is a sentence
    and its votes. Were right codes looked up without any limit, 2,000 guesses a second would find one in 18 days. Where processes
    share the signs (ours()), each counts for itself and has its classes in its own part of the codes: of two, a class is found on one
    day in 175.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()  # when each came; at most MOST_OF_ALL together
        self._all: list[float] = []

    def wait(self, address: str) -> float:
        """0 where a code from this address may be looked up now, else the seconds until it may."""
        with self._lock:
            now = self._forget()
            one, every = self._wrong.get(address, []), self._all
            until = [_under(times, most) for times, most in ((one, MOST_OF_ONE), (every, MOST_OF_ALL))]
            return max(0.0, *(at - now for at in until))

    def wrong(self, address: str) -> float:
        """A code that was tried there is none of ours. Returns the seconds until one may be wrong again; 0 where one may now."""
        with self._lock:
            now = self._forget()
            one = self._wrong.setdefault(address, [])
            wait = max(0.0, _under(one, WRONG_OF_ONE) - now)
            one.append(now)
            self._all.append(now)
            return wait

    @property
    def addresses(self) -> int:
        """How many are remembered."""
        with self._lock:
            self._forget()
            return len(self._wrong)

    def _forget(self) -> float:
        """Drop what is older than a minute. Returns the time."""
        now = self._clock()
        begin = now - MINUTE
        self._all = [at for at in self._all if at > begin]
        for address in list(self._wrong):
            left = [at for at in self._wrong[address] if at > begin]
            if left:
                self._wrong[address] = left
            else:
                del self._wrong[address]
        return now


def _under(times: Sequence[float], most: int) -> float:
    """When there will be fewer than `most` of the last minute; 0 where there are."""
    return times[-most] + MINUTE if len(times) >= most else 0.0
