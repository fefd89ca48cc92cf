"""beam_search() and beam_steps(): the likeliest texts side by side, and how they grow (Graves 2012; Wu et al. 2016)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..checkpoints import Loaded
from ..errors import GenerationError
from ..run.prompt import Keep
from .generate import Draft, Ending, Ids, RawPrompt, Texts, begin, check_counts, decoded, most_written


@dataclass(frozen=True)
class Beam:
    """One finished continuation of a beam search; score is log_prob / length ** length_penalty."""

    ids: tuple[int, ...]
    text: str
    log_prob: float
    score: float
    ending: Ending


@dataclass(frozen=True)
class BeamCandidate:
    """One of the likeliest texts of a step: a beam of the step before, and one more token."""

    row: int  # which of the texts that the step before kept
    id: int
    log_prob: float  # of the whole continuation, in nats
    kept: bool  # among the unfinished texts that go on; they are the next step's rows, in this order
    ends: bool  # a stop token: the text is over


@dataclass(frozen=True)
class BeamStep:
    """One more token for the beams of every text."""

    index: int  # from 0
    candidates: tuple[
        tuple[BeamCandidate, ...], ...
    ]  # of each text, likeliest first: up to twice as many as there are beams
    finished: tuple[tuple[Beam, ...], ...]  # of each text, best first: those that have ended so far


def beam_search(loaded: Loaded, text: Texts = None, **options: Any) -> tuple[tuple[Beam, ...], ...]:
    """For each text the n_beams best continuations that were found, best first: the end of beam_steps(), with its options."""
    *_, last = beam_steps(loaded, text, **options)
    return last.finished


def beam_steps(
    loaded: Loaded,
    text: Texts = None,
    *,
    ids: Ids = None,
    target: Texts = None,
    target_ids: Sequence[int] | None = None,
    n_beams: int = 4,
    length_penalty: float = 1.0,
    max_tokens: int | None = None,
    max_new_tokens: int | None = None,
    stop: Collection[int] | None = None,
    cached: bool = True,
    keep: Keep | Sequence[Keep] = None,
    target_keep: Keep = None,
) -> Iterator[BeamStep]:
    """The search step by step; what is wrong is refused before the first one.

    Each step keeps the n_beams likeliest unfinished texts. A continuation that ends is scored by
    log_prob / length ** length_penalty (Wu et al. 2016, arXiv:1609.08144, §7, with transformers' simpler denominator), and
    a text is over when no unfinished one scores above the n_beams-th finished one. Texts, masks, `stop`, what may follow, and
    errors are stream's; what may not follow has no part in any log_prob.
    """
    check_counts(n_beams=n_beams)
    if not math.isfinite(length_penalty):
        raise GenerationError(f"length_penalty is {length_penalty}, but it must be a finite number. 1.0 is usual.")
    prompt = RawPrompt(text, ids, target, target_ids, keep, target_keep)
    most = most_written(max_tokens, max_new_tokens)
    stops, draft = begin(loaded, prompt, most, stop, cached, n_beams)
    return grow(loaded, draft, stops, n_beams, length_penalty, most)


@torch.inference_mode()
def grow(
    loaded: Loaded, draft: Draft, stops: frozenset[int], n_beams: int, length_penalty: float, max_tokens: int
) -> Iterator[BeamStep]:
    """The steps of a search that begins with a draft, whose rows are one text each."""
    n_texts, vocab_size, n_prompt = draft.ids.shape[0], loaded.config.vocab_size, draft.n
    scores = torch.zeros(n_texts, 1, device=loaded.device)  # log-probability of every unfinished text, [text, beam]
    finished: list[list[Beam]] = [[] for _ in range(n_texts)]
    over = [False] * n_texts
    for length in range(1, max_tokens + 1):
        logits = draft.next_logits()  # [text * beam, vocab]
        log_probs = logits.log_softmax(-1).masked_fill(logits.isneginf(), -torch.inf)  # where nothing may follow, too
        width = scores.shape[1]
        total = (scores.flatten()[:, None] + log_probs).view(n_texts, width * vocab_size)
        # Twice as many as there are beams, since up to half of them may end here.
        best, places = total.topk(min(2 * n_beams, total.shape[1]))
        last = length == max_tokens or draft.is_full
        rows, tokens, kept, candidates = [], [], [], []
        for i in range(n_texts):
            going: list[tuple[float, int, int]] = []  # log-probability, row, token
            found: list[BeamCandidate] = []
            for rank, (log_prob, place) in enumerate(zip(best[i].tolist(), places[i].tolist(), strict=True)):
                row, token = i * width + place // vocab_size, place % vocab_size
                ends = token in stops
                if (ends or last) and rank < n_beams and not over[i] and log_prob > -math.inf:
                    why: Ending = "end" if ends else "max_tokens" if length == max_tokens else "positions"
                    written = (*draft.ids[row, n_prompt:].tolist(), token)
                    score = log_prob / length**length_penalty
                    finished[i].append(Beam(written, decoded(loaded, written), log_prob, score, why))
                goes_on = not ends and len(going) < n_beams
                if goes_on:
                    going.append((log_prob, row, token))
                if log_prob > -math.inf:
                    found.append(BeamCandidate(place // vocab_size, token, log_prob, goes_on, ends))
            candidates.append(tuple(found))
            finished[i] = sorted(finished[i], key=lambda beam: -beam.score)[:n_beams]
            # Where stop tokens leave too few, the first one is there again, as a text that can never be chosen.
            going += [(-math.inf, i * width, 0)] * (n_beams - len(going))
            over[i] = len(finished[i]) == n_beams and finished[i][-1].score >= going[0][0] / length**length_penalty
            kept.append([log_prob for log_prob, _, _ in going])
            rows += [row for _, row, _ in going]
            tokens += [token for _, _, token in going]
        yield BeamStep(length - 1, tuple(candidates), tuple(map(tuple, finished)))
        if last or all(over):
            return
        scores = torch.tensor(kept, device=loaded.device)
        draft.select(torch.tensor(rows, device=draft.ids.device))
        draft.append(torch.tensor(tokens))
