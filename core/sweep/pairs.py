"""A set of pairs of sentences, and the heads that carry the difference in all of them and not in one pair alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from .. import frames
from ..checkpoints import Loaded
from ..errors import Refused, TextError
from ..model.text import tokenize
from ..read.swaps import same_length
from ..run.predictions import labels_of
from ..run.trace import trace
from .ablations import class_names, has_classes
from .leads import Head, checked_head, heads_in, lead_between, lead_changes, lead_in
from .sweeps import HeadPlace

MOST_PAIRS = 64
LEAST_DIFFERENCE = 0.1  # nats between the leads of a pair: a share of less says nothing
COLUMNS = ("text", "other", "answer", "rival")
SLOTS = ("{A}", "{B}")
A_LINE = "A line has a text and another, and after them, if you like, the answer and its rival"


@dataclass(frozen=True)
class Pair:
    """Two texts, and the words that they are asked about; None: the likeliest one after each."""

    text: str
    other: str
    answer: str | None = None
    rival: str | None = None
    line: int | None = None  # where it was read from, from 1

    def called(self, number: int) -> str:
        """The beginning of a sentence about it; number counts from 0."""
        return f"Pair {number + 1}" if self.line is None else f"Line {self.line}"


@dataclass(frozen=True, eq=False, repr=False)
class PairShares:
    """The share that each head carries of the difference, in each of the pairs that have run."""

    heads: tuple[HeadPlace, ...]
    pairs: tuple[Pair, ...]  # that have run
    of: int  # how many there are
    words: tuple[tuple[str, str], ...]  # [pair]: the answer and its rival
    leads: np.ndarray  # float32 [pair, 2]: of the answer over its rival, in the text and in the other, in nats
    changes: np.ndarray  # float32 [pair, head]: of the first of these, with the head taken from the other text

    def __repr__(self) -> str:
        return f"<PairShares of {len(self.heads)} heads: {len(self.pairs)} of {self.of} pairs have run>"

    @property
    def counted(self) -> np.ndarray:
        """bool [pair]: whether its leads differ by LEAST_DIFFERENCE or more, so that there is a difference to carry."""
        return np.abs(self.leads[:, 1] - self.leads[:, 0]) >= LEAST_DIFFERENCE

    @property
    def shares(self) -> np.ndarray:
        """float32 [pair, head]: change of the lead ÷ the whole difference between both texts; nan in a pair that is not counted. They
        need not add up to 1."""
        whole = np.where(self.counted, self.leads[:, 1] - self.leads[:, 0], np.nan)
        return (self.changes / whole[:, None]).astype(np.float32)

    @property
    def mean(self) -> np.ndarray:
        """float32 [head]: of the shares, over the pairs that are counted; nan without one."""
        return self._over_pairs(lambda x: x.mean(0))

    @property
    def spread(self) -> np.ndarray:
        """float32 [head]: standard deviation of the shares, over the pairs that are counted (with n − 1); nan with fewer than two."""
        return self._over_pairs(lambda x: x.std(0, ddof=1) if len(x) > 1 else np.full(x.shape[1], np.nan))

    @property
    def same_sign(self) -> np.ndarray:
        """int64 [head]: in how many pairs the share has the sign of the mean."""
        some = self.shares[self.counted]
        return (np.sign(some) == np.sign(self.mean)).sum(0)

    def to_frame(self) -> frames.DataFrame:
        """A row for each head. Needs pandas."""
        columns = frames.columns_of(self.heads, HeadPlace)
        columns.pop("n")
        found = {"mean": self.mean.tolist(), "spread": self.spread.tolist(), "same_sign": self.same_sign.tolist()}
        counted = {"pairs": [int(self.counted.sum())] * len(self.heads)}
        return frames.of_columns({**columns, **found, **counted})

    def _over_pairs(self, summed: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        some = self.shares[self.counted]
        return summed(some).astype(np.float32) if len(some) else np.full(len(self.heads), np.nan, np.float32)


def patch_pairs(
    loaded: Loaded, pairs: Sequence[Pair | tuple[str, str]], heads: Sequence[Head] | None = None
) -> Iterator[PairShares]:
    """Every head asked about (None: all of them) taken from the other text of each pair: what share of the difference it carries.

    Yields the pairs so far after each of them. The two texts of a pair are of equal length in tokens; two pairs need not be. The answer is measured
    against its rival by a difference of logits, after the last token (lead_between). A generator: to stop it, take no more of it.

    Raises TextError for no pair or more than MOST_PAIRS, for texts of unequal length, and for an answer that is no single token, with
    the line; InterventionError for a head that the model lacks; all before anything runs. While it runs: TooLarge with both
    numbers, and Outdated.
    """
    found = checked([pair if isinstance(pair, Pair) else Pair(*pair) for pair in pairs])
    numbers = []
    for i, pair in enumerate(found):
        try:
            same_length(loaded.tokens(pair.text), loaded.tokens(pair.other))
            numbers.append((answer_token(loaded, pair.answer), answer_token(loaded, pair.rival)))
        except Refused as error:
            raise TextError(f"{pair.called(i)}: {error}") from None
    places = tuple(heads_in(loaded) if heads is None else [checked_head(loaded, head) for head in heads])
    return _shares(loaded, found, numbers, places)


def checked(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Raises TextError for no pair at all, and for more than MOST_PAIRS."""
    if not pairs:
        raise TextError(f"There is no pair of sentences. {A_LINE}.")
    if len(pairs) > MOST_PAIRS:
        raise TextError(f"These are {len(pairs):,} pairs, and a set has {MOST_PAIRS} at most. Leave some out.")
    return tuple(pairs)


def read_pairs(text: str) -> tuple[Pair, ...]:
    """Pairs that were pasted: lines of a text and another, and then, where one likes, the answer and its rival; CSV, or columns with tabs
    between them. A first line of the columns' names is left out.

    Raises TextError with the number of the line.
    """
    text = text.removeprefix("\ufeff")
    first = next((line for line in text.splitlines() if line.strip()), "")
    tabs = "\t" in first
    if tabs:
        reader = csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
    found: list[Pair] = []
    line = 1
    try:
        for cells in reader:
            here, line = line, reader.line_num + 1
            row = [cell.strip() for cell in cells]
            if not any(row) or (not found and tuple(cell.casefold() for cell in row) == COLUMNS[: len(row)]):
                continue
            found.append(_pair(row, here, tabs))
    except csv.Error:
        raise TextError(
            f"Line {line}: a quotation mark is not closed, or a sign follows it. Put a whole text in quotation marks, and double those in it."
        ) from None
    return checked(found)


def _pair(row: Sequence[str], line: int, tabs: bool) -> Pair:
    if not 2 <= len(row) <= len(COLUMNS):
        hint = "Separate them with a tab." if tabs else "Put a text with a comma in quotation marks."
        raise TextError(f"Line {line} has {len(row)} column{'s' * (len(row) != 1)}. {A_LINE}. {hint}")
    if not row[0] or not row[1]:
        raise TextError(f"Line {line} has no {'other ' * bool(row[0])}text. {A_LINE}.")
    answer, rival = (cell or None for cell in (*row[2:], "", "")[:2])
    return Pair(row[0], row[1], answer, rival, line)


def pairs_from(
    template: str,
    fillings: Sequence[tuple[str, str]],
    other: str | None = None,
    answer: str | None = None,
    rival: str | None = None,
    both_ways: bool = False,
) -> tuple[Pair, ...]:
    """A pair for each two words that go into the slots {A} and {B} of a template.

    `other` is the template of the other text; None: the same with both words exchanged. Answer and rival may be slots too. With
    `both_ways` each two words make a second pair, in which they have changed places. Raises TextError for a template without a slot, two
    templates that give the same text, an empty word, and more than MOST_PAIRS.
    """
    theirs = _exchanged(template) if other is None else other
    if not any(slot in template + theirs for slot in SLOTS):
        raise TextError(
            "A template has two slots, {A} and {B}, where the words of each pair go. Write them where they belong."
        )
    if template == theirs:
        raise TextError("Both templates are the same, so that both texts would be. Exchange {A} and {B} in one place.")
    found = []
    for i, (a, b) in enumerate(fillings, 1):
        if not a.strip() or not b.strip():
            raise TextError(f"Line {i} has no {'second ' * bool(a.strip())}word. Give two words for each pair.")
        for x, y in ((a, b), (b, a)) if both_ways else ((a, b),):
            fill = partial(_filled, a=x.strip(), b=y.strip())
            asked, against = (None if t is None else fill(t) for t in (answer, rival))
            found.append(Pair(fill(template), fill(theirs), asked, against, i))
    return checked(found)


def _filled(template: str, a: str, b: str) -> str:
    return b.join(part.replace("{A}", a) for part in template.split("{B}"))


def _exchanged(template: str) -> str:
    return _filled(template, "{B}", "{A}")


def answer_token(loaded: Loaded, word: str | None) -> int | None:
    """The token of an answer: a class by its name, or a word as it follows another. Raises TextError."""
    if word is None:
        return None
    if has_classes(loaded):
        assert loaded.spec.classes is not None
        names = [name.casefold() for name in loaded.spec.classes.names]
        if word.casefold() not in names:
            raise TextError(f"‘{word}’ is none of this model's classes: {', '.join(loaded.spec.classes.names[:8])}.")
        return names.index(word.casefold())
    tries = [
        tokenize(loaded.tokenizer, text, add_special_tokens=False).ids for text in (f" {word.strip()}", word.strip())
    ]
    one = next((ids for ids in tries if len(ids) == 1), None)
    if one is None:
        raise TextError(
            f"The answer ‘{word}’ is {min(map(len, tries))} tokens, and an answer is one. Choose another, or leave it out."
        )
    return one[0]


def _shares(
    loaded: Loaded,
    pairs: tuple[Pair, ...],
    numbers: Sequence[tuple[int | None, int | None]],
    places: tuple[HeadPlace, ...],
) -> Iterator[PairShares]:
    words: list[tuple[str, str]] = []
    leads: list[tuple[float, float]] = []
    changes: list[np.ndarray] = []
    for i, (pair, (answer, rival)) in enumerate(zip(pairs, numbers, strict=True)):
        try:
            run, other = trace(loaded, pair.text), trace(loaded, pair.other)
            lead = lead_between(run, other, answer, rival)
            changed, before = lead_changes(run, other, places, lead)
        except TextError as error:
            raise TextError(f"{pair.called(i)}: {error}") from None
        ids = lead.answer, lead.rival
        answer_label, rival_label = (class_names if lead.position is None else labels_of)(loaded, ids)
        words.append((answer_label, rival_label))
        leads.append((before, lead_in(other, lead)))
        changes.append(changed)
        numbers_so_far = np.array(leads, np.float32), np.array(changes, np.float32)
        yield PairShares(places, pairs[: i + 1], len(pairs), tuple(words), *numbers_so_far)
