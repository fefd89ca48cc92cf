"""What the heads of a run do: a name for each after where its attention goes, and the link that a picture opens on.

A name says where attention goes, not what a head is for: a head that finds the bracket to close may be called "one back".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..model.text import Tokens
from ..run.attention import AttentionRecord
from ..run.trace import Trace
from . import measures
from .spaced_rows import spread

NAMED_FROM = 0.35  # a smaller share of the average row names no head
RESTS_FROM = 0.95  # of the average row on a key that is set aside: no more is said of the rest
ONE_WORD_BITS = 1.0  # cross-attention below this mean entropy looks at one word at a time
REPEATS = 3  # rows with an earlier copy of their token, below which no head is called an induction head
CELLS = 1 << 18  # weights looked at to name the heads of one record; of longer texts some rows are looked at
FEWEST_ROWS = 16  # looked at however long the text is

SHORT = 64  # tokens of a text on which the opening link may lie between any two words
ROWS = 128  # query rows of a longer text that an opening link is looked for in: what a visitor reads first
OPENING_CELLS = 1 << 20  # weights of one record looked at for that, where all keys of a row are needed
FEWEST_OPENING_ROWS = 32
APART = (16, 64)  # tokens between the two words of an opening link in a longer text
POSITIONAL = 0.15  # of the average row on one back, one ahead or itself: no head to open a longer text on


@dataclass(frozen=True)
class Role:
    """A head's name, and the share of its average row that goes there (for "mixed" the largest share it has).

    The mean is over `rows` query rows; in a long text these are fewer than there are. Where a key is set aside, `rests` is the
    share that goes there, over the rows that may see another key, and `share` is of what is left.
    """

    name: str
    share: float
    rows: int
    rests: float | None = None


@dataclass(frozen=True)
class OpeningLink:
    """The link of one kind of attention that stands out most from its head's habit.

    weight is the attention that the query gives to the key, habit what that head gives on average where one would expect as
    much. It was looked for in the first `rows` query rows.
    """

    stack: str
    site: str
    layer: int
    head: int
    query: int
    key: int
    weight: float
    habit: float
    rows: int


def roles(
    record: AttentionRecord,
    queries: Tokens,
    keys: Tokens,
    pattern: Tensor | None = None,
    cells: int = CELLS,
    aside: int | None = None,
) -> tuple[Role, ...]:
    """A name for each head of one attention: where the largest part of its average row goes, if that is at least 35 %.

    "one back", "one ahead", "itself", "2–5 away" (on either side, special tokens aside), "same token" (other copies of the
    query's own), "induction" (what followed an earlier copy; from three repeats on), "punctuation", "rests on [CLS]" (or
    another special token); else "mixed". One back, one ahead, same token and induction are means over the rows that have
    such a key, the others over all rows. Cross-attention is "one word" below 1 bit of mean entropy, with the mean of the
    rows' largest weights as its share, else "mixed". Padding is no row and no key.

    queries and keys are those of Trace.tokens_of. pattern [head, query, key] saves working it out again where the whole of it
    is at hand; without one a long text is judged by evenly spaced rows, `cells` weights in all and 16 rows at least.

    With `aside`, a key such as the one of core.read.sinks.sink, a head is named after the largest part of what is left without
    that key, and is "rests" where 95 % goes there. Cross-attention keeps its names.
    """
    rows = _rows(record, cells if pattern is None else None)
    return _roles(record, rows, _parts(queries, keys, rows, record.site == "cross_attn"), pattern, aside)


def roles_of(
    trace: Trace, patterns: Sequence[Tensor] | None = None, cells: int = CELLS, aside: int | None = None
) -> tuple[tuple[Role, ...], ...]:
    """roles() of every attention of a run, in the order of the pass: what depends on the text alone is computed once.

    aside is a key of all attentions, so of a model of one stack: the first token of most decoders.
    """
    known: dict[tuple[str, str], tuple[Tensor, _Parts]] = {}
    found = []
    for i, record in enumerate(trace.attention):
        if (kind := (record.stack, record.site)) not in known:
            rows = _rows(record, cells if patterns is None else None)
            known[kind] = rows, _parts(*trace.tokens_of(record), rows, record.site == "cross_attn")
        found.append(_roles(record, *known[kind], None if patterns is None else patterns[i], aside))
    return tuple(found)


def openings(trace: Trace, patterns: Sequence[Tensor] | None = None) -> tuple[OpeningLink, ...]:
    """Where a picture of this run opens, one link for each kind of attention: encoder, decoder, cross-attention.

    Of all heads the largest weight less the head's habit, between two words: no neighbour (the same or the next written
    word), no special token, no punctuation, not the same word again. The habit is what this head gives at that distance on
    average, or to that key, whichever is more; for cross-attention to that key alone; without the cell itself. It is subtracted because
    the largest weight alone says nothing of a sentence: it belongs to the head that always looks one back.

    Above 64 tokens a text has so many links that some odd one always stands out. There the two words stand 16 to 64
    tokens apart, both are whole words of one token, heads that give a seventh of the average row to one place (one back, one
    ahead, the token itself) are left out, and only the first 128 query rows are looked at (of very long encoder texts 32).
    A text of symbols, which is one word between spaces or all punctuation, has tokens for words. Where no link is left, the
    strongest between two tokens that are not neighbours counts, and else the strongest of all; of a run without any weight,
    since every look is hidden or there are no numbers, the first cell, with a weight of 0.

    patterns are the whole maps [head, query, key] of trace.attention, where they are at hand.
    """
    kinds: dict[tuple[str, str], list[int]] = {}
    for i, record in enumerate(trace.attention):
        kinds.setdefault((record.stack, record.site), []).append(i)
    return tuple(
        _opening(
            [trace.attention[i] for i in chosen],
            *trace.tokens_of(trace.attention[chosen[0]]),
            None if patterns is None else [patterns[i] for i in chosen],
        )
        for chosen in kinds.values()
    )


def opening_of(trace: Trace, record: int, head: int) -> OpeningLink:
    """The same in one chosen head: where to begin reading it. Raises IndexError for another one."""
    found = trace.attention[record]
    if not 0 <= head < found.n_heads:
        raise IndexError(f"head {head} of {found.n_heads}")
    pattern = found.pattern(head)
    return replace(_opening([found], *trace.tokens_of(found), [pattern]), head=head)


def is_punctuation(label: str) -> bool:
    """Whether a token is nothing but punctuation and symbols."""
    return bool(label) and all(unicodedata.category(char)[0] in "PS" for char in label)


def spaced_words(tokens: Tokens) -> list[int]:
    """[pos]: which word each token belongs to: what stands between two spaces. Special tokens are words of their own.

    "didn't" is one word and three tokens. Each character of Chinese and Japanese, which have no spaces, is a word. A text without
    spaces, or without letters of its own, has a word a token; the parts of one character are always of one word.
    """
    words: list[int] = []
    pieces: list[int] = []  # as if each token were a word
    text, end = tokens.text, -1  # the character after the last token's
    for i, (start, stop) in enumerate(tokens.offsets):
        alone = tokens.special[i] or tokens.padding[i] or start == stop
        part = not alone and start < end
        apart = (
            start == 0 or alone or text[start].isspace() or is_ideograph(text[start]) or is_ideograph(text[start - 1])
        )
        joined = part or (start == end and not apart)
        words.append(words[-1] + (not joined) if words else 0)
        pieces.append(pieces[-1] + (not part) if pieces else 0)
        end = -1 if alone else stop
    spoken = {word for word, special in zip(words, tokens.special, strict=True) if not special}
    return pieces if len(spoken) == 1 else words


def is_ideograph(char: str) -> bool:
    """Whether a character is written without spaces, as a word or a syllable: Chinese and Japanese."""
    return "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff"


@dataclass(frozen=True, eq=False)
class _Parts:
    """The names that a head may have, and for each what its mean is over. rows [query] are True without padding."""

    names: tuple[str, ...]
    cells: Tensor  # [part, query, key] bool
    counted: Tensor  # [part, query] bool
    rows: Tensor


def _rows(record: AttentionRecord, cells: int | None) -> Tensor:
    """All query rows, or as many evenly spaced ones as make up `cells` weights."""
    n = record.n_query
    most = n if cells is None else max(FEWEST_ROWS, cells // (record.n_heads * record.n_key))
    return torch.tensor(spread(n, most), device=record.device)


def _roles(
    record: AttentionRecord, rows: Tensor, parts: _Parts, pattern: Tensor | None, aside: int | None
) -> tuple[Role, ...]:
    pattern = record.pattern(queries=rows) if pattern is None else pattern
    n_rows = int(parts.rows.sum())
    if record.site == "cross_attn":
        return _cross_roles(pattern[:, parts.rows] if n_rows < len(rows) else pattern)
    rests = None if aside is None else _resting(record, rows, parts, pattern, aside)
    if aside is not None:
        pattern = pattern.index_fill(-1, torch.tensor([aside], device=pattern.device), 0.0)
    shares = measures.shares(pattern, parts.cells, parts.counted).nan_to_num(nan=0.0)  # [head, part]
    if aside is not None:  # of what is left in the same rows
        left = measures.shares(pattern, torch.ones_like(parts.cells), parts.counted).nan_to_num(nan=0.0)
        shares = shares / left.clamp(min=1e-12)
    best, which = shares.max(-1)
    names = [
        parts.names[part] if share >= NAMED_FROM else "mixed"
        for part, share in zip(which.tolist(), best.tolist(), strict=True)
    ]
    if rests is None:
        return tuple(Role(name, share, n_rows) for name, share in zip(names, best.tolist(), strict=True))
    return tuple(
        Role("rests" if resting >= RESTS_FROM else name, share, n_rows, resting)
        for name, share, resting in zip(names, best.tolist(), rests, strict=True)
    )


def _resting(record: AttentionRecord, rows: Tensor, parts: _Parts, pattern: Tensor, aside: int) -> list[float]:
    """The share that each head gives to this key, over the rows that may see another one."""
    others = parts.rows & (record.mask(queries=rows).sum(-1) > 1)
    return measures.sink_share(pattern, aside, others if others.any() else None).tolist()


def _parts(queries: Tokens, tokens: Tokens, rows: Tensor, cross: bool) -> _Parts:
    real_rows = ~torch.tensor(queries.padding, device=rows.device)[rows]
    if cross:
        return _Parts((), torch.empty(0), torch.empty(0), real_rows)
    away = torch.arange(len(tokens), device=rows.device) - rows[:, None]
    special = [i for i, is_special in enumerate(tokens.special) if is_special]
    labels = tokens.labels
    marks = [i for i in range(len(tokens)) if not tokens.special[i] and is_punctuation(labels[i])]
    every = torch.ones_like(away, dtype=torch.bool)
    real = ~torch.tensor(tokens.padding, device=rows.device) & real_rows[:, None]
    repeats = measures.induction_cells(tokens.ids, rows) & real
    # name: the cells that count, and which rows a mean is over: those that have such a cell, or every one
    parts = {
        "one back": (away == -1, False),
        "one ahead": (away == 1, False),
        "itself": (away == 0, True),
        "2–5 away": (measures.near_cells(rows, len(tokens), special), True),
        "same token": (measures.same_cells(tokens.ids, rows), False),
    }
    if int(repeats.any(-1).sum()) >= REPEATS:
        parts["induction"] = (repeats, False)
    if marks and len(marks) + len(special) < len(tokens):  # where all is punctuation, it says nothing of a head
        parts["punctuation"] = (_columns(marks, every), True)
    for label in dict.fromkeys(labels[i] for i in special if not tokens.padding[i]):
        parts[f"rests on {label}"] = (_columns([i for i in special if labels[i] == label], every), True)
    cells = torch.stack([cells & real for cells, _ in parts.values()])
    counted = torch.stack([real_rows if whole else (cells & real).any(-1) for cells, whole in parts.values()])
    return _Parts(tuple(parts), cells, counted, real_rows)


def _columns(keys: Sequence[int], like: Tensor) -> Tensor:
    """[query, key] bool: True in whole columns."""
    cells = torch.zeros_like(like)
    cells[:, list(keys)] = True
    return cells


def _cross_roles(pattern: Tensor) -> tuple[Role, ...]:
    sees = pattern.sum(-1) > 0
    n = sees.sum(-1).clamp(min=1)
    bits = (measures.entropy(pattern) * sees).sum(-1) / n
    largest = pattern.amax(-1).sum(-1) / n
    return tuple(
        Role("one word" if b < ONE_WORD_BITS else "mixed", share, pattern.shape[1])
        for b, share in zip(bits.tolist(), largest.tolist(), strict=True)
    )


def _opening(
    records: Sequence[AttentionRecord], queries: Tokens, keys: Tokens, patterns: Sequence[Tensor] | None
) -> OpeningLink:
    """The opening of the records of one kind, which have the same queries and keys."""
    cross = records[0].site == "cross_attn"
    device = records[0].device
    long = max(len(queries), len(keys)) > SHORT
    n_rows = len(queries)
    if long:
        n_rows = min(n_rows, ROWS)
    n_keys = len(keys)
    if long and not cross and not any(_see_behind(record, n_rows) for record in records):
        n_keys = n_rows  # what comes after these rows is of no use to a decoder's, which may not see it
    if long and n_keys == len(keys):
        n_rows = min(n_rows, max(FEWEST_OPENING_ROWS, OPENING_CELLS // (records[0].n_heads * n_keys)))
    rows, columns = torch.arange(n_rows, device=device), torch.arange(n_keys, device=device)

    def pattern_of(i: int) -> Tensor:
        if patterns is not None:
            return patterns[i][:, :n_rows, :n_keys]
        record = records[i]
        if n_keys == len(keys) or record.replaced_pattern is not None or record.replaced_scores is not None:
            return record.pattern(queries=slice(0, n_rows), keys=slice(0, n_keys))
        # No later key may be seen, so the softmax over these keys is the whole row's.
        q = record.q[None, :, :n_rows].to(device).float()
        k = record.k[None, :, :n_keys].to(device).float()
        masked = record.rule.masked(record.rule.scores(q, k, rows, columns), rows, columns)
        return record.rule.pattern(masked, rows, columns)[0]

    real = _real(queries, n_rows, device)[:, None] & _real(keys, n_keys, device)
    padded = not real.all()
    maps = [pattern_of(i) * real if padded else pattern_of(i) for i in range(len(records))]
    found = None
    for cells in (_links(queries, keys, real, cross, strict) for strict in (True, False)):
        found = found or _most_unusual(maps, cells, real, cross, skip_positional=long and not cross)
    found = found or _most_unusual(maps, real, real, cross, skip_positional=False)
    # Nothing has a weight where every look is hidden, or where there are no numbers: a picture opens on the first cell then.
    i, head, query, key, weight, habit = found or (0, 0, 0, 0, 0.0, 0.0)
    record = records[i]
    assert record.layer is not None  # a run's record
    return OpeningLink(record.stack, record.site, record.layer, head, query, key, weight, habit, n_rows)


def _see_behind(record: AttentionRecord, n_rows: int) -> bool:
    """Whether any head's first rows may look at a later key, or is normalised over later keys that are hidden."""
    rule, device = record.rule, record.device
    rows, later = torch.arange(n_rows, device=device), torch.arange(n_rows, record.n_key, device=device)
    return not rule.is_fused or bool(rule.mask.block(rows, later).any())


def _real(tokens: Tokens, n: int, device: torch.device) -> Tensor:
    return ~torch.tensor(tokens.padding[:n], device=device)


def _links(queries: Tokens, keys: Tokens, real: Tensor, cross: bool, strict: bool) -> Tensor:
    """[query, key] bool: the cells that a picture may open on, as many as `real` has. Not `strict`: any two words that are not neighbours."""
    (n_rows, n_keys), device = real.shape, real.device
    long = max(len(queries), len(keys)) > SHORT
    rows = torch.tensor(words_of(queries, strict, strict and long and not cross)[:n_rows], device=device)
    columns = torch.tensor(words_of(keys, strict, strict and long and not cross)[:n_keys], device=device)
    cells = (rows >= 0)[:, None] & (columns >= 0)
    if cross:
        return cells
    away = (torch.arange(n_rows, device=device)[:, None] - torch.arange(n_keys, device=device)).abs()
    cells = cells & (away > 1)
    if not strict:
        return cells
    labels = [label.casefold() for label in keys.labels]
    number = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    same = torch.tensor([number[label] for label in labels], device=device)
    cells = cells & ((rows[:, None] - columns).abs() > 1) & (same[:n_rows, None] != same[:n_keys])
    return cells & (away >= APART[0]) & (away <= APART[1]) if long else cells


def words_of(tokens: Tokens, strict: bool, whole: bool) -> list[int]:
    """[pos]: the word between spaces of each token, −1 for one that a link may not end on; `whole`: for pieces of words too."""
    words, labels = spaced_words(tokens), tokens.labels
    spoken = [not s and not p for s, p in zip(tokens.special, tokens.padding, strict=True)]
    if strict:
        said = [here and not is_punctuation(label) for here, label in zip(spoken, labels, strict=True)]
        spoken = said if any(said) else spoken
    if whole:
        pieces: dict[int, int] = {}
        for word, here in zip(words, spoken, strict=True):
            pieces[word] = pieces.get(word, 0) + here
        spoken = [here and pieces[word] == 1 for word, here in zip(words, spoken, strict=True)]
    return [word if here else -1 for word, here in zip(words, spoken, strict=True)]


def _most_unusual(
    maps: Sequence[Tensor], cells: Tensor, real: Tensor, cross: bool, skip_positional: bool
) -> tuple[int, int, int, int, float, float] | None:
    """(map, head, query, key, weight, habit) of the cell with the largest weight less habit; None where there is no weight."""
    best, least = None, 0.0
    count = _totals(real[None].float(), cross)[0]  # cells that a mean is over
    for i, pattern in enumerate(maps):
        possible = pattern * cells
        if skip_positional:
            away = [torch.diagonal(pattern, offset, -2, -1).mean(-1) for offset in (-1, 0, 1)]
            possible = possible * (torch.stack(away).amax(0) < POSITIONAL)[:, None, None]
        totals = _totals(pattern, cross)
        # A habit is never below 0, so only weights above the best excess so far can beat it.
        head, query, key = (possible > least).nonzero().unbind(-1)
        if not len(head):
            continue
        where = key if cross else key - query + pattern.shape[-2] - 1
        weight = pattern[head, query, key]
        habit = (totals[head, where] - weight) / (count[where] - 1).clamp(min=1)
        if not cross:  # a key that every query looks at is where the head rests, and no link between two words
            seen = (pattern > 0).sum(-2)  # [head, key]: queries that may see it
            others = (seen[head, key] - 1).clamp(min=1)
            habit = torch.maximum(habit, (pattern.sum(-2)[head, key] - weight) / others)
        most, at = (weight - habit).max(0)
        if most > least:
            least = float(most)
            best = (i, int(head[at]), int(query[at]), int(key[at]), float(weight[at]), max(0.0, float(habit[at])))
    return best


def _totals(pattern: Tensor, cross: bool) -> Tensor:
    """The sums of each key's column [head, key], or of each distance [head, query + key − 1], from the farthest back on."""
    if cross:
        return pattern.sum(-2)
    heads, n_query, n_key = pattern.shape
    # Beside a margin as wide as it is high the map's diagonals are the columns of a view whose rows lie one number farther apart.
    wide = pattern.new_zeros(heads, n_query + 1, n_query + n_key)
    wide[:, :n_query, n_query:] = pattern
    skewed = wide.as_strided(
        (heads, n_query, n_query + n_key - 1), (wide.stride(0), n_query + n_key + 1, 1), storage_offset=1
    )
    return skewed.sum(-2)
