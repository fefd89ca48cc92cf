"""Findings of a run: single looks and heads that are worth opening a picture on, each of another kind, each by a rule."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from ..errors import Refused
from ..model.text import Tokens
from ..run.attention import AttentionRecord
from ..run.patterns import patterns_of
from ..run.predictions import labels_of
from ..run.trace import Trace
from . import measures
from .common_words import COMMONEST, LONGER, are_common, are_long
from .directions import Asked, Site, asked, has_looks, likeliest_tokens, records_of, site_of
from .head_roles import OpeningLink, is_ideograph, openings, spaced_words, words_of
from .looks import Looked, each_look
from .ragged import stacked
from .spaced_rows import spread

Kind = Literal[
    "writes",
    "stands out",
    "largest push",
    "votes against",
    "after a repeat",
    "same word",
    "one back",
    "one ahead",
    "one word",
    "rests",
]

PUSHES: tuple[Kind, ...] = ("writes", "largest push", "votes against")
WRITES_FROM = 0.4  # logits that a look must add to open a picture
OTHERS = 20  # likeliest words after the first, whose mean says how far a look raises all words alike
TIMES = 3  # that it must add of that mean
COPY_WEIGHT = 0.1  # of a head's attention: less is hardly a look
STANDS_OUT_FROM = 0.2  # of a weight, beyond the head's habit
TIER = 100.0  # more than any score: a look of a higher tier comes first
TELLS = 9  # tier, from which a look is at a long word that is not common
SCRAP = 3  # letters, from which a piece of a word can be told
AGAINST_FROM = -0.25  # logits
AGAINST_WEIGHT = 0.2
REPEAT_FROM = 0.35  # of a weight, beyond the head's habit
ONE_BACK_FROM = 0.5  # of the mean weight on the word before
NEIGHBOURS: dict[Kind, int] = {"one back": -1, "one ahead": 1}  # kind -> how far ahead the key is
REPEATS: tuple[Kind, ...] = ("after a repeat", "same word")
MEANS: dict[Kind, float] = {  # kinds that are judged by a head's mean, and the least of it
    "one back": ONE_BACK_FROM,
    "one ahead": ONE_BACK_FROM,
    "one word": -math.inf,
    "rests": -math.inf,
}
CELLS = 1 << 20  # weights of one attention that are looked at: all of them up to some 300 tokens of 9 heads
FEWEST_ROWS = 16
MAX_OPENING_WEIGHTS = 4_000_000  # larger runs open on their first head instead of searching for the best one
LAST_ROWS = 8  # that are looked at in any case: nearest to the next word


@dataclass(frozen=True)
class Finding:
    """One look of one head, and its kind: the reason for showing it.

    addition is what the look adds to the logit of `token`, the likeliest word after the query, in logits (core.looks); None where
    the model predicts no words. habit is what the head gives at that distance in other rows (of a repeat: or to that key), mean
    its average over rows of what the kind is about: the weight on the word before or after, the weight that rests, or bits.
    """

    kind: Kind
    stack: str
    site: Site
    layer: int
    head: int
    query: int
    key: int
    weight: float
    addition: float | None = None
    habit: float | None = None
    mean: float | None = None
    token: int | None = None
    word: str = ""  # the token's label


def opening_look(run: Trace) -> Finding:
    """The look that a picture of this run opens on.

    Of a decoder, from the last word, over all heads and earlier words but the first: the largest weight × (what the look adds to
    the logit of the likeliest next word − the mean of what it adds to the 20 next likeliest), of those that add 0.4 or more, and
    three times that mean ("writes"). Punctuation does not count, neither at the key nor as the next word, nor do one or two
    letters of a longer word, nor a common word just before. Else the look of any row that stands out most: (weight − what the
    head gives at that distance in other rows) · log₂(1 + distance), from 20 % beyond that habit on, and two or more apart.
    Looks that say more come first (core.read.common_words): between whole words that are not the same, at a long word that is
    not common, of five letters, then of four; the same at a long piece of a word. Where no such word is looked at, a decoder's
    look from any row at an earlier copy of the very word that is likeliest there, by the first rule ("writes"). Then looks at a
    short word; from anywhere at a long word that is not common, at three letters or more that are none, at a long word that is
    none of the commonest; at a long word just before; and last at anything else that was typed. Of an encoder: the same between
    words that are no neighbours, without the factor of distance; of one word or two, at what was typed. Of an encoder–decoder:
    the first rule in cross-attention, over all rows of the target that are followed by a word: at long words that are none of
    the commonest, else at long ones, else at any; else what stands out most from what other rows give to that word.
    Where all this leaves nothing, the largest weight × addition.
    """
    return _described(run, [_opening(run, _pushes(run, ("writes",)), None)])[0]


def opening_head(run: Trace) -> tuple[int, int]:
    """(record index, head) of the most informative head; (0, 0) if the run is too large to search or not finite."""
    weights = sum(record.n_heads * record.n_query * record.n_key for record in run.records)
    if weights > MAX_OPENING_WEIGHTS or run.texts > 1 or run.non_finite is not None:
        return 0, 0
    try:
        finding = opening_look(run)
    except Refused:  # the model has been trained since
        return 0, 0
    places = [(record.stack, record.site, record.layer) for record in run.attention]
    place = finding.stack, finding.site, finding.layer
    return places.index(place) if place in places else 0, finding.head


def findings(run: Trace) -> tuple[Finding, ...]:
    """The opening look, and the next best of other kinds, each of another head: see Finding.

    "writes", or else "stands out" and "largest push" (the first rule's look, though it adds little). "votes against": of the looks
    from the last word with 20 % or more the smallest weight × addition, from −0.25 on. "after a repeat", "same word": the
    largest look at what followed an earlier copy of a word, or at the copy, beyond the larger of what the head gives to that
    key and at that distance elsewhere, from 35 % on. "one back" (for encoders "one ahead" too): the largest mean weight on the
    word before, from 50 % on. "one word" (cross-attention): the least mean entropy. "rests": the largest mean weight on the first
    token, or on special ones. Of long texts some rows are looked at, and always the last ones.
    """
    pushes, habits = _pushes(run), _habits(run)
    found = [_opening(run, pushes, habits)]
    used = {(found[0].layer, found[0].head)}

    def take(*candidates: Finding | None) -> None:
        """The best of these, if there is one."""
        here = [candidate for candidate in candidates if candidate is not None]
        if here:
            found.append(max(here, key=lambda candidate: candidate.weight - (candidate.habit or 0)))
            used.add((found[-1].layer, found[-1].head))

    if pushes is not None:
        if found[0].kind == "stands out":
            take(pushes["largest push"].best(used))
        take(pushes["votes against"].best(used))
    repeats = [habits[kind].best(used, REPEAT_FROM) for kind in REPEATS if kind in habits]
    take(*repeats)
    for kind, least in MEANS.items():
        if kind in habits and habits[kind].scores:
            take(habits[kind].best(used, least))
    return tuple(_described(run, found))


def opened(links: Sequence[OpeningLink], found: Finding) -> tuple[OpeningLink, ...]:
    """The links that head_roles.openings() gives, and in the place of the finding's kind of attention the look of the finding."""
    return tuple(
        replace(
            link,
            layer=found.layer,
            head=found.head,
            query=found.query,
            key=found.key,
            weight=found.weight,
            habit=found.habit or 0.0,
        )
        if (link.stack, link.site) == (found.stack, found.site)
        else link
        for link in links
    )


@dataclass(frozen=True, eq=False)
class _Best:
    """The best look of every head of one attention: numbers of a tensor each, [head]."""

    record: AttentionRecord
    query: Tensor
    key: Tensor
    weight: Tensor
    numbers: dict[str, Tensor]  # what else a Finding says of them: habit, addition, mean
    said: Sequence[tuple[int, str]]  # of every row: the token that is likeliest there, and its label
    row: Tensor

    def finding(self, kind: Kind, head: int) -> Finding:
        record = self.record
        site: Site = "cross_attn" if record.site == "cross_attn" else "attn"
        query, key, weight = int(self.query[head]), int(self.key[head]), float(self.weight[head])
        token, word = self.said[int(self.row[head])] if self.said else (None, "")
        numbers = {name: float(values[head]) for name, values in self.numbers.items()}
        place = (kind, record.stack, site, record.layer or 0, head, query, key, weight)
        return Finding(*place, **numbers, token=token, word=word)


@dataclass
class _Candidates:
    """The best look of every head by one score, layer after layer."""

    kind: Kind
    scores: list[Tensor] = field(default_factory=list)  # [head] each, -inf where there is none
    found: list[_Best] = field(default_factory=list)

    def best(self, used: Collection[tuple[int, int]], least: float = -math.inf) -> Finding | None:
        """That of the largest score above `least`, of a head that is not used yet."""
        scores = stacked(self.scores, -math.inf).clone()  # [layer, head]
        for layer, found in enumerate(self.found):
            for head in (head for place, head in used if place == (found.record.layer or 0)):
                scores[layer, head] = -math.inf
        layer, head = divmod(int(scores.argmax()), scores.shape[1])
        return self.found[layer].finding(self.kind, head) if float(scores[layer, head]) > least else None

    def add(
        self,
        seen: _Seen,
        score: Tensor,
        habit: Tensor | None = None,
        additions: Tensor | None = None,
        said: Sequence[tuple[int, str]] = (),
    ) -> None:
        """The next layers', by a score of every cell, [head, row, key]: -inf where a cell does not count."""
        best, at = score.flatten(1).max(-1)
        row, key = at // score.shape[-1], at % score.shape[-1]
        every = torch.arange(len(score), device=score.device)
        known = {"habit": habit, "addition": additions}
        numbers = {name: x[every, row, key].cpu() for name, x in known.items() if x is not None}
        self._put(seen, best, (row, key), numbers, said)

    def add_means(self, seen: _Seen, means: Tensor, cells: Sequence[tuple[int, int]], sign: int = 1) -> None:
        """The next layers', by a mean over rows of each head, [head], times `sign`; cells are the (row, key) of each to be shown."""
        row, key = torch.tensor(cells, device=means.device).unbind(-1)
        self._put(seen, means * sign, (row, key), {"mean": means.cpu()})

    def _put(
        self,
        seen: _Seen,
        score: Tensor,
        cells: tuple[Tensor, Tensor],
        numbers: dict[str, Tensor],
        said: Sequence[tuple[int, str]] = (),
    ) -> None:
        row, key = cells
        weight = seen.weights[torch.arange(len(score), device=score.device), row, key].cpu()
        score, query, row, key = score.cpu(), seen.rows[row].cpu(), row.cpu(), key.cpu()
        end = 0
        for record in seen.records:
            start, end = end, end + record.n_heads
            of_layer = slice(start, end)
            own = {name: x[of_layer] for name, x in numbers.items()}
            places = query[of_layer], key[of_layer], weight[of_layer]
            self.scores.append(score[of_layer])
            self.found.append(_Best(record, *places, own, said, row[of_layer]))


@dataclass(frozen=True, eq=False)
class _Seen:
    """Some layers' attention in some of its rows [row]: weights [head, row, key], the heads of one layer after the other."""

    records: Sequence[AttentionRecord]
    rows: Tensor
    weights: Tensor


def _layers(records: Sequence[AttentionRecord], rows: Tensor) -> Iterator[_Seen]:
    """Attentions in these rows: layers with the same mask together, up to CELLS weights, since most of a small one is its calls."""
    together: list[tuple[AttentionRecord, Tensor]] = []

    def seen() -> _Seen:
        some, weights = zip(*together, strict=True)
        together.clear()
        return _Seen(some, rows, torch.cat(weights))

    for record, weights in zip(records, patterns_of(records, rows), strict=True):
        held = sum(x.numel() for _, x in together) + weights.numel()
        if together and (held > CELLS or together[0][0].batch_rule.mask is not record.batch_rule.mask):
            yield seen()
        together.append((record, weights))
    if together:
        yield seen()


@dataclass(frozen=True, eq=False)
class _Texts:
    """The tokens that look and those that are looked at, and which of them count: [query] and [key] bool."""

    queries: Tokens
    keys: Tokens
    real_queries: Tensor  # no padding
    real_keys: Tensor
    rests: Tensor  # keys where attention rests: the first of a decoder's, else special tokens

    @classmethod
    def of(cls, run: Trace) -> _Texts:
        record = _records(run)[0]
        queries, keys = run.tokens_of(record)
        real_queries, real = (~torch.tensor(tokens.padding, device=record.device) for tokens in (queries, keys))
        rests = torch.tensor(keys.special, device=record.device) & real
        if run.config.kind == "decoder":  # where no token is special, and the first one the place to rest
            rests = torch.zeros_like(rests)
            rests[int(real.int().argmax())] = True
        return cls(queries, keys, real_queries, real, rests)

    def rows(self, record: AttentionRecord, cells: int = CELLS) -> Tensor:
        """All real rows, or as many as make up so many weights: evenly spaced ones and the last."""
        rows = self.real_queries.nonzero()[:, 0]
        most = max(FEWEST_ROWS, cells // (record.n_heads * record.n_key))
        return rows[spread(len(rows), most, range(len(rows) - LAST_ROWS, len(rows)))]


def _records(run: Trace) -> tuple[AttentionRecord, ...]:
    """The attentions that findings are about: the last stack's, and of an encoder–decoder cross-attention."""
    return records_of(run, None)


def _opening(run: Trace, pushes: dict[Kind, _Candidates] | None, habits: dict[Kind, _Candidates] | None) -> Finding:
    found = None if pushes is None else pushes["writes"].best(())
    if found is not None and _is_word(found.word):
        return found
    if run.config.kind != "encoder-decoder":
        habits = habits or _habits(run, ("stands out",))
        found = habits["stands out"].best((), TELLS * TIER)
        if found is None and pushes is not None:  # no long word is looked at that is not common
            found = _copies(run).best(())
        found = found or habits["stands out"].best((), TIER) or (None if pushes is None else pushes["writes"].best(()))
    elif found is None and pushes is not None:
        found = pushes["stands out"].best((), TIER)
    if found is None and pushes is not None:
        every = pushes if "largest push" in pushes else _pushes(run)
        found = None if every is None else every["largest push"].best(())
    if found is None and habits is not None and "stands out" in habits:  # which is not asked of cross-attention
        found = habits["stands out"].best((), 0)
    if found is not None:
        return found
    kind = _records(run)[0].stack, site_of(run, None)
    link = next(link for link in openings(run) if (link.stack, link.site) == kind)
    return Finding("stands out", *kind, link.layer, link.head, link.query, link.key, link.weight, habit=link.habit)


def _is_word(label: str) -> bool:
    """Whether a token that is written is no punctuation, space or part of a character."""
    return any(map(str.isalnum, label))


def _pushes(run: Trace, kinds: Collection[Kind] = PUSHES) -> dict[Kind, _Candidates] | None:
    """These kinds, by what looks add, from the last word, or in cross-attention from every word, and there by how they stand out too; None for a
    model whose logits say nothing of single looks."""
    if not has_looks(run):
        return None
    texts, record = _Texts.of(run), _records(run)[0]
    cross = record.site == "cross_attn"
    rows = texts.rows(record) if cross else texts.real_queries.nonzero()[-1]
    cells = _pushing(texts, rows, cross)
    next_words = _NextWords.of(run, rows)
    said = next_words.said
    telling = cells * _telling(run, texts, rows, cross)
    outstanding = telling
    spoken = torch.tensor([_is_word(word) for _, word in said], device=rows.device)
    telling = telling * (spoken[:, None] | ~spoken.any())
    found: dict[Kind, _Candidates] = {kind: _Candidates(kind) for kind in PUSHES if kind in kinds}
    if cross:
        found["stands out"] = _Candidates("stands out")

    def take(seen: _Seen, added: Tensor, others: Tensor) -> None:
        product = seen.weights * added
        counts = cells & (seen.weights > 0) & ~added.isnan()
        if "writes" in found:
            score = seen.weights * (added - others) + TIER * telling
            writes = (telling > 0) & _raises(added, others)
            found["writes"].add(seen, score.where(writes, -math.inf), additions=added, said=said)
        if "largest push" in found:
            found["largest push"].add(seen, product.where(counts, -math.inf), additions=added, said=said)
        if "votes against" in found:
            against = counts & (seen.weights >= AGAINST_WEIGHT) & (added <= AGAINST_FROM)
            found["votes against"].add(seen, (-product).where(against, -math.inf), additions=added, said=said)
        if cross:
            habit = _to_key(seen.weights, torch.ones_like(cells))
            beyond = seen.weights - habit
            score = (beyond + TIER * outstanding).where((outstanding > 0) & (beyond >= STANDS_OUT_FROM), -math.inf)
            found["stands out"].add(seen, score, habit, added, said)

    next_words.each(take)
    return found


def _copies(run: Trace) -> _Candidates:
    """A decoder's looks at a copy of the very word that is likeliest next, from any row, as "writes": whole characters alone."""
    texts = _Texts.of(run)
    rows = texts.rows(_records(run)[0], CELLS // 2)  # each is asked for two numbers of a look
    next_words = _NextWords.of(run, rows)
    tokens, device = texts.keys, rows.device
    written = torch.tensor([token if _is_word(word) else -1 for token, word in next_words.said], device=device)
    words = torch.tensor(spaced_words(tokens), device=device)
    apart = (rows[:, None] - torch.arange(len(tokens), device=device) > 1) & (words[rows][:, None] != words)
    cells = apart & (written[:, None] == torch.as_tensor(tokens.ids, device=device)) & texts.real_keys & ~texts.rests
    found = _Candidates("writes")

    def take(seen: _Seen, added: Tensor, others: Tensor) -> None:
        copies = cells & _raises(added, others) & (seen.weights >= COPY_WEIGHT)
        score = seen.weights * (added - others)
        found.add(seen, score.where(copies, -math.inf), additions=added, said=next_words.said)

    next_words.each(take)
    return found


def _raises(added: Tensor, others: Tensor) -> Tensor:
    """Whether a look adds enough to the likeliest word, and more to it than to other likely ones."""
    return (added >= WRITES_FROM) & (added >= TIMES * others)


@dataclass(frozen=True, eq=False)
class _NextWords:
    """The likeliest words after some rows: of each row the first of them, `said`, and the others."""

    run: Trace
    rows: Tensor
    tokens: tuple[tuple[int, ...], ...]  # of each row the first, then of each row the others
    said: Sequence[tuple[int, str]]

    @classmethod
    def of(cls, run: Trace, rows: Tensor) -> _NextWords:
        words = likeliest_tokens(run, rows.tolist(), 1 + OTHERS)
        first = [word[0] for word in words]
        tokens = (*(word[:1] for word in words), *(word[1:] for word in words))
        return cls(run, rows, tokens, list(zip(first, labels_of(run.loaded, first), strict=True)))

    def each(self, take: Callable[[_Seen, Tensor, Tensor], None]) -> None:
        """take(seen, added, others) of all layers, small ones together: what each look adds to the first, and to the mean of the others,
        [head, row, key]."""
        n, positions = len(self.rows), self.rows.tolist()
        together: list[Looked] = []

        def take_these() -> None:
            weights = torch.cat([found.weights[:, :n] for found in together])
            added, others = torch.cat([found.additions for found in together]).split(n, 1)
            take(_Seen([found.record for found in together], self.rows, weights), added, others)
            together.clear()

        def looked(found: Looked) -> None:
            if together and sum(one.weights.numel() for one in together) + found.weights.numel() > CELLS:
                take_these()
            together.append(found)

        each_look(Asked(self.run, site_of(self.run, None), (*positions, *positions), self.tokens), looked)
        take_these()


def _pushing(texts: _Texts, rows: Tensor, cross: bool) -> Tensor:
    """[row, key] bool: the looks that are judged by what they add. Where a text leaves none, all but the word itself, then all."""
    real = texts.real_keys.expand(len(rows), -1)
    special = torch.tensor(texts.keys.special, device=rows.device)
    other = real if cross else real & (torch.arange(real.shape[1], device=rows.device) != rows[:, None])
    return next(cells for cells in (other & ~texts.rests & ~special, other, real) if cells.any() or cells is real)


def _telling(run: Trace, texts: _Texts, rows: Tensor, cross: bool) -> Tensor:
    """[row, key]: 0 for looks that may not open as "writes": at punctuation where there are words, and of a decoder at one or two
    letters of a word and at a common word just before the query. Else, of a text to be translated, 3 at a long word that is none
    of the commonest, 2 at another long word, and 1."""
    tokens, device = texts.keys, rows.device
    spoken = torch.tensor(words_of(tokens, True, False), device=device) >= 0
    if cross:
        rare = ~torch.tensor(are_common(run.loaded, tokens, COMMONEST), device=device)
        long = torch.tensor(are_long(tokens), device=device)
        return (spoken * (1 + long + (long & rare).int())).expand(len(rows), -1)
    letters = [scrap and piece.isalpha() for scrap, piece in zip(_scraps(tokens), _typed(tokens), strict=True)]
    spoken = spoken & ~torch.tensor(letters, device=device)
    common = torch.tensor(are_common(run.loaded, tokens), device=device)
    before = torch.arange(len(tokens), device=device) == rows[:, None] - 1
    return (spoken & ~(before & common)).int()


def _scraps(tokens: Tokens) -> list[bool]:
    """[pos]: whether a token is one or two letters or digits of a longer word."""
    whole = words_of(tokens, True, True)
    return [
        len(piece) < SCRAP and piece.isalnum() and word < 0 and not is_ideograph(piece[0])
        for piece, word in zip(_typed(tokens), whole, strict=True)
    ]


def _typed(tokens: Tokens) -> list[str]:
    """[pos]: the characters that each token stands for, whole where it is a part of one, without spaces around them."""
    return [tokens.text[start:stop].strip() for start, stop in tokens.offsets]


def _habits(run: Trace, kinds: Collection[Kind] | None = None) -> dict[Kind, _Candidates]:
    """All that is judged by where a head looks, from its rows, or these kinds of it."""
    texts, records = _Texts.of(run), _records(run)
    of_kind: dict[str, tuple[Kind, ...]] = {
        "decoder": ("stands out", *REPEATS, "one back"),
        "encoder": ("stands out", "one back", "one ahead"),
        "encoder-decoder": ("one word",),
    }
    known = (*of_kind[run.config.kind], "rests") if texts.rests.any() else of_kind[run.config.kind]
    found: dict[Kind, _Candidates] = {kind: _Candidates(kind) for kind in known if kinds is None or kind in kinds}
    rows = texts.rows(records[0])
    spoken = (
        rows if run.config.kind != "encoder" else rows[~texts.rests[rows]]
    )  # of an encoder a mean is over its words
    links = _repeats(texts, rows) if "stands out" in found else {}
    tiers = _tiers(run, texts, rows)
    back = rows[:, None] - torch.arange(len(texts.keys), device=rows.device)  # [row, key]
    counted = texts.real_keys.expand(back.shape)
    if run.config.kind == "decoder":
        counted = counted & ~texts.rests & (back >= 0)
    for seen in _layers(records, rows):
        if links:
            by_distance, by_key = _elsewhere(seen.weights, back, counted)
            beyond = seen.weights - by_distance
            score = beyond if run.config.kind == "encoder" else beyond * torch.log2(1 + back.abs().float())
            score = score + TIER * tiers * (beyond >= STANDS_OUT_FROM)
            found["stands out"].add(seen, score.where((tiers > 0) & (seen.weights > 0), -math.inf), by_distance)
            habit = torch.maximum(by_distance, by_key)
            for kind in REPEATS:
                if kind in found:
                    found[kind].add(seen, (seen.weights - habit).where(links[kind], -math.inf), habit)
        if len(spoken) < len(rows):
            seen = _Seen(seen.records, spoken, seen.weights[:, ~texts.rests[rows]])
        for kind, ahead in NEIGHBOURS.items():
            if kind in found:
                found[kind].add_means(seen, *_next_to(seen, texts, ahead))
        if "one word" in found:
            sees = seen.weights.sum(-1) > 0
            bits = (measures.entropy(seen.weights) * sees).sum(-1) / sees.sum(-1).clamp(min=1)
            found["one word"].add_means(seen, bits, _largest(seen.weights * ~texts.rests), -1)
        if "rests" in found:
            found["rests"].add_means(seen, *_resting(seen, texts))
    return found


def _tiers(run: Trace, texts: _Texts, rows: Tensor) -> Tensor:
    """[row, key]: 0 for looks that may not stand out, else how much the words say: the rule of opening_look, from the last of its
    kinds, 1, up."""
    tokens, device = texts.keys, rows.device
    labels = [label.casefold() for label in tokens.labels]
    number = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    same = torch.tensor([number[label] for label in labels], device=device)
    said = torch.tensor(words_of(tokens, True, False), device=device)
    spaced = torch.tensor(spaced_words(tokens), device=device)
    whole = torch.tensor(words_of(tokens, True, True), device=device) >= 0
    long = torch.tensor(are_long(tokens), device=device)
    longer = torch.tensor(are_long(tokens, LONGER), device=device)
    rare = ~torch.tensor(are_common(run.loaded, tokens), device=device)
    known = ~torch.tensor(are_common(run.loaded, tokens, COMMONEST), device=device)
    scrap = torch.tensor(_scraps(tokens), device=device)
    pieces = _typed(tokens)
    latin = [len(piece) < SCRAP and piece.isascii() and piece.isalpha() for piece in pieces]  # in, la, es: few nouns
    brief = torch.tensor(latin, device=device)
    punctuation = [all(unicodedata.category(char)[0] == "P" for char in piece) for piece in pieces]  # a part of ¿ too
    marks = torch.tensor(punctuation, device=device)
    back = rows[:, None] - torch.arange(len(tokens), device=device)
    apart = spaced[rows][:, None] - spaced
    encoder = run.config.kind == "encoder"
    far, near = (apart.abs() > 1, apart.abs() == 1) if encoder else (back > 1, back == 1)
    typed = (said >= 0) & ~(marks & ~marks.all()) & texts.real_keys & ~texts.rests & (back != 0)
    may = typed & (said[rows][:, None] >= 0) & (same[rows][:, None] != same) & rare
    both = may & whole[rows][:, None] & whole
    other = typed & (apart != 0)
    tiers = (
        both & far & longer,
        both & far & long,
        may & far & long & (apart != 0),
        both & far & ~brief,
        other & far & long & rare,
        other & far & rare & ~scrap & ~brief,
        other & far & long & known,
        both & near & long & (not encoder),
        other & far & known & ~scrap & ~brief,
        other & (far | encoder),
        typed & encoder,
    )
    best = torch.zeros(back.shape, dtype=torch.int8, device=device)
    for i, cells in enumerate(reversed(tiers), 1):  # from what says least on, so that a better kind takes its place
        best.masked_fill_(cells, i)
    return best


def _repeats(texts: _Texts, rows: Tensor) -> dict[Kind, Tensor]:
    """[row, key] bool of each kind: the looks of a decoder at a repeat, between whole words."""
    tokens, device = texts.keys, rows.device
    whole = torch.tensor(words_of(tokens, True, True), device=device) >= 0
    both = whole[rows][:, None] & whole & texts.real_keys & ~texts.rests
    earlier = rows[:, None] > torch.arange(len(tokens), device=device)
    return {
        "after a repeat": both & earlier & measures.induction_cells(tokens.ids, rows),
        "same word": both & measures.same_cells(tokens.ids, rows, causal=True),
    }


def _elsewhere(weights: Tensor, back: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
    """The weight that the head gives in other rows at each cell's distance, and to each cell's key: means, [head, row, key] each."""
    some, n = weights * counted, back.shape[-1]
    at = back.flatten() - int(back.min())
    sums = some.new_zeros(len(some), int(at.max()) + 1).index_add_(1, at, some.flatten(1))
    count = some.new_zeros(sums.shape[1]).index_add_(0, at, counted.float().flatten())
    distance = (sums[:, at].unflatten(1, (-1, n)) - some) / (count[at].unflatten(0, (-1, n)) - 1).clamp(min=1)
    return distance.clamp(min=0), _to_key(weights, counted)


def _to_key(weights: Tensor, counted: Tensor) -> Tensor:
    """The weight that the head gives to each cell's key in other rows: means, [head, row, key]."""
    some = weights * counted
    return ((some.sum(1, keepdim=True) - some) / (counted.sum(0) - 1).clamp(min=1)).clamp(min=0)


def _next_to(seen: _Seen, texts: _Texts, ahead: int) -> tuple[Tensor, list[tuple[int, int]]]:
    """The mean weight of each head on the word before or after, [head], and the cell where it is largest."""
    keys, n = seen.rows + ahead, len(texts.keys)
    ends = texts.real_keys & ~texts.rests
    here = (keys >= 0) & (keys < n) & ends[keys.clamp(0, n - 1)]
    if not here.any():
        return seen.weights.new_zeros(len(seen.weights)), [(0, 0)] * len(seen.weights)
    at = here.nonzero()[:, 0]
    there = seen.weights[:, at, keys[at]]  # [head, row]
    best = there.argmax(-1).tolist()
    return there.mean(-1), [(int(at[i]), int(keys[at[i]])) for i in best]


def _resting(seen: _Seen, texts: _Texts) -> tuple[Tensor, list[tuple[int, int]]]:
    """The mean weight that rests of each head, [head], over rows that may see another key, and the last row's cell."""
    keys = texts.rests.nonzero()[:, 0]
    resting = seen.weights[:, :, keys].sum(-1)  # [head, row]
    rows = seen.records[0].mask(queries=seen.rows).sum(-1) > 1  # of all: they have one mask
    means = resting[:, rows].mean(-1) if rows.any() else resting.mean(-1)
    last = len(seen.rows) - 1
    return means, [(last, int(keys[i])) for i in seen.weights[:, last, keys].argmax(-1).tolist()]


def _largest(weights: Tensor) -> list[tuple[int, int]]:
    """(row, key) of each head's largest weight."""
    return [divmod(cell, weights.shape[-1]) for cell in weights.flatten(1).argmax(-1).tolist()]


def _described(run: Trace, found: Sequence[Finding]) -> list[Finding]:
    """The same with the likeliest word after each query, and what the look adds to its logit, where that is not known yet."""
    missing = [one for one in found if one.token is None]
    if not missing or not has_looks(run):
        return list(found)
    wanted = asked(run, sorted({one.query for one in missing}), None, None)
    tokens = [token for token, *_ in wanted.tokens]
    words = labels_of(run.loaded, tokens)
    described = list(found)

    def take(looked: Looked) -> None:
        for i, one in enumerate(found):
            if one.token is None and one.layer == looked.record.layer:
                row = wanted.positions.index(one.query)
                added = float(looked.additions[one.head, row, one.key])
                addition = None if math.isnan(added) else added
                described[i] = replace(one, addition=addition, token=tokens[row], word=words[row])

    each_look(wanted, take, sorted({one.layer for one in missing}))
    return described
