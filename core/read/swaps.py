"""Words to swap: another word in one place of a text, as long in tokens, that changes the word which the model expects next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise

import torch
from torch import Tensor

from .. import memory
from ..checkpoints import Loaded
from ..errors import TextError
from ..model.text import SPACE_SIGNS, Tokens, tokenize
from ..run.forward_pass import Pass
from ..run.predictions import allowed_scores, checked_positions, following, head_of, labels_of
from ..run.prompt import Prompt
from ..run.trace import Trace
from .common_words import COMMONEST, are_common, common_words
from .head_roles import is_ideograph

LIKELIEST = 8  # words that are tried in a place because the model expects them there
LOOKED_THROUGH = 512  # of the likeliest tokens for them: most tokens are pieces, or written otherwise
MOST_WORDS = 16  # places that are tried: of a longer text the last ones
LEAST_LIKELY = 6.0  # nats by which the text may become less likely
ROWS = 4  # texts of one batch, so that a caller who stops waits for no more
BATCH_BYTES = 256 << 20
LOGIT_ROWS = 128  # positions whose scores of every word are there at once
SIGNS = tuple(sign for group in SPACE_SIGNS for sign in group)


@dataclass(frozen=True)
class Swap:
    """One word in the place of another, and what a run of that text expects next."""

    position: int  # of the token that is replaced
    token: int  # in its place
    replaced: str
    word: str
    text: str  # the whole text with it
    next_token: int  # the likeliest after it
    next_word: str
    probability: float  # of that
    divergence: float  # Jensen–Shannon, of both texts' predictions: nats, from 0 to ln 2
    fall: float  # by how much the text is less likely with it, in nats


@dataclass(frozen=True)
class Swaps:
    """The best swaps so far."""

    found: tuple[Swap, ...]  # the largest divergence first
    done: int  # candidates that have run
    of: int


def swaps(run: Trace, n: int = 3) -> Iterator[Swaps]:
    """Words of the text whose replacement by one other changes the answer, the n best so far after every batch of runs.

    Tried are, in the place of each of the last MOST_WORDS words that say something (none of the model's commonest, neither the
    first nor the last token, no part of a word), the LIKELIEST words that the model expects there and the other such words of the text: one
    token each, none of the common ones either, of the same capitalisation, and so that the new text is read as these tokens. A swap is kept where the likeliest
    next token is then another word, and where the text's log-likelihood falls by LEAST_LIKELY nats at most. Each is checked by a
    run of the whole text, with the run's edits. A generator: to stop it, take no more of it. Where nothing is to be tried it
    yields once.

    Raises TextError for a model that is no decoder that writes or has no tokenizer, TooLarge with both numbers, both before anything
    runs; and Outdated after a training.
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
    width = min(len(tokens), LOGIT_ROWS) * run.config.vocab_size * 12
    each = forward.transient() + run.config.d_model * len(tokens) * 4
    most = max(1, min(ROWS, min(BATCH_BYTES, memory.free_bytes(forward.loaded.device) // 2) // each))
    memory.admit_large(most * each + width, forward.loaded.device, f"Trying words in a text of {len(tokens):,} tokens")
    return _tried(run, forward, tokens, most, n)


def same_length(tokens: Tokens, other: Tokens) -> tuple[int, ...]:
    """The places where two texts have different tokens. Raises TextError for texts of unequal length in tokens; it names the words
    and both numbers."""
    mine, theirs = (tuple(i for i, hidden in zip(t.ids, t.padding, strict=True) if not hidden) for t in (tokens, other))
    if len(mine) == len(theirs):
        return tuple(i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b)
    said = []
    (words, spans), (others, their_spans) = _words(tokens.text), _words(other.text)
    for what, i, j, k, m in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        here, a = _part(tokens, spans[i:j])
        there, b = _part(other, their_spans[k:m])
        if what == "equal" or a == b:
            continue
        if not here:
            said.append(f"‘{there}’ is {_tokens(b)} more than this text has there: leave it out.")
        elif not there:
            said.append(f"‘{here}’ is {_tokens(a)}, and the other text has nothing there: write {_as_many(a)}.")
        else:
            said.append(f"‘{there}’ is {_tokens(b)}, ‘{here}’ is {a}: write {_as_many(a)}.")
    raise TextError(
        " ".join(said)
        or f"These texts have {len(mine):,} and {len(theirs):,} tokens. Write one of {len(mine):,}, as many spaces and signs included."
    )


def _tokens(n: int) -> str:
    return f"{n} token{'s' * (n != 1)}"


def _as_many(n: int) -> str:
    return f"one of {n}"


def _words(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """The words and signs of a text, and where each is."""
    found = list(re.finditer(r"\w+(?:['’-]\w+)*|[^\w\s]", text))
    return [match.group() for match in found], [match.span() for match in found]


def _part(tokens: Tokens, spans: Sequence[tuple[int, int]]) -> tuple[str, int]:
    """The text from the first of these words to the last, and how many tokens it has."""
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


def _tried(run: Trace, forward: Pass, tokens: Tokens, most: int, n: int) -> Iterator[Swaps]:
    (last,) = checked_positions(tokens, None)
    forward.weights.check()
    with torch.inference_mode():
        final = forward.run()
    forward.weights.check()
    plain = _next(run.loaded, tokens, final[0, last])
    answer = int(plain.argmax())
    candidates = _candidates(run, tokens, final[0])
    # Predictions of earlier words cannot change, unless an edit lets them look ahead.
    whole = bool(forward.edited)
    found: list[Swap] = []
    if not candidates:
        yield Swaps((), 0, 0)
    known: dict[int, float] = {}
    for start in range(0, len(candidates), most):
        batch = candidates[start : start + most]
        forward.weights.check()
        with torch.inference_mode():
            changed = replace(forward, prompt=Prompt(tuple(c.tokens for c in batch))).run()
            for candidate, x in zip(batch, changed, strict=True):
                after = _next(run.loaded, candidate.tokens, x[last])
                top = int(after.argmax())
                if top == answer or not _is_word(run.loaded, top):
                    continue
                first = 1 if whole else candidate.position
                if first not in known:
                    known[first] = _log_likelihood(run.loaded, tokens, final[0], first, last)
                fall = known[first] - _log_likelihood(run.loaded, candidate.tokens, x, first, last)
                if fall <= LEAST_LIKELY:
                    found.append(_swap(run.loaded, tokens, candidate, plain, after, fall))
        forward.weights.check()  # a training may run at the same time
        found = sorted(found, key=lambda swap: -swap.divergence)[:n]
        yield Swaps(tuple(found), start + len(batch), len(candidates))


def _swap(loaded: Loaded, tokens: Tokens, chosen: _Candidate, plain: Tensor, after: Tensor, fall: float) -> Swap:
    top = int(after.argmax())
    return Swap(
        chosen.position,
        chosen.token,
        tokens.labels[chosen.position],
        chosen.word,
        chosen.tokens.text,
        top,
        labels_of(loaded, [top])[0],
        after[top].exp().item(),
        _divergence(plain, after),
        fall,
    )


def _divergence(a: Tensor, b: Tensor) -> float:
    """Jensen–Shannon divergence of two distributions, log p [vocab] each, in nats (Lin 1991, eq. 4.1 with equal weights)."""
    p, q = a.cpu().double().exp(), b.cpu().double().exp()
    middle = (p + q) / 2
    return float(sum((torch.special.xlogy(x, x) - torch.special.xlogy(x, middle)).sum() for x in (p, q)) / 2)


def _candidates(run: Trace, tokens: Tokens, final: Tensor) -> list[_Candidate]:
    """The other words of the text in every place first, then the likeliest ones by rank. final is [pos, d_model]."""
    places = content_words(run.loaded, tokens)[-MOST_WORDS:]
    tried: dict[tuple[int, int], tuple[int, _Candidate]] = {}
    for i in places:
        own = [(0, tokens.ids[j]) for j in places if tokens.ids[j] != tokens.ids[i]]
        expected = _expected(run.loaded, tokens, i, final[i - 1])
        for rank, token in (*own, *enumerate(expected, 1)):
            candidate = _read_as(run.loaded, tokens, i, token)
            if candidate is not None:
                tried.setdefault((i, token), (rank, candidate))
    return [candidate for _, candidate in sorted(tried.values(), key=lambda pair: pair[0])]


def content_words(loaded: Loaded, tokens: Tokens) -> list[int]:
    """The places of words that say something: whole words of one token, none of the model's commonest (common_words), and neither the first
    token of the text nor the last; of a conversation those that a message wrote."""
    real = [i for i, hidden in enumerate(tokens.padding) if not hidden]
    common = are_common(loaded, tokens, COMMONEST)
    found = []
    for i in real[1:-1]:
        start, end = tokens.offsets[i]
        start += len(tokens.text[start:end]) - len(tokens.text[start:end].lstrip())
        before, after = tokens.text[max(0, start - 1) : start], tokens.text[end : end + 1]
        whole = tokens.labels[i].isalpha() and tokens.text[start:end].isalpha() and before.isspace()
        written = not (tokens.special[i] or tokens.from_template[i] or common[i])
        if whole and written and not after.isalnum():
            found.append(i)
    return found


def _expected(loaded: Loaded, tokens: Tokens, position: int, x: Tensor) -> list[int]:
    """The words that the model expects in a place by x [d_model], the residual before it, the likeliest first."""
    with torch.inference_mode():
        scores = head_of(loaded)(x[None, None])[0, 0].float()
    found: list[int] = []
    for token in scores.topk(min(LOOKED_THROUGH, len(scores))).indices.tolist():
        if token != tokens.ids[position] and _fits(loaded, tokens, position, token):
            found.append(token)
            if len(found) == LIKELIEST:
                break
    return found


def _is_word(loaded: Loaded, token: int) -> bool:
    """Whether a token begins a word and is letters alone."""
    assert loaded.tokenizer is not None
    string = loaded.tokenizer.id_to_token(token) or ""
    marked = string.startswith(SIGNS)
    return (
        (marked or not _marks_words(loaded)) and not string.startswith("##") and labels_of(loaded, [token])[0].isalpha()
    )


def _says_something(loaded: Loaded, token: int) -> bool:
    """Whether a token is a word, none of the common ones, and no single letter."""
    label = labels_of(loaded, [token])[0]
    alone = len(label) == 1 and not is_ideograph(label)
    return _is_word(loaded, token) and not alone and label.casefold() not in common_words(loaded)


def _marks_words(loaded: Loaded) -> bool:
    """Whether the vocabulary marks the beginning of a word (Ġ, ▁); WordPiece marks what continues one."""
    assert loaded.tokenizer is not None
    return any(loaded.tokenizer.token_to_id(f"{sign}a") is not None for sign in SIGNS)


def _fits(loaded: Loaded, tokens: Tokens, position: int, token: int) -> bool:
    """Whether a word that says something is written in the same case as the one in this place."""
    if not _says_something(loaded, token):
        return False
    old, new = tokens.labels[position], labels_of(loaded, [token])[0]
    return (old[0].isupper(), len(old) > 1 and old.isupper()) == (new[0].isupper(), len(new) > 1 and new.isupper())


def _read_as(loaded: Loaded, tokens: Tokens, position: int, token: int) -> _Candidate | None:
    """The text with another token in one place; None where its words would be read as other tokens, or are written otherwise."""
    if not _fits(loaded, tokens, position, token):
        return None
    word = labels_of(loaded, [token])[0]
    start, end = tokens.offsets[position]
    start += len(tokens.text[start:end]) - len(tokens.text[start:end].lstrip())
    text = tokens.text[:start] + word + tokens.text[end:]
    try:
        read = tokenize(loaded.tokenizer, text, add_special_tokens=False) if tokens.is_chat else loaded.tokens(text)
    except TextError:
        return None
    real = [i for i, hidden in enumerate(tokens.padding) if not hidden]
    ids = [*tokens.ids]
    ids[position] = token
    if [ids[i] for i in real] != [*read.ids]:
        return None
    return _Candidate(position, token, word, replace(tokens, text=text, ids=tuple(ids)))


def _next(loaded: Loaded, tokens: Tokens, x: Tensor) -> Tensor:
    """log p [vocab] of the next token, by x [d_model]; -inf for what may not follow."""
    (last,) = checked_positions(tokens, None)
    scores = head_of(loaded)(x[None, None])[0].float()
    return allowed_scores(scores, following(loaded, tokens, [last]))[0].log_softmax(-1)


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
