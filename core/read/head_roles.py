"""Head roles, named after where a head's attention goes, and the attention edge on which a picture opens.

A role describes where attention goes, not what the head is for: a head that finds the bracket to close may attend to
the previous token, and is then named after that.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ..checkpoints import Loaded
from ..model.text import SPACE_SIGNS, Tokens
from ..run.attention import AttentionRecord, JointPattern, joint_patterns
from ..run.predictions import labels_of
from ..run.trace_record import TraceRecord
from . import measures
from .measures import evenly_spaced

if TYPE_CHECKING:
    from .findings import Finding


ROLE_THRESHOLD = 0.35  # smallest share of the average row that names a head
SINK_THRESHOLD = 0.95  # share of the average row on the sink key from which a head counts as a sink head
SHARP_ENTROPY_BITS = 1.0  # cross-attention below this mean entropy attends to one word at a time
REPEATS = 3  # rows with an earlier copy of their token needed to call a head an induction head
MAX_CELLS = 1 << 18  # weights used to name the heads of one record; longer texts are sampled by rows
MIN_ROWS = 16  # sampled rows, however long the text

SHORT = 64  # up to this many tokens the opening edge may connect any two words
ROWS = 128  # longer texts: only the first query rows are searched, which a visitor reads first
OPENING_CELLS = 1 << 20  # weights of one record searched when a row needs all keys
MIN_OPENING_ROWS = 32
PAIR_DISTANCES = (16, 64)  # distance in tokens of an opening edge in a longer text
POSITIONAL_THRESHOLD = 0.15  # longer texts: heads with this share on the previous, next or same position are skipped


@dataclass(frozen=True)
class Role:
    """The role of a head, and the share of its average row that supports it (for "mixed": its largest share).

    The mean is over `rows` query rows, a sample in long texts. If a sink key was excluded, `rests` is the share on that
    key, over the rows that can see another key, and `share` refers to the remaining attention.
    """

    name: str
    share: float
    rows: int
    rests: float | None = None


@dataclass(frozen=True)
class OpeningEdge:
    """The attention edge of one site whose weight exceeds the head's baseline the most.

    weight is the attention weight from query to key, habit the baseline: the head's average weight for this distance or
    key. The search covered the first `rows` query rows.
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
    cells: int = MAX_CELLS,
    sink_key: int | None = None,
) -> tuple[Role, ...]:
    """The role of each head of one attention: where most of its average row goes, if that is at least 35 %.

    Roles: "one back" (previous token), "one ahead" (next token), "itself", "2–5 away" (either side, without special
    tokens), "same token" (other copies of the query token), "induction" (the token after an earlier copy, from three
    repeats), "punctuation", "rests on [CLS]" (or another special token); otherwise "mixed". "one back", "one ahead",
    "same token" and "induction" are averaged over the rows that have such a key, the others over all rows. A
    cross-attention head is "one word" if its mean entropy is below 1 bit (its share is the mean of the largest weights),
    otherwise "mixed". Padding counts neither as a row nor as a key.

    `queries` and `keys` come from Trace.tokens_of(). `pattern` [head, query, key] avoids recomputing the map; without
    it, long texts are sampled with evenly spaced rows, about `cells` weights in total and at least 16 rows.

    If `sink_key` is given (see core.read.measures.sink), that key is excluded and the role describes the remaining
    attention; a head with at least 95 % on it is "rests". The roles of cross-attention do not change.
    """
    rows = _sampled_rows(record, cells if pattern is None else None)
    parts = _role_cells(queries, keys, rows, record.site == "cross_attn")
    joint = JointPattern((record,), record.pattern(queries=rows) if pattern is None else pattern)
    return tuple(_named(joint, parts, sink_key))


def run_roles(
    trace: TraceRecord, patterns: Sequence[Tensor] | None = None, cells: int = MAX_CELLS, sink_key: int | None = None
) -> tuple[tuple[Role, ...], ...]:
    """roles() for every attention of a run, in forward order. Layers that have the same text are computed together.

    `sink_key` applies to all attentions, so it is meant for models with one stack: usually the first token of a decoder.
    """
    found: list[tuple[Role, ...]] = [()] * len(trace.attention)
    for chosen in _by_site(trace):
        records = [trace.attention[i] for i in chosen]
        rows = _sampled_rows(records[0], cells if patterns is None else None)
        parts = _role_cells(*trace.tokens_of(records[0]), rows, records[0].site == "cross_attn")
        each = iter(chosen)
        for joint in joint_patterns(records, rows, None if patterns is None else [patterns[i] for i in chosen]):
            of_heads = iter(_named(joint, parts, sink_key))
            for record in joint.records:
                found[next(each)] = tuple(islice(of_heads, record.n_heads))
    return tuple(found)


def opening_edges(
    trace: TraceRecord, patterns: Sequence[Tensor] | None = None, look: Finding | None = None
) -> tuple[OpeningEdge, ...]:
    """The attention edges on which a picture of this run opens, one per site (encoder, decoder, cross-attention).

    Chooses the edge with the largest weight − baseline between two words of the text. It excludes neighbours (the same
    or the next written word), special tokens, punctuation and repeats of the same word. The baseline is the head's
    average weight at that distance or on that key, whichever is larger (cross-attention: on that key), without the cell
    itself. Without it, heads that always attend to the previous token would win on every text.

    Longer texts (over 64 tokens) have so many edges that some always stand out. There the words must be 16 to 64 tokens
    apart and one token each, heads with a seventh of their attention on the previous, next or same token are skipped,
    and only the first 128 query rows are searched (32 in very long encoder texts). In texts of symbols every token
    counts as a word. If no edge remains, the strongest one between two non-adjacent tokens is used, then the strongest of
    all. If there are no weights (everything masked, or NaN), it is the first cell with weight 0.

    `patterns` are the complete maps [head, query, key] of trace.attention, if they are already available. `look` is the
    opening look of core.read.findings, which is the edge of its own site: nothing is searched there.
    """
    found = []
    for chosen in _by_site(trace):
        records = [trace.attention[i] for i in chosen]
        tokens = trace.tokens_of(records[0])
        if look is not None and (look.stack, look.site) == (records[0].stack, records[0].site):
            place = (look.stack, look.site, look.layer, look.head, look.query, look.key, look.weight)
            found.append(OpeningEdge(*place, habit=look.habit or 0.0, rows=_searched(records, *tokens)[0]))
        else:
            found.append(_opening_edge(records, *tokens, None if patterns is None else [patterns[i] for i in chosen]))
    return tuple(found)


def opening_edge_of(trace: TraceRecord, record: int, head: int) -> OpeningEdge:
    """The opening edge of one head. Raises IndexError if the head does not exist."""
    found = trace.attention[record]
    if not 0 <= head < found.n_heads:
        raise IndexError(f"head {head} of {found.n_heads}")
    return replace(_opening_edge([found], *trace.tokens_of(found), [found.pattern(head)]), head=head)


def is_punctuation(label: str) -> bool:
    """True if a token consists only of punctuation and symbols."""
    return bool(label) and all(unicodedata.category(char)[0] in "PS" for char in label)


def spaced_words(tokens: Tokens) -> list[int]:
    """[pos]: index of the word that each token belongs to. Words are separated by spaces; a special token is its own word.

    "didn't" is one word of three tokens. In Chinese and Japanese, which have no spaces, every character is a word. In a
    text without spaces every token is a word, except that the tokens of one character always belong together.
    """
    begins_word, begins_piece = [], []  # piece: a word if every token were one
    previous_end = -1
    for i, (start, stop) in enumerate(tokens.offsets):
        is_separate = tokens.special[i] or tokens.padding[i] or start == stop
        shares_character = not is_separate and start < previous_end
        continues = not is_separate and start == previous_end and not _begins_word(tokens.text, start)
        begins_word.append(i > 0 and not shares_character and not continues)
        begins_piece.append(i > 0 and not shares_character)
        previous_end = -1 if is_separate else stop
    words = list(accumulate(begins_word, initial=0))[1:]
    typed = {word for word, special in zip(words, tokens.special, strict=True) if not special}
    return list(accumulate(begins_piece, initial=0))[1:] if len(typed) == 1 else words


def _begins_word(text: str, at: int) -> bool:
    """True if a token that begins at this character does not continue the token before it."""
    return at == 0 or text[at].isspace() or is_ideograph(text[at]) or is_ideograph(text[at - 1])


def is_ideograph(char: str) -> bool:
    """True for Chinese and Japanese characters, which are written without spaces."""
    return "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff"


def words_of(tokens: Tokens, strict: bool, whole: bool) -> list[int]:
    """[pos]: word index of each token, −1 for tokens that an edge may not end on.

    These are special tokens and padding, with `strict` punctuation, and with `whole` parts of words.
    """
    words, labels = spaced_words(tokens), tokens.labels
    counts = [not (special or padding) for special, padding in zip(tokens.special, tokens.padding, strict=True)]
    if strict:
        spoken = [here and not is_punctuation(label) for here, label in zip(counts, labels, strict=True)]
        counts = spoken if any(spoken) else counts
    if whole:
        pieces: dict[int, int] = {}
        for word, here in zip(words, counts, strict=True):
            pieces[word] = pieces.get(word, 0) + here
        counts = [here and pieces[word] == 1 for word, here in zip(words, counts, strict=True)]
    return [word if here else -1 for word, here in zip(words, counts, strict=True)]


def label_numbers(tokens: Tokens, device: torch.device) -> Tensor:
    """[pos]: equal numbers for tokens with the same label, upper or lower case."""
    labels = [label.casefold() for label in tokens.labels]
    number = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    return torch.tensor([number[label] for label in labels], device=device)


def _by_site(trace: TraceRecord) -> list[list[int]]:
    """Indices of the attentions of each stack and site."""
    sites: dict[tuple[str, str], list[int]] = {}
    for i, record in enumerate(trace.attention):
        sites.setdefault((record.stack, record.site), []).append(i)
    return list(sites.values())


@dataclass(frozen=True, eq=False)
class _RoleCells:
    """Candidate roles, and the cells and rows that each is averaged over."""

    names: tuple[str, ...]
    cells: Tensor  # [part, row, key] bool
    counted: Tensor  # [part, row] bool
    rows: Tensor  # [row]: position of the query
    real: Tensor  # [row] bool: False for padding


def _sampled_rows(record: AttentionRecord, cells: int | None) -> Tensor:
    """All query rows, or evenly spaced ones that together have about `cells` weights."""
    n = record.n_query
    most = n if cells is None else max(MIN_ROWS, cells // (record.n_heads * record.n_key))
    return torch.tensor(evenly_spaced(n, most), device=record.device)


def _named(joint: JointPattern, parts: _RoleCells, sink_key: int | None) -> list[Role]:
    """The role of each head of records of one site, in the rows that the parts are of."""
    pattern, n_rows = joint.weights, int(parts.real.sum())
    if joint.records[0].site == "cross_attn":
        return _cross_roles(pattern[:, parts.real] if n_rows < len(parts.rows) else pattern)
    sink_shares: Sequence[float | None] = [None] * len(pattern)
    if sink_key is not None:
        sink_shares = _sink_shares(joint, parts, sink_key)
        pattern = pattern.index_fill(-1, torch.tensor([sink_key], device=pattern.device), 0.0)
    shares = measures.shares(pattern, parts.cells, parts.counted).nan_to_num(nan=0.0)  # [head, part]
    if sink_key is not None:  # relative to the remaining attention
        left = measures.shares(pattern, torch.ones_like(parts.cells), parts.counted).nan_to_num(nan=0.0)
        shares = shares / left.clamp(min=1e-12)
    best, which = (numbers.tolist() for numbers in shares.max(-1))
    found = []
    for share, part, sink_share in zip(best, which, sink_shares, strict=True):
        name = parts.names[part] if share >= ROLE_THRESHOLD else "mixed"
        name = "rests" if sink_share is not None and sink_share >= SINK_THRESHOLD else name
        found.append(Role(name, share, n_rows, sink_share))
    return found


def _sink_shares(joint: JointPattern, parts: _RoleCells, sink_key: int) -> list[float]:
    """Share of each head's attention on the sink key, over the rows that can see another key."""
    others = parts.real & (joint.records[0].mask(queries=parts.rows).sum(-1) > 1)
    return measures.sink_share(joint.weights, sink_key, others if others.any() else None).tolist()


def _role_cells(queries: Tokens, keys: Tokens, rows: Tensor, cross: bool) -> _RoleCells:
    device = rows.device
    real_rows = ~torch.tensor(queries.padding, device=device)[rows]
    if cross:
        return _RoleCells((), torch.empty(0), torch.empty(0), rows, real_rows)
    ahead = torch.arange(len(keys), device=device) - rows[:, None]
    special = [i for i, is_special in enumerate(keys.special) if is_special]
    real = ~torch.tensor(keys.padding, device=device) & real_rows[:, None]
    repeats = measures.induction_cells(keys.ids, rows) & real
    # role -> (cells that count, True: average over all rows, False: over rows that have such a cell)
    parts = {
        "one back": (ahead == -1, False),
        "one ahead": (ahead == 1, False),
        "itself": (ahead == 0, True),
        "2–5 away": (measures.near_cells(rows, len(keys), special), True),
        "same token": (measures.same_cells(keys.ids, rows), False),
    }
    if int(repeats.any(-1).sum()) >= REPEATS:
        parts["induction"] = (repeats, False)
    for name, at in _named_columns(keys, special).items():
        cells = torch.zeros_like(real)
        cells[:, at] = True
        parts[name] = (cells, True)
    cells = torch.stack([cells & real for cells, _ in parts.values()])
    counted = torch.stack([real_rows if whole else (cells & real).any(-1) for cells, whole in parts.values()])
    return _RoleCells(tuple(parts), cells, counted, rows, real_rows)


def _named_columns(keys: Tokens, special: Sequence[int]) -> dict[str, list[int]]:
    """The keys of the roles that are named after their keys: punctuation and special tokens."""
    labels, found = keys.labels, dict[str, list[int]]()
    marks = [i for i in range(len(keys)) if not keys.special[i] and is_punctuation(labels[i])]
    if marks and len(marks) + len(special) < len(keys):  # if every token is punctuation, the role is meaningless
        found["punctuation"] = marks
    for label in dict.fromkeys(labels[i] for i in special if not keys.padding[i]):
        found[f"rests on {label}"] = [i for i in special if labels[i] == label]
    return found


def _cross_roles(pattern: Tensor) -> list[Role]:
    sees = pattern.sum(-1) > 0
    n = sees.sum(-1).clamp(min=1)
    bits = (measures.entropy(pattern) * sees).sum(-1) / n
    largest = pattern.amax(-1).sum(-1) / n
    return [
        Role("one word" if b < SHARP_ENTROPY_BITS else "mixed", share, pattern.shape[1])
        for b, share in zip(bits.tolist(), largest.tolist(), strict=True)
    ]


def _searched(records: Sequence[AttentionRecord], queries: Tokens, keys: Tokens) -> tuple[int, int]:
    """The numbers of query rows and of keys, from the first on, among which the opening edge is searched."""
    n_rows, n_keys = len(queries), len(keys)
    if max(n_rows, n_keys) <= SHORT:
        return n_rows, n_keys
    n_rows = min(n_rows, ROWS)
    if records[0].site != "cross_attn" and not any(_sees_later_keys(record, n_rows) for record in records):
        n_keys = n_rows
    if n_keys == len(keys):
        n_rows = min(n_rows, max(MIN_OPENING_ROWS, OPENING_CELLS // (records[0].n_heads * n_keys)))
    return n_rows, n_keys


def _sees_later_keys(record: AttentionRecord, n_rows: int) -> bool:
    """True if the first rows can attend to later keys, or are normalised over masked later keys."""
    rule, device = record.rule, record.device
    rows, later = torch.arange(n_rows, device=device), torch.arange(n_rows, record.n_key, device=device)
    return not rule.is_fused or bool(rule.mask.block(rows, later).any())


def _opening_edge(
    records: Sequence[AttentionRecord], queries: Tokens, keys: Tokens, patterns: Sequence[Tensor] | None
) -> OpeningEdge:
    """The opening edge of the records of one site, which share queries and keys."""
    cross, device = records[0].site == "cross_attn", records[0].device
    n_rows, n_keys = _searched(records, queries, keys)
    real_rows, real_keys = (~torch.tensor(tokens.padding, device=device) for tokens in (queries, keys))
    real = real_rows[:n_rows, None] & real_keys[:n_keys]
    maps = _searched_maps(records, patterns, n_rows, n_keys)
    maps = maps if real.all() else [weights * real for weights in maps]
    skip_positional = max(len(queries), len(keys)) > SHORT and not cross
    candidates = ((_candidate_cells(queries, keys, real, cross, strict), skip_positional) for strict in (True, False))
    searches = (_most_unusual(maps, cells, real, cross, skip) for cells, skip in chain(candidates, [(real, False)]))
    # Without any weight (everything masked, or NaN) the picture opens on the first cell.
    at, query, key, weight, habit = next((found for found in searches if found), (0, 0, 0, 0.0, 0.0))
    record, head = [(record, head) for record in records for head in range(record.n_heads)][at]
    assert record.layer is not None  # always set in a run
    return OpeningEdge(record.stack, record.site, record.layer, head, query, key, weight, habit, n_rows)


def _searched_maps(
    records: Sequence[AttentionRecord], patterns: Sequence[Tensor] | None, n_rows: int, n_keys: int
) -> list[Tensor]:
    """The weights of the first rows and keys, [head, row, key], of the records together where they are small."""
    rows = None
    if patterns is not None:
        patterns = [pattern[:, :n_rows, :n_keys] for pattern in patterns]
    elif n_keys < records[0].n_key:
        patterns = [_first_weights(record, n_rows, n_keys) for record in records]
    else:
        rows = torch.arange(n_rows, device=records[0].device)
    return [joint.weights for joint in joint_patterns(records, rows, patterns)]


def _first_weights(record: AttentionRecord, n_rows: int, n_keys: int) -> Tensor:
    """[head, row, key] of the first rows and keys, if later keys are masked for these rows."""
    rows, keys = (torch.arange(n, device=record.device) for n in (n_rows, n_keys))
    if record.replaced_pattern is not None or record.replaced_scores is not None:
        return record.pattern(queries=rows, keys=keys)
    # Later keys are masked, so the softmax over these keys equals the full row.
    q, k = record.q[None, :, :n_rows].to(rows.device).float(), record.k[None, :, :n_keys].to(rows.device).float()
    masked = record.rule.masked(record.rule.scores(q, k, rows, keys), rows, keys)
    return record.rule.pattern(masked, rows, keys)[0]


def _candidate_cells(queries: Tokens, keys: Tokens, real: Tensor, cross: bool, strict: bool) -> Tensor:
    """[query, key] bool: candidate cells for the opening edge, in the shape of `real`.

    Not `strict`: any two non-adjacent words.
    """
    (n_rows, n_keys), device = real.shape, real.device
    long = max(len(queries), len(keys)) > SHORT and not cross
    rows, columns = (
        torch.tensor(words_of(tokens, strict, strict and long), device=device) for tokens in (queries, keys)
    )
    cells = (rows[:n_rows, None] >= 0) & (columns[:n_keys] >= 0)
    if cross:
        return cells
    away = (torch.arange(n_rows, device=device)[:, None] - torch.arange(n_keys, device=device)).abs()
    cells = cells & (away > 1)
    if not strict:
        return cells
    same = label_numbers(keys, device)
    cells = cells & ((rows[:n_rows, None] - columns[:n_keys]).abs() > 1) & (same[:n_rows, None] != same[:n_keys])
    return cells & (away >= PAIR_DISTANCES[0]) & (away <= PAIR_DISTANCES[1]) if long else cells


def _most_unusual(
    maps: Sequence[Tensor], cells: Tensor, real: Tensor, cross: bool, skip_positional: bool
) -> tuple[int, int, int, float, float] | None:
    """(head of all maps, query, key, weight, baseline) of the cell with the largest weight − baseline.

    None if all weights are 0. The maps are [head, query, key].
    """
    best, least, first_head = None, 0.0, 0
    count = _totals(real[None].float(), cross)[0]  # number of cells in each mean
    for pattern in maps:
        first_head += len(pattern)
        possible = pattern * cells
        if skip_positional:
            nearby = [torch.diagonal(pattern, offset, -2, -1).mean(-1) for offset in (-1, 0, 1)]
            possible = possible * (torch.stack(nearby).amax(0) < POSITIONAL_THRESHOLD)[:, None, None]
        # A baseline is never negative, so only weights above the best difference so far can win.
        head, query, key = (possible > least).nonzero().unbind(-1)
        if not len(head):
            continue
        where = key if cross else key - query + pattern.shape[-2] - 1
        weight = pattern[head, query, key]
        baseline = (_totals(pattern, cross)[head, where] - weight) / (count[where] - 1).clamp(min=1)
        if not cross:  # a key that every query attends to is an attention sink, not an edge between two words
            others = ((pattern > 0).sum(-2)[head, key] - 1).clamp(min=1)  # other queries that see the key
            baseline = torch.maximum(baseline, (pattern.sum(-2)[head, key] - weight) / others)
        most, at = (weight - baseline).max(0)
        if most > least:
            least = float(most)
            at_head = first_head - len(pattern) + int(head[at])
            best = (at_head, int(query[at]), int(key[at]), float(weight[at]), max(0.0, float(baseline[at])))
    return best


def _totals(pattern: Tensor, cross: bool) -> Tensor:
    """Sums per key [head, key] (cross-attention) or per distance [head, query + key − 1], most distant first."""
    if cross:
        return pattern.sum(-2)
    heads, n_query, n_key = pattern.shape
    # With a margin of n_query columns, the diagonals of the map are the columns of a view whose row stride is one larger.
    wide = pattern.new_zeros(heads, n_query + 1, n_query + n_key)
    wide[:, :n_query, n_query:] = pattern
    strides = (wide.stride(0), n_query + n_key + 1, 1)
    return wide.as_strided((heads, n_query, n_query + n_key - 1), strides, storage_offset=1).sum(-2)


COMMON = 300  # common words of a small vocabulary
SHARE = 64  # a large vocabulary has one common word for this many pieces
COMMONEST = 5  # one in this many common words is among the commonest: nearly all articles, and few nouns
LONG = 4  # letters from which a word is long
LONGER = 5  # letters from which it is hardly ever an article, a preposition or an auxiliary, whatever the language

_known: WeakKeyDictionary[Loaded, tuple[str, ...]] = WeakKeyDictionary()  # the commonest first


def common_words(loaded: Loaded, one_in: int = 1) -> frozenset[str]:
    """The common words in lower case, or the first one in so many of them; none without a tokenizer.

    In a vocabulary that is not ordered by frequency these are arbitrary words.
    """
    if loaded.tokenizer is None:
        return frozenset()
    found = _known.get(loaded)
    if found is None:
        words = (word.casefold() for word in _words(loaded))
        found = _known[loaded] = tuple(islice(_distinct(words), max(COMMON, loaded.config.vocab_size // SHARE)))
    return frozenset(found[: len(found) // one_in])


def are_common(loaded: Loaded, tokens: Tokens, one_in: int = 1) -> list[bool]:
    """[pos]: True for tokens that are common words."""
    words, labels = common_words(loaded, one_in), tokens.labels
    # A byte-level vocabulary has only the commonest Chinese characters whole, such as 的, and the others in parts.
    has_parts = any(is_ideograph(label[0]) and label[1:2] == " " for label in labels if label)
    whole = [has_parts and len(label) == 1 and is_ideograph(label) for label in labels]
    return [is_whole or label.casefold() in words for is_whole, label in zip(whole, labels, strict=True)]


def are_long(tokens: Tokens, least: int = LONG) -> list[bool]:
    """[pos]: True for tokens with so many letters. Short words are less informative (Piantadosi et al. 2011, "Word lengths are
    optimized for efficient communication")."""
    return [sum(map(str.isalpha, label)) >= least for label in tokens.labels]


def _distinct(words: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for word in words:
        if word not in seen:
            seen.add(word)
            yield word


def _words(loaded: Loaded) -> Iterator[str]:
    """The pieces that begin a word and consist of letters, lowest id first."""
    assert loaded.tokenizer is not None
    pieces = [(i, loaded.tokenizer.id_to_token(i) or "") for i in range(loaded.tokenizer.get_vocab_size())]
    signs = tuple(sign for group in SPACE_SIGNS for sign in group)
    if not any(text.startswith(signs) for _, text in pieces):  # WordPiece marks what continues a word instead
        yield from (text for _, text in pieces if len(text) > 1 and text.isalpha())  # it lists single letters first
        return
    for i, text in pieces:
        if text.startswith(signs) and text[1:].isalpha():
            (label,) = labels_of(loaded, [i])  # a byte-level piece spells ü with other letters
            if label.isalpha():
                yield label
