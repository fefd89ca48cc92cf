"""Words to swap: one-token replacements in a text that change the most likely next token."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise

import torch
from torch import Tensor

from .. import device
from ..checkpoints import Loaded
from ..errors import TextError
from ..model.text import SPACE_SIGNS, Tokens, tokenize
from ..run.forward_pass import Pass
from ..run.predictions import allowed_scores, checked_positions, head_of, labels_of, next_token_constraints
from ..run.request import Prompt
from ..run.trace_record import TraceRecord
from .head_roles import COMMONEST, are_common, common_words, is_ideograph

LIKELIEST = 8  # expected words that are tried at each position
MAX_CANDIDATES = 512  # most likely tokens that are searched for them: most tokens are parts of words, or differ in case
MAX_WORDS = 16  # positions that are tried, the last ones of a longer text
MIN_LIKELY = 6.0  # nats by which the text may become less likely
ROWS = 4  # texts in one batch; a small batch lets a caller stop soon
BATCH_BYTES = 256 << 20
LOGIT_ROWS = 128  # positions whose logits are held at one time
SIGNS = tuple(sign for group in SPACE_SIGNS for sign in group)


@dataclass(frozen=True)
class Swap:
    """One word replaced by another, and the prediction of a run of that text."""

    position: int  # of the replaced token
    token: int  # the new token
    replaced: str
    word: str
    text: str  # the whole text with it
    next_token: int  # the most likely one after it
    next_word: str
    probability: float  # of next_token
    divergence: float  # Jensen–Shannon divergence of the two texts' predictions: nats, from 0 to ln 2
    fall: float  # by how much the text is less likely with it, in nats


@dataclass(frozen=True)
class Swaps:
    """The best swaps so far."""

    found: tuple[Swap, ...]  # the largest divergence first
    done: int  # candidates that have run
    of: int


def swaps(run: TraceRecord, n: int = 3) -> Iterator[Swaps]:
    """Search the text for words whose replacement changes the answer; yields the n best so far after every batch of runs.

    Candidates at each of the last MOST_WORDS content words are the LIKELIEST words that the model expects there, and the other
    content words of the text. Each is one token, has the same capitalisation, is not one of the model's most common words, and is
    read as this token in the new text. A swap is kept if it changes the most likely next token and lowers the text's log-likelihood
    by at most LEAST_LIKELY nats. Each is checked by a run of the whole text, with the run's edits. Without candidates it yields once.

    Raises, before anything runs, TextError for a model that is not a language model or has no tokenizer and TooLarge with both
    numbers; Outdated after a training.
    """
    if run.config.kind != "decoder" or run.loaded.model.head is None or not run.config.writes:
        raise TextError(
            f"{run.spec.title} does not write on after a text, so it suggests no words to swap. Type one, or choose a decoder."
        )
    if run.loaded.tokenizer is None:
        raise TextError(
            "This model has no tokenizer, so its tokens are no words. Give the other text as token numbers."
        )
    tokens, forward = run.source, run.forward.of(run.index)
    logit_bytes = min(len(tokens), LOGIT_ROWS) * run.config.vocab_size * 12
    text_bytes = forward.transient() + run.config.d_model * len(tokens) * 4
    rows = max(1, min(ROWS, min(BATCH_BYTES, device.free_bytes(forward.loaded.device) // 2) // text_bytes))
    needed = rows * text_bytes + logit_bytes
    device.check_fits_or_retry(needed, forward.loaded.device, f"Trying words in a text of {len(tokens):,} tokens")
    return _swaps_so_far(run, forward, tokens, rows, n)


def same_length(tokens: Tokens, other: Tokens) -> tuple[int, ...]:
    """Positions at which two texts have different tokens.

    Raises TextError for texts that differ in their number of tokens; it names the words and both numbers.
    """
    mine, others = (tuple(i for i, hidden in zip(t.ids, t.padding, strict=True) if not hidden) for t in (tokens, other))
    if len(mine) == len(others):
        return tuple(i for i, (a, b) in enumerate(zip(mine, others, strict=True)) if a != b)
    advice = []
    (words, spans), (other_words, other_spans) = _words(tokens.text), _words(other.text)
    for operation, i, j, k, m in SequenceMatcher(None, words, other_words, autojunk=False).get_opcodes():
        part, a = _part_of_text(tokens, spans[i:j])
        other_part, b = _part_of_text(other, other_spans[k:m])
        if operation == "equal" or a == b:
            continue
        a_tokens, b_tokens = (f"{n} token{'s' * (n != 1)}" for n in (a, b))
        if not part:
            advice.append(f"‘{other_part}’ is {b_tokens} more than this text has there: leave it out.")
        elif not other_part:
            advice.append(f"‘{part}’ is {a_tokens}, and the other text has nothing there: write one of {a}.")
        else:
            advice.append(f"‘{other_part}’ is {b_tokens}, ‘{part}’ is {a}: write one of {a}.")
    raise TextError(
        " ".join(advice)
        or f"These texts have {len(mine):,} and {len(others):,} tokens. Write one of {len(mine):,}, as many spaces and signs included."
    )


def _words(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Words and punctuation of a text, and the span of each."""
    matches = list(re.finditer(r"\w+(?:['’-]\w+)*|[^\w\s]", text))
    return [match.group() for match in matches], [match.span() for match in matches]


def _part_of_text(tokens: Tokens, spans: Sequence[tuple[int, int]]) -> tuple[str, int]:
    """The text from the first of these spans to the last, and its number of tokens."""
    if not spans:
        return "", 0
    start, stop = spans[0][0], spans[-1][1]
    return tokens.text[start:stop], sum(a < stop and b > start for a, b in tokens.offsets)


@dataclass(frozen=True)
class _Candidate:
    position: int
    token: int
    word: str
    tokens: Tokens


def _swaps_so_far(run: TraceRecord, forward: Pass, tokens: Tokens, rows: int, n: int) -> Iterator[Swaps]:
    (last,) = checked_positions(tokens, None)
    forward.weights.check()
    with torch.inference_mode():
        final = forward.run()
    forward.weights.check()
    plain = _next_log_p(run.loaded, tokens, final[0, last])
    answer = int(plain.argmax())
    candidates = _candidates(run, tokens, final[0])
    if not candidates:
        yield Swaps((), 0, 0)
    best: list[Swap] = []
    known: dict[int, float] = {}
    for start in range(0, len(candidates), rows):
        batch = candidates[start : start + rows]
        forward.weights.check()
        with torch.inference_mode():
            changed = replace(forward, prompt=Prompt(tuple(c.tokens for c in batch))).run()
            for candidate, x in zip(batch, changed, strict=True):
                after = _next_log_p(run.loaded, candidate.tokens, x[last])
                top = int(after.argmax())
                if top == answer or not _is_word(run.loaded, top):
                    continue
                # Predictions of earlier tokens cannot change, unless an edit lets them attend to later ones.
                first = 1 if forward.edited else candidate.position
                if first not in known:
                    known[first] = _log_likelihood(run.loaded, tokens, final[0], first, last)
                fall = known[first] - _log_likelihood(run.loaded, candidate.tokens, x, first, last)
                if fall <= MIN_LIKELY:
                    best.append(_swap_of(run.loaded, tokens, candidate, plain, after, fall))
        forward.weights.check()  # a training may run at the same time
        best = sorted(best, key=lambda swap: -swap.divergence)[:n]
        yield Swaps(tuple(best), start + len(batch), len(candidates))


def _swap_of(loaded: Loaded, tokens: Tokens, candidate: _Candidate, plain: Tensor, after: Tensor, fall: float) -> Swap:
    top = int(after.argmax())
    return Swap(
        position=candidate.position,
        token=candidate.token,
        replaced=tokens.labels[candidate.position],
        word=candidate.word,
        text=candidate.tokens.text,
        next_token=top,
        next_word=labels_of(loaded, [top])[0],
        probability=after[top].exp().item(),
        divergence=_js_divergence(plain, after),
        fall=fall,
    )


def _js_divergence(a: Tensor, b: Tensor) -> float:
    """Jensen–Shannon divergence of two distributions, log p [vocab] each, in nats (Lin 1991, eq. 4.1 with equal weights)."""
    p, q = a.cpu().double().exp(), b.cpu().double().exp()
    middle = (p + q) / 2
    return float(sum((torch.special.xlogy(x, x) - torch.special.xlogy(x, middle)).sum() for x in (p, q)) / 2)


def _candidates(run: TraceRecord, tokens: Tokens, final: Tensor) -> list[_Candidate]:
    """The other words of the text at every position, then the expected ones by rank. final is [pos, d_model]."""
    positions = content_words(run.loaded, tokens)[-MAX_WORDS:]
    tried: dict[tuple[int, int], tuple[int, _Candidate]] = {}
    for i in positions:
        own = [(0, tokens.ids[j]) for j in positions if tokens.ids[j] != tokens.ids[i]]
        expected = _expected_words(run.loaded, tokens, i, final[i - 1])
        for rank, token in (*own, *enumerate(expected, 1)):
            candidate = _candidate(run.loaded, tokens, i, token)
            if candidate is not None:
                tried.setdefault((i, token), (rank, candidate))
    return [candidate for _, candidate in sorted(tried.values(), key=lambda pair: pair[0])]


def content_words(loaded: Loaded, tokens: Tokens) -> list[int]:
    """Positions of content words: whole words of one token that are not among the model's most common ones (common_words).

    The first and the last token of the text are left out, and in a conversation all that the chat template wrote.
    """
    real = [i for i, hidden in enumerate(tokens.padding) if not hidden]
    common = are_common(loaded, tokens, COMMONEST)
    found = []
    for i in real[1:-1]:
        start, end = _span_of_word(tokens, i)
        is_written = not (tokens.special[i] or tokens.from_template[i] or common[i])
        is_whole = tokens.text[max(0, start - 1) : start].isspace() and not tokens.text[end : end + 1].isalnum()
        if is_written and is_whole and tokens.labels[i].isalpha() and tokens.text[start:end].isalpha():
            found.append(i)
    return found


def _span_of_word(tokens: Tokens, position: int) -> tuple[int, int]:
    """Start and end of a token in the text, without the spaces before it."""
    start, end = tokens.offsets[position]
    return end - len(tokens.text[start:end].lstrip()), end


def _expected_words(loaded: Loaded, tokens: Tokens, position: int, x: Tensor) -> list[int]:
    """The words that the model expects at a position, the most likely first, by x [d_model], the residual before it."""
    with torch.inference_mode():
        scores = head_of(loaded)(x[None, None])[0, 0].float()
    found: list[int] = []
    for token in scores.topk(min(MAX_CANDIDATES, len(scores))).indices.tolist():
        if token != tokens.ids[position] and _fits(loaded, tokens, position, token):
            found.append(token)
            if len(found) == LIKELIEST:
                break
    return found


def _is_word(loaded: Loaded, token: int) -> bool:
    """True for a token that begins a word and consists of letters."""
    assert loaded.tokenizer is not None
    string = loaded.tokenizer.id_to_token(token) or ""
    # Some vocabularies mark the start of a word (Ġ, ▁); WordPiece marks continuations.
    marks_starts = any(loaded.tokenizer.token_to_id(f"{sign}a") is not None for sign in SIGNS)
    starts_word = string.startswith(SIGNS) if marks_starts else not string.startswith("##")
    return starts_word and labels_of(loaded, [token])[0].isalpha()


def _fits(loaded: Loaded, tokens: Tokens, position: int, token: int) -> bool:
    """True for a word in the same case as the one at this position that is neither common nor a single letter."""
    old, new = tokens.labels[position], labels_of(loaded, [token])[0]
    is_letter = len(new) == 1 and not is_ideograph(new)
    if not _is_word(loaded, token) or is_letter or new.casefold() in common_words(loaded):
        return False
    return (old[0].isupper(), len(old) > 1 and old.isupper()) == (new[0].isupper(), len(new) > 1 and new.isupper())


def _candidate(loaded: Loaded, tokens: Tokens, position: int, token: int) -> _Candidate | None:
    """The text with another token at one position; None if that does not fit, or if the new text is read as other tokens."""
    if not _fits(loaded, tokens, position, token):
        return None
    word = labels_of(loaded, [token])[0]
    start, end = _span_of_word(tokens, position)
    text = tokens.text[:start] + word + tokens.text[end:]
    try:
        read = tokenize(loaded.tokenizer, text, add_special_tokens=False) if tokens.is_chat else loaded.tokens(text)
    except TextError:
        return None
    ids = [*tokens.ids]
    ids[position] = token
    if [i for i, hidden in zip(ids, tokens.padding, strict=True) if not hidden] != [*read.ids]:
        return None
    return _Candidate(position, token, word, replace(tokens, text=text, ids=tuple(ids)))


def _next_log_p(loaded: Loaded, tokens: Tokens, x: Tensor) -> Tensor:
    """log p [vocab] of the next token, by x [d_model]; −∞ for tokens that may not follow."""
    scores = head_of(loaded)(x[None, None])[0].float()
    return allowed_scores(scores, next_token_constraints(loaded, tokens, checked_positions(tokens, None)))[
        0
    ].log_softmax(-1)


def _log_likelihood(loaded: Loaded, tokens: Tokens, x: Tensor, first: int, last: int) -> float:
    """log p of tokens first to last, each by x [pos, d_model] of the real token before it."""
    real = [i for i in range(last + 1) if not tokens.padding[i]]
    pairs = [(a, b) for a, b in pairwise(real) if b >= first]
    total = 0.0
    for start in range(0, len(pairs), LOGIT_ROWS):
        some = pairs[start : start + LOGIT_ROWS]
        log_p = head_of(loaded)(x[None, [a for a, _ in some]])[0].float().log_softmax(-1)
        ids = torch.tensor([tokens.ids[b] for _, b in some], device=log_p.device)
        total += log_p.gather(-1, ids[:, None]).sum().item()
    return total
