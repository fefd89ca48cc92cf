"""beam_search() and beam_steps(): beam search, and its steps (Graves 2012; Wu et al. 2016)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack

import torch

from ..checkpoints import Loaded
from ..errors import GenerationError
from .generate import (
    DecodingState,
    FinishReason,
    RawPrompt,
    Texts,
    WritingOptions,
    WritingRequest,
    begin,
    check_counts,
    decoded,
)


@dataclass(frozen=True)
class Beam:
    """One finished continuation of a beam search; score is log_prob / length ** length_penalty."""

    ids: tuple[int, ...]
    text: str
    log_prob: float
    score: float
    ending: FinishReason


@dataclass(frozen=True)
class BeamCandidate:
    """One of the most likely texts of a step: a beam of the previous step, and one more token."""

    row: int  # index among the texts kept by the previous step
    id: int
    log_prob: float  # of the whole continuation, in nats
    kept: bool  # True for an unfinished text that is continued; these are the next step's rows, in this order
    ends: bool  # True for a stop token


@dataclass(frozen=True)
class BeamStep:
    """One more token for the beams of every text."""

    index: int  # from 0
    candidates: tuple[tuple[BeamCandidate, ...], ...]  # by text, most likely first: up to twice the number of beams
    finished: tuple[tuple[Beam, ...], ...]  # by text, best first: those that have ended so far


def beam_search(loaded: Loaded, text: Texts | RawPrompt = None, **options: Any) -> tuple[tuple[Beam, ...], ...]:
    """Return the n_beams best continuations of each text, best first: the last step of beam_steps(), with its options."""
    *_, last = beam_steps(loaded, text, **options)
    return last.finished


def beam_steps(
    loaded: Loaded,
    text: Texts | RawPrompt = None,
    *,
    n_beams: int = 4,
    length_penalty: float = 1.0,
    **options: Unpack[WritingOptions],
) -> Iterator[BeamStep]:
    """Search step by step; invalid arguments are refused before the first one.

    Each step keeps the n_beams most likely unfinished texts. A continuation that ends is scored by
    log_prob / length ** length_penalty (Wu et al. 2016, arXiv:1609.08144, §7, with transformers' simpler denominator). The
    search of a text ends when no unfinished continuation scores above the n_beams-th finished one. The other options and
    the errors are those of stream(), without sampling; forbidden tokens have no part in any log_prob.
    """
    check_counts(n_beams=n_beams)
    if not math.isfinite(length_penalty):
        raise GenerationError(f"length_penalty is {length_penalty}, but it must be a finite number. 1.0 is usual.")
    request = WritingRequest.of(text, options, WritingOptions)
    stops, draft = begin(loaded, request, n_beams)
    return extend_beams(loaded, draft, stops, n_beams, length_penalty, request.max_tokens)


@torch.inference_mode()
def extend_beams(
    loaded: Loaded, draft: DecodingState, stops: frozenset[int], n_beams: int, length_penalty: float, max_tokens: int
) -> Iterator[BeamStep]:
    """The steps of a search from a draft with one row for each text."""
    n_texts, vocab_size, n_prompt = draft.ids.shape[0], loaded.config.vocab_size, draft.n
    scores = torch.zeros(n_texts, 1, device=loaded.device)  # log-probability of every unfinished text, [text, beam]
    searches = [_TextSearch(stops, n_beams, length_penalty) for _ in range(n_texts)]

    def written(first: int, row: int, token: int) -> tuple[tuple[int, ...], str]:
        ids = (*draft.ids[first + row, n_prompt:].tolist(), token)
        return ids, decoded(loaded, ids)

    for length in range(1, max_tokens + 1):
        logits = draft.next_logits()  # [text * beam, vocab]
        log_probs = logits.log_softmax(-1).masked_fill(logits.isneginf(), -torch.inf)  # also if all are forbidden
        width = scores.shape[1]
        total = (scores.flatten()[:, None] + log_probs).view(n_texts, width * vocab_size)
        # Twice the number of beams, since up to half of them may end here.
        best, places = total.topk(min(2 * n_beams, total.shape[1]))
        ending: FinishReason | None = "max_tokens" if length == max_tokens else "positions" if draft.is_full else None
        candidates, going = [], []
        for i, search in enumerate(searches):
            tokens = [divmod(place, vocab_size) for place in places[i].tolist()]
            ranked = [(log_prob, *token) for log_prob, token in zip(best[i].tolist(), tokens, strict=True)]
            own, kept = search.extend(ranked, length, ending, partial(written, i * width))
            candidates.append(own)
            going += [(log_prob, i * width + row, token) for log_prob, row, token in kept]
        yield BeamStep(length - 1, tuple(candidates), tuple(tuple(search.finished) for search in searches))
        if ending or all(search.is_over for search in searches):
            return
        kept_scores, rows, new = zip(*going, strict=True)
        scores = torch.tensor(kept_scores, device=loaded.device).view(n_texts, n_beams)
        draft.select(torch.tensor(rows, device=draft.ids.device))
        draft.append(torch.tensor(new))


Ranked = tuple[float, int, int]  # log-probability, row of the text, token


@dataclass
class _TextSearch:
    """The search of one text: its finished beams, best first, and whether no unfinished one can still beat them."""

    stops: frozenset[int]
    n_beams: int
    length_penalty: float
    finished: list[Beam] = field(default_factory=list)
    is_over: bool = False

    def extend(
        self,
        ranked: Sequence[Ranked],
        length: int,
        ending: FinishReason | None,
        written: Callable[[int, int], tuple[tuple[int, ...], str]],
    ) -> tuple[tuple[BeamCandidate, ...], list[Ranked]]:
        """Finish or keep each of the most likely texts. Returns all that are possible, and n_beams texts to continue.

        `ending` is the reason if this step is the last one; written(row, token) gives the ids and the text.
        """
        candidates: list[BeamCandidate] = []
        kept: list[Ranked] = []
        for rank, (log_prob, row, token) in enumerate(ranked):
            ends, possible = token in self.stops, log_prob > -math.inf
            if (ends or ending) and possible and rank < self.n_beams and not self.is_over:
                score = log_prob / length**self.length_penalty
                self.finished.append(Beam(*written(row, token), log_prob, score, "end" if ends else ending or "end"))
            is_kept = not ends and len(kept) < self.n_beams
            if is_kept:
                kept.append((log_prob, row, token))
            if possible:
                candidates.append(BeamCandidate(row, token, log_prob, is_kept, ends))
        self.finished = sorted(self.finished, key=lambda beam: -beam.score)[: self.n_beams]
        # If stop tokens leave too few, the first row is repeated as a text that can never be chosen.
        kept += [(-math.inf, 0, 0)] * (self.n_beams - len(kept))
        is_full = len(self.finished) == self.n_beams
        self.is_over = is_full and self.finished[-1].score >= kept[0][0] / length**self.length_penalty
        return tuple(candidates), kept
