"""NextTokenRule: the tokens that may follow a text, whatever their scores, as generation_config.json forbids and forces them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class Following(NamedTuple):
    """The tokens that may follow one text: `forced` alone where it names any, else all but `banned`."""

    forced: tuple[int, ...]
    banned: frozenset[int]


FREE = Following((), frozenset())


@dataclass(frozen=True)
class NextTokenRule:
    """The tokens that a published model may write after a text, by its author's choice and beside its scores.

    Meanings are those of the keys of generation_config.json, as transformers reads it. Lengths count the prompt; of an
    encoder-decoder they are the decoder's. A forced token wins over a forbidden one. Scores of tokens that may not follow
    become -inf before any softmax, so that they have no part in the probabilities of the others.
    """

    never: tuple[int, ...] = ()  # suppress_tokens, and what bad_words_ids names by itself
    never_after: tuple[tuple[int, ...], ...] = ()  # bad_words_ids: the last of several tokens may not follow the others
    never_first: tuple[int, ...] = ()  # begin_suppress_tokens: not the first that is written
    first: int | None = None  # forced_bos_token_id: it follows a text of one token
    last: tuple[int, ...] = ()  # forced_eos_token_id: one of them is the last for which there is room
    fewest: int = 0  # min_length: tokens of a text before it may end
    fewest_new: int = 0  # min_new_tokens: the same without its prompt
    no_repeat: int = 0  # no_repeat_ngram_size: no run of so many tokens comes twice
    end_ids: tuple[int, ...] = ()  # the tokens that end a text, for those two

    @property
    def is_free(self) -> bool:
        """Whether everything may always follow."""
        lists = (self.never, self.never_after, self.never_first, self.last)
        numbers = (self.fewest, self.fewest_new, self.no_repeat)
        return self.first is None and not any(lists) and not any(numbers)

    def following(
        self, text: Sequence[int], lengths: Sequence[int], n_prompt: int, n_most: int | None = None
    ) -> list[Following]:
        """The tokens that may follow the first n tokens of a text, for each n of `lengths`, in rising order.

        n_prompt tokens were there before anything was written; the text is over once it has n_most of them (None: never).
        """
        if self.is_free:
            return [FREE] * len(lengths)
        wanted = iter(lengths)
        return [self._after(text, n, repeats, n_prompt, n_most) for n, repeats in self._repeats(text, wanted)]

    def _repeats(self, text: Sequence[int], lengths: Iterator[int]) -> Iterator[tuple[int, frozenset[int]]]:
        """For each length, the tokens that would complete a run of `no_repeat` tokens for the second time."""
        size = self.no_repeat
        seen: dict[tuple[int, ...], set[int]] = {}
        read = 0  # tokens whose runs are in `seen`
        for n in lengths:
            if not size:
                yield n, frozenset()
                continue
            for end in range(max(read, size - 1), n):
                seen.setdefault(tuple(text[end - size + 1 : end]), set()).add(text[end])
            read = n
            last = tuple(text[n - size + 1 : n]) if n >= size - 1 else None
            yield n, frozenset() if last is None else frozenset(seen.get(last, ()))

    def _after(
        self, text: Sequence[int], n: int, repeats: frozenset[int], n_prompt: int, n_most: int | None
    ) -> Following:
        if self.last and n_most is not None and n == n_most - 1:
            return Following(self.last, frozenset())
        if self.first is not None and n == 1:
            return Following((self.first,), frozenset())
        banned = {*self.never, *repeats}
        # A token that is forced after one token is not yet the first that is chosen.
        if n == (n_prompt if n_prompt > 1 or self.first is None else n_prompt + 1):
            banned.update(self.never_first)
        if n < self.fewest or n - n_prompt < self.fewest_new:
            banned.update(self.end_ids)
        for run in self.never_after:
            before = len(run) - 1
            if n >= before and tuple(text[n - before : n]) == run[:-1]:
                banned.add(run[-1])
        return Following((), frozenset(banned))


ANYTHING = NextTokenRule()


def allowed_only(logits: Tensor, following: Sequence[Following]) -> Tensor:
    """[row, vocab] -> the same with -inf for tokens that may not follow the text of that row.

    A single forced token keeps its score; several have 0 each, as published code gives them. A row is all -inf where nothing
    may follow.
    """
    if all(what == FREE for what in following):
        return logits
    found = logits.clone()
    for row, (forced, banned) in enumerate(following):
        if forced:
            own = logits[row, list(forced)] if len(forced) == 1 else 0.0
            found[row] = -torch.inf
            found[row, list(forced)] = own
        elif banned:
            found[row, sorted(banned)] = -torch.inf
    return found
