"""Codes that open a class.

A right code always opens its class, even from an address that has just sent a thousand wrong ones: a whole school may be one address,
and refusing right codes would let one pupil lock all others out. So every request is a guess, however many addresses send it, and
the number of guesses is bounded only by the requests that the server can answer: about CAPACITY a second for one process. There are
25^8 = 1.5e11 codes. At full load, an attacker finds one certain class during a lesson of 45 minutes with a probability of 1 in
CHANCE, and one of 50 classes that are open day and night in DAYS days on average. With two processes, each of which has half of the
codes and its own 50 classes (see ours()), that is four times as likely. A guesser sees a sentence and its votes. Wrong codes have
their own rate in app/transport/rate_limits.py and are counted in /metrics, so the operator notices.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from app.classroom import sentences

ALPHABET = "BCDFGHJKLMNPQRSTVWXYZ3479"  # no vowels, which make words, and no sign that is read as another: 0 1 2 5 6 8
SIGNS = 8  # 25^8: 37 bits
OURS = "HEADLIGHT_CODES"  # the first signs of the codes of this process, where there are several
BETWEEN = str.maketrans("", "", " -\u2009\u00a0")  # what a visitor types between the signs

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
