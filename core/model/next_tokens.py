"""NextTokenRule: tokens that generation_config.json bans or forces, whatever their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class Following(NamedTuple):
    """The allowed next tokens of one text: only `forced` if it is not empty, else all but `banned`."""

    forced: tuple[int, ...]
    banned: frozenset[int]


FREE = Following((), frozenset())


@dataclass(frozen=True)
class NextTokenRule:
    """Constraints on the next token, set by the author of a published model.

    The fields have the meaning of the keys of generation_config.json in transformers. Lengths include the prompt, and are those of the
    decoder. A forced token takes precedence over a banned one. The scores of disallowed tokens become -inf before the softmax, so that
    the probabilities of the others sum to 1.
    """

    never: tuple[int, ...] = ()  # suppress_tokens, and single tokens of bad_words_ids
    never_after: tuple[
        tuple[int, ...], ...
    ] = ()  # bad_words_ids: the last of several tokens must not follow the others
    never_first: tuple[int, ...] = ()  # begin_suppress_tokens: banned as the first new token
    first: int | None = None  # forced_bos_token_id: follows a text of one token
    last: tuple[int, ...] = ()  # forced_eos_token_id: one of them is the last token of a text of maximum length
    fewest: int = 0  # min_length: tokens before the end
    fewest_new: int = 0  # min_new_tokens: new tokens before the end
    no_repeat: int = 0  # no_repeat_ngram_size: no n-gram of this size occurs twice
    end_ids: tuple[int, ...] = ()  # end tokens, for the two minimum lengths

    @property
    def is_free(self) -> bool:
        """True if every token is always allowed."""
        lists = (self.never, self.never_after, self.never_first, self.last)
        numbers = (self.fewest, self.fewest_new, self.no_repeat)
        return self.first is None and not any(lists) and not any(numbers)

    def following(
        self, text: Sequence[int], lengths: Sequence[int], n_prompt: int, n_most: int | None = None
    ) -> list[Following]:
        """The allowed tokens after the first n tokens of a text, for each n of `lengths`, in rising order.

        The prompt has n_prompt tokens, and the text ends after n_most (None: unlimited).
        """
        if self.is_free:
            return [FREE] * len(lengths)
        return [self._after(text, n, repeats, n_prompt, n_most) for n, repeats in self._repeats(text, lengths)]

    def _repeats(self, text: Sequence[int], lengths: Sequence[int]) -> Iterator[tuple[int, frozenset[int]]]:
        """For each length, the tokens that would repeat an n-gram of `no_repeat` tokens."""
        size = self.no_repeat
        seen: dict[tuple[int, ...], set[int]] = {}
        read = 0  # tokens whose n-grams are in `seen`
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
        # A token that is forced after one token does not count as the first new token.
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
    """[row, vocab] -> the same with -inf for disallowed tokens of each row.

    A single forced token keeps its score. Several have 0 each, as in the published code. A row without allowed tokens is all -inf.
    """
    if all(constraint == FREE for constraint in following):
        return logits
    masked = logits.clone()
    for row, (forced, banned) in enumerate(following):
        if forced:
            own = logits[row, list(forced)] if len(forced) == 1 else 0.0
            masked[row] = -torch.inf
            masked[row, list(forced)] = own
        elif banned:
            masked[row, sorted(banned)] = -torch.inf
    return masked
