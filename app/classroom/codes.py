"""Codes that open a class.

A right code always opens its class, even from an address that has just sent a thousand wrong ones. A whole school may have one address,
so refusing right codes would let one pupil lock out the others. This makes every request a guess, and more addresses bring an attacker
nothing: the bound is the number of requests that a process can answer, below 2,000 a second. There are 25^8 = 1.5e11 codes. At this
rate, without a pause,

- one certain class is found during a lesson of 45 minutes with a probability of 1 in 28,000 (2,000 * 2,700 / 1.5e11);
- one of 50 classes that are open day and night is found after 18 days on average (1.5e11 / 2,000 / 50 = 1.5e6 seconds).

With two processes, each with half of the codes and 50 classes of its own (see ours()), that is 4 times as likely. A guesser sees a
sentence and its votes. Wrong codes have a rate in app/transport/rate_limits.py, beyond which they get another sentence and are counted
as `codes` in /metrics.
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
