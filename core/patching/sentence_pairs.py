"""Head patching over a set of sentence pairs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from .. import dataframes
from ..checkpoints import Loaded
from ..errors import HeadlightError, TextError
from ..model.text import tokenize
from ..read.swaps import same_length
from ..run.predictions import labels_of
from ..run.trace import trace
from .edited_runs import class_names, has_classes
from .head_sweeps import Head, HeadPlace, checked_head, heads_in, logit_diff_between, logit_diff_changes, logit_diff_in

MAX_PAIRS = 64
MIN_DIFFERENCE = 0.1  # nats between the logit differences of a pair; shares of less are not meaningful
COLUMNS = ("text", "other", "answer", "rival")
SLOTS = ("{A}", "{B}")
PAIR_FORMAT = "A line has a text and another, and after them, if you like, the answer and its rival"


@dataclass(frozen=True)
class Pair:
    """Two texts, the answer and its alternative; None: the most likely token after each."""

    text: str
    other: str
    answer: str | None = None
    alternative: str | None = None
    line: int | None = None  # line number in the pasted text, from 1

    def label(self, number: int) -> str:
        """Subject of a sentence about it; `number` counts from 0."""
        return f"Pair {number + 1}" if self.line is None else f"Line {self.line}"


@dataclass(frozen=True, eq=False, repr=False)
class PairShares:
    """The share of the difference that each head carries, in each of the pairs run so far."""

    heads: tuple[HeadPlace, ...]
    pairs: tuple[Pair, ...]  # run so far
    n_pairs: int  # in all
    words: tuple[tuple[str, str], ...]  # [pair]: the answer and its alternative
    leads: np.ndarray  # float32 [pair, 2]: logit differences in the text and in the other text, in nats
    changes: np.ndarray  # float32 [pair, head]: of the first of these, with the head patched from the other text

    def __repr__(self) -> str:
        return f"<PairShares of {len(self.heads)} heads: {len(self.pairs)} of {self.n_pairs} pairs have run>"

    @property
    def significant(self) -> np.ndarray:
        """bool [pair]: True if its logit differences differ by at least LEAST_DIFFERENCE."""
        return np.abs(self.leads[:, 1] - self.leads[:, 0]) >= MIN_DIFFERENCE

    @property
    def shares(self) -> np.ndarray:
        """float32 [pair, head]: change of the logit difference ÷ its difference between both texts; nan in a pair that is not significant.
        They need not sum to 1."""
        whole = np.where(self.significant, self.leads[:, 1] - self.leads[:, 0], np.nan)
        return (self.changes / whole[:, None]).astype(np.float32)

    @property
    def mean(self) -> np.ndarray:
        """float32 [head]: mean share over the significant pairs; nan if there is none."""
        return self._over_pairs(lambda x: x.mean(0))

    @property
    def spread(self) -> np.ndarray:
        """float32 [head]: standard deviation of the shares over the significant pairs (with n − 1); nan for fewer than two."""
        return self._over_pairs(lambda x: x.std(0, ddof=1) if len(x) > 1 else np.full(x.shape[1], np.nan))

    @property
    def same_sign(self) -> np.ndarray:
        """int64 [head]: number of pairs whose share has the sign of the mean."""
        shares = self.shares[self.significant]
        return (np.sign(shares) == np.sign(self.mean)).sum(0)

    def to_frame(self) -> dataframes.DataFrame:
        """One row for each head. Needs pandas."""
        columns = dataframes.columns_of(self.heads, HeadPlace)
        columns.pop("n")
        numbers = {"mean": self.mean.tolist(), "spread": self.spread.tolist(), "same_sign": self.same_sign.tolist()}
        pairs = {"pairs": [int(self.significant.sum())] * len(self.heads)}
        return dataframes.of_columns({**columns, **numbers, **pairs})

    def _over_pairs(self, reduce: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        shares = self.shares[self.significant]
        return reduce(shares).astype(np.float32) if len(shares) else np.full(len(self.heads), np.nan, np.float32)


def patch_pairs(
    loaded: Loaded, pairs: Sequence[Pair | tuple[str, str]], heads: Sequence[Head] | None = None
) -> Iterator[PairShares]:
    """Patch every given head (None: all of them) from the other text of each pair, and measure the share of the difference it carries.

    Yields the results so far after each pair. The two texts of a pair have equal length in tokens; two pairs need not. The
    answer is compared with its alternative by logit_diff_between(), after the last token. To stop the generator, stop reading from it.

    Raises TextError for no pair or more than MAX_PAIRS, for texts of unequal length, and for an answer that is not a single token, with
    the line; InterventionError for a head that the model lacks; all before anything runs. During the run: TooLarge with both
    numbers, and Outdated.
    """
    pairs = checked([pair if isinstance(pair, Pair) else Pair(*pair) for pair in pairs])
    answers = [pair_tokens(loaded, pair, i) for i, pair in enumerate(pairs)]
    places = tuple(heads_in(loaded) if heads is None else [checked_head(loaded, head) for head in heads])
    return _shares(loaded, pairs, answers, places)


def pair_tokens(loaded: Loaded, pair: Pair, number: int) -> tuple[int | None, int | None]:
    """The tokens of the answer and the alternative. Raises TextError, naming the pair, also for texts of unequal length."""
    try:
        same_length(loaded.tokens(pair.text), loaded.tokens(pair.other))
        return answer_token(loaded, pair.answer), answer_token(loaded, pair.alternative)
    except HeadlightError as error:
        raise TextError(f"{pair.label(number)}: {error}") from None


def checked(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Raise TextError for an empty list, and for more than MAX_PAIRS."""
    if not pairs:
        raise TextError(f"There is no pair of sentences. {PAIR_FORMAT}.")
    if len(pairs) > MAX_PAIRS:
        raise TextError(f"These are {len(pairs):,} pairs, and a set has {MAX_PAIRS} at most. Leave some out.")
    return tuple(pairs)


def read_pairs(text: str) -> tuple[Pair, ...]:
    """Parse pasted pairs: one line for each, with the text, the other text, and optionally the answer and its alternative; CSV, or
    tab-separated. A header line is skipped.

    Raises TextError with the line number.
    """
    text = text.removeprefix("\ufeff")
    first = next((line for line in text.splitlines() if line.strip()), "")
    tabs = "\t" in first
    if tabs:
        reader = csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
    pairs: list[Pair] = []
    line = 1
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            row = [cell.strip() for cell in cells]
            is_header = not pairs and tuple(cell.casefold() for cell in row) == COLUMNS[: len(row)]
            if any(row) and not is_header:
                pairs.append(_parsed_pair(row, start, tabs))
    except csv.Error:
        raise TextError(
            f"Line {line}: a quotation mark is not closed, or a sign follows it. Put a whole text in quotation marks, and double those in it."
        ) from None
    return checked(pairs)


def _parsed_pair(row: Sequence[str], line: int, tabs: bool) -> Pair:
    if not 2 <= len(row) <= len(COLUMNS):
        hint = "Separate them with a tab." if tabs else "Put a text with a comma in quotation marks."
        raise TextError(f"Line {line} has {len(row)} column{'s' * (len(row) != 1)}. {PAIR_FORMAT}. {hint}")
    if not row[0] or not row[1]:
        raise TextError(f"Line {line} has no {'other ' * bool(row[0])}text. {PAIR_FORMAT}.")
    answer, alternative = (cell or None for cell in (*row[2:], "", "")[:2])
    return Pair(row[0], row[1], answer, alternative, line)


def pairs_from(
    template: str,
    fillings: Sequence[tuple[str, str]],
    other: str | None = None,
    answer: str | None = None,
    alternative: str | None = None,
    both_ways: bool = False,
) -> tuple[Pair, ...]:
    """Fill the slots {A} and {B} of a template with two words for each pair.

    `other` is the template of the other text; None: the same with both slots swapped. Answer and alternative may be slots too. With
    `both_ways` the two words make a second pair in swapped order. Raises TextError for a template without a slot, two templates that give
    the same text, an empty word, and more than MAX_PAIRS.
    """
    theirs = _filled(template, "{B}", "{A}") if other is None else other
    if not any(slot in template + theirs for slot in SLOTS):
        raise TextError(
            "A template has two slots, {A} and {B}, where the words of each pair go. Write them where they belong."
        )
    if template == theirs:
        raise TextError("Both templates are the same, so that both texts would be. Exchange {A} and {B} in one place.")
    pairs = []
    for i, (a, b) in enumerate(fillings, 1):
        if not a.strip() or not b.strip():
            raise TextError(f"Line {i} has no {'second ' * bool(a.strip())}word. Give two words for each pair.")
        for x, y in ((a, b), (b, a)) if both_ways else ((a, b),):
            fill = partial(_filled, a=x.strip(), b=y.strip())
            own_answer, own_alternative = (None if t is None else fill(t) for t in (answer, alternative))
            pairs.append(Pair(fill(template), fill(theirs), own_answer, own_alternative, i))
    return checked(pairs)


def _filled(template: str, a: str, b: str) -> str:
    return b.join(part.replace("{A}", a) for part in template.split("{B}"))


def answer_token(loaded: Loaded, word: str | None) -> int | None:
    """The token of an answer: a class by its name, or a word, preferably with a space before it. Raises TextError."""
    if word is None:
        return None
    if has_classes(loaded):
        assert loaded.spec.classes is not None
        names = [name.casefold() for name in loaded.spec.classes.names]
        if word.casefold() not in names:
            raise TextError(f"‘{word}’ is none of this model's classes: {', '.join(loaded.spec.classes.names[:8])}.")
        return names.index(word.casefold())
    spellings = (f" {word.strip()}", word.strip())
    tries = [tokenize(loaded.tokenizer, text, add_special_tokens=False).ids for text in spellings]
    ids = next((ids for ids in tries if len(ids) == 1), None)
    if ids is None:
        raise TextError(
            f"The answer ‘{word}’ is {min(map(len, tries))} tokens, and an answer is one. Choose another, or leave it out."
        )
    return ids[0]


def _shares(
    loaded: Loaded,
    pairs: tuple[Pair, ...],
    tokens: Sequence[tuple[int | None, int | None]],
    places: tuple[HeadPlace, ...],
) -> Iterator[PairShares]:
    words: list[tuple[str, str]] = []
    leads: list[tuple[float, float]] = []
    changes: list[np.ndarray] = []
    for i, (pair, (answer, alternative)) in enumerate(zip(pairs, tokens, strict=True)):
        try:
            run, other = trace(loaded, pair.text), trace(loaded, pair.other)
            lead = logit_diff_between(run, other, answer, alternative)
            changed, before = logit_diff_changes(run, other, places, lead)
        except TextError as error:
            raise TextError(f"{pair.label(i)}: {error}") from None
        ids = lead.answer, lead.alternative
        answer_label, alternative_label = (class_names if lead.position is None else labels_of)(loaded, ids)
        words.append((answer_label, alternative_label))
        leads.append((before, logit_diff_in(other, lead)))
        changes.append(changed)
        arrays = np.array(leads, np.float32), np.array(changes, np.float32)
        yield PairShares(places, pairs[: i + 1], len(pairs), tuple(words), *arrays)
