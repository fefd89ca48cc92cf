"""Baselines for the storyteller on the same tokens: interpolated Kneser–Ney n-grams, and the unigram they end in.

Kneser & Ney 1995, as interpolated by Chen & Goodman 1998 (TR-10-98, §4.1.6), one discount for each order from its counts
of counts. An n-gram is one whole number, its ids as digits in base vocab_size, so counting is sorting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Order:
    """The n-grams of one length, sorted, and what of them Kneser–Ney needs."""

    grams: Codes
    counts: Floats  # how often each was seen; below the highest order, behind how many different tokens
    contexts: Codes
    totals: Floats  # the counts of a context's n-grams, added up
    kinds: Floats  # how many of them there are
    discount: float


def kneser_ney(ids: Codes, vocab_size: int, n: int = 5) -> tuple[Order, ...]:
    """Counts of ids [token] for the orders 1 to n. Raises ValueError where vocab_size ** n does not fit 63 bits."""
    if vocab_size**n >= 2**63:
        raise ValueError(f"{n}-grams over {vocab_size:,} tokens do not fit into 63 bits")
    orders = []
    seen, counts = np.unique(grams(ids, vocab_size, n), return_counts=True)
    for length in range(n, 0, -1):
        contexts, first, kinds = np.unique(seen // vocab_size, return_index=True, return_counts=True)
        once, twice = (counts == 1).sum(), (counts == 2).sum()
        totals = np.add.reduceat(counts, first)
        discount = once / (once + 2 * twice) if once else 0.5
        orders.append(Order(seen, counts.astype(float), contexts, totals.astype(float), kinds.astype(float), discount))
        # A shorter n-gram counts the different tokens that it was seen behind, not how often it was seen.
        seen, counts = np.unique(seen % vocab_size ** (length - 1), return_counts=True)
    return tuple(reversed(orders))


def probabilities(orders: tuple[Order, ...], ids: Codes, vocab_size: int) -> Floats:
    """[token]: of each of ids but the first n-1, given the n-1 before it."""
    n = len(orders)
    p = np.full(len(ids) - n + 1, 1 / vocab_size)
    for length, order in enumerate(orders, 1):
        codes = grams(ids, vocab_size, length)[n - length :]
        counts, _ = look_up(order.grams, order.counts, codes)
        totals, known = look_up(order.contexts, order.totals, codes // vocab_size)
        kinds, _ = look_up(order.contexts, order.kinds, codes // vocab_size)
        totals = np.where(known, totals, 1.0)
        kept = np.maximum(counts - order.discount, 0) / totals + order.discount * kinds / totals * p
        p = np.where(known, kept, p)
    return p


def unigram(ids: Codes, seen: Codes, vocab_size: int) -> Floats:
    """[token]: of each of ids by how often it was seen, one added to each count."""
    counts = np.bincount(seen, minlength=vocab_size) + 1.0
    return (counts / counts.sum())[ids]


def grams(ids: Codes, vocab_size: int, n: int) -> Codes:
    """[token - n + 1]: every n-gram as one number, its last token the last digit."""
    codes = np.zeros(len(ids) - n + 1, np.int64)
    for i in range(n):
        codes = codes * vocab_size + ids[i : len(ids) - n + 1 + i]
    return codes


def look_up(keys: Codes, values: Floats, wanted: Codes) -> tuple[Floats, NDArray[np.bool_]]:
    """(values of the wanted keys, 0 where there is none; whether there is one)."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    known = keys[at] == wanted
    return np.where(known, values[at], 0.0), known
