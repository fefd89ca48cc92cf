"""Findings of a run: attention edges and heads worth opening a picture on, each of another kind and chosen by a rule."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, cast

import torch
from torch import Tensor

from ..errors import HeadlightError
from ..model.text import Tokens
from ..run.attention import CELLS, AttentionRecord, joint_patterns
from ..run.predictions import labels_of
from ..run.trace_record import TraceRecord
from . import measures
from .attribution import Asked, Site, asked, has_looks, likeliest_tokens, records_of, site_of
from .edge_attribution import EdgeAttribution, each_edge
from .head_roles import (
    COMMONEST,
    LONGER,
    are_common,
    are_long,
    is_ideograph,
    label_numbers,
    opening_edges,
    spaced_words,
    words_of,
)
from .measures import evenly_spaced

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
WRITES_FROM = 0.4  # logits that an edge must add to open a picture
OTHERS = 20  # most likely tokens after the first; their mean shows how far an edge raises all tokens alike
TIMES = 3  # multiple of that mean that it must add
COPY_WEIGHT = 0.1  # attention weight below which an edge is ignored
STANDS_OUT_FROM = 0.2  # of a weight, above the head's baseline
TIER = 100.0  # more than any score: an edge of a higher tier comes first
TELLS = 9  # tier from which the key is a long word that is not common
SCRAP = 3  # letters from which a part of a word is recognisable
AGAINST_FROM = -0.25  # logits
AGAINST_WEIGHT = 0.2
REPEAT_FROM = 0.35  # of a weight, above the head's baseline
ONE_BACK_FROM = 0.5  # of the mean weight on the previous token
NEIGHBOURS: dict[Kind, int] = {"one back": -1, "one ahead": 1}  # kind -> key − query
REPEATS: tuple[Kind, ...] = ("after a repeat", "same word")
HABITS: dict[str, tuple[Kind, ...]] = {  # kind of model -> kinds that are judged by weights, besides "rests"
    "decoder": ("stands out", *REPEATS, "one back"),
    "encoder": ("stands out", "one back", "one ahead"),
    "encoder-decoder": ("one word",),
}
MEANS: dict[Kind, float] = {  # kinds that are judged by a head's mean, and its smallest value
    "one back": ONE_BACK_FROM,
    "one ahead": ONE_BACK_FROM,
    "one word": -math.inf,
    "rests": -math.inf,
}
MIN_ROWS = 16
MAX_OPENING_WEIGHTS = 4_000_000  # larger runs open on their first head instead of searching for the best one
LAST_ROWS = 8  # always included: nearest to the next token


@dataclass(frozen=True)
class Finding:
    """One attention edge of one head, and its kind: the reason for showing it.

    addition is the contribution of the edge to the logit of `token`, the most likely one after the query, in logits
    (core.edge_attribution); None if the model predicts no tokens. habit is the head's baseline: its weight at that distance in other
    rows (of a repeat: or on that key). mean is the average over rows of what the kind is about: the weight on the previous
    or next token, the weight on sinks, or bits.
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


def opening_finding(run: TraceRecord, patterns: Sequence[Tensor] | None = None) -> Finding:
    """The edge on which a picture of this run opens.

    `patterns` are the complete maps [head, query, key] of run.attention, if they are already available.

    Decoder: among the edges from the last token, over all heads and earlier tokens but the first, the largest weight × (its
    addition to the logit of the most likely token − the mean of its additions to the next 20), if it adds 0.4 or more and
    three times that mean ("writes"). Punctuation does not count, neither at the key nor as the prediction, nor do one or two
    letters of a longer word, nor a common word just before. Otherwise the edge of any row that stands out most: (weight −
    the head's weight at that distance in other rows) · log₂(1 + distance), from 20 % above that baseline, at least two
    tokens apart. More telling edges come first (core.read.head_roles):

    * between different whole words, to a long word that is not common: of five letters, then of four;
    * the same to a long part of a word;
    * if there are none, the edge of a decoder from any row to an earlier copy of the token that is most likely there, by
      the first rule ("writes");
    * to a short word;
    * from anywhere to a long word that is not common, to three letters or more that are not, to a long word that is none of
      the commonest;
    * to a long word just before;
    * to anything else that was typed.

    Encoder: the same between words that are not neighbours, without the factor of distance; in a text of one or two words,
    to what was typed. Encoder–decoder: the first rule in cross-attention, over all rows of the target that are followed by a
    word: to long words that are none of the commonest, then to long ones, then to any; otherwise what stands out most from
    the weight that other rows give to that word. If all this leaves nothing, the largest weight × addition.
    """
    search = _Search(run, patterns)
    return search.described([search.opening])[0]


def opening_head(run: TraceRecord) -> tuple[int, int]:
    """(record index, head) of the most informative head; (0, 0) if the run is too large to search or not finite."""
    weights = sum(record.n_heads * record.n_query * record.n_key for record in run.records)
    if weights > MAX_OPENING_WEIGHTS or run.texts > 1 or run.non_finite is not None:
        return 0, 0
    try:
        finding = opening_finding(run)
    except HeadlightError:  # the model has been trained since
        return 0, 0
    places = [(record.stack, record.site, record.layer) for record in run.attention]
    place = finding.stack, finding.site, finding.layer
    return places.index(place) if place in places else 0, finding.head


def findings(run: TraceRecord) -> tuple[Finding, ...]:
    """The opening edge, and the best of the other kinds, each of another head: see Finding.

    * "writes", or "stands out" and "largest push" (the edge of the first rule, although it adds little).
    * "votes against": the smallest weight × addition, from −0.25, among the edges from the last token with 20 % or more.
    * "after a repeat", "same word": the largest weight on the token after an earlier copy, or on the copy, above the larger
      of the head's weights on that key and at that distance elsewhere, from 35 %.
    * "one back" (encoders also "one ahead"): the largest mean weight on the previous token, from 50 %.
    * "one word" (cross-attention): the smallest mean entropy.
    * "rests": the largest mean weight on the first token, or on special tokens.

    Long texts are sampled by rows, which always include the last ones.
    """
    search = _Search(run)
    pushes, habits = search.pushes, search.habits
    found = [search.opening]
    used = {(found[0].layer, found[0].head)}

    def take(*candidates: Finding | None) -> None:
        """Add the best of these, if there is one."""
        here = [candidate for candidate in candidates if candidate is not None]
        if here:
            found.append(max(here, key=lambda candidate: candidate.weight - (candidate.habit or 0)))
            used.add((found[-1].layer, found[-1].head))

    if pushes:
        if found[0].kind == "stands out":
            take(pushes["largest push"].best(used))
        take(pushes["votes against"].best(used))
    take(*(habits[kind].best(used, REPEAT_FROM) for kind in REPEATS if kind in habits))
    for kind, least in MEANS.items():
        if kind in habits:
            take(habits[kind].best(used, least))
    return tuple(search.described(found))


@dataclass
class _Candidates:
    """The best edge of every head by one score."""

    kind: Kind
    next_words: Sequence[tuple[int, str]] = ()  # [row]: the most likely token, and its label
    records: list[AttentionRecord] = field(default_factory=list)
    columns: dict[str, list[Tensor]] = field(
        default_factory=dict
    )  # score, row or field of a Finding -> [head] by group

    def best(self, used: Collection[tuple[int, int]] = (), least: float = -math.inf) -> Finding | None:
        """The edge with the largest score above `least`, of a head that is not used yet."""
        if not self.records:
            return None
        columns = {name: torch.cat(parts) for name, parts in self.columns.items()}
        scores, rows = columns.pop("score"), columns.pop("row")
        heads = [(record, head) for record in self.records for head in range(record.n_heads)]
        for at, (record, head) in enumerate(heads if used else ()):
            if (record.layer or 0, head) in used:
                scores[at] = -math.inf
        best = int(scores.argmax())
        if not float(scores[best]) > least:
            return None
        record, head = heads[best]
        numbers: dict[str, Any] = {name: values[best].item() for name, values in columns.items()}
        token, word = self.next_words[int(rows[best])] if self.next_words else (None, "")
        site: Site = "cross_attn" if record.site == "cross_attn" else "attn"
        return Finding(self.kind, record.stack, site, record.layer or 0, head, **numbers, token=token, word=word)

    def add(self, group: _Group, score: Tensor, **numbers: Tensor) -> None:
        """The edges of the next layers, by a score of every cell [head, row, key], −inf if it does not count.

        `numbers` are fields of a Finding, [head, row, key] too.
        """
        best, cell = score.flatten(1).max(-1)
        row, key = cell // score.shape[-1], cell % score.shape[-1]
        every = torch.arange(len(score), device=score.device)
        self._add(group, best, row, key, {name: values[every, row, key] for name, values in numbers.items()})

    def add_means(self, group: _Group, means: Tensor, row: Tensor, key: Tensor, sign: int = 1) -> None:
        """The next layers, by `sign` × the mean over rows of each head [head]; row and key [head] are the cells to be shown."""
        self._add(group, means * sign, row, key, {"mean": means})

    def _add(self, group: _Group, score: Tensor, row: Tensor, key: Tensor, numbers: dict[str, Tensor]) -> None:
        weight = group.weights[torch.arange(len(score), device=score.device), row, key]
        places = {"score": score, "row": row, "query": group.rows[row], "key": key, "weight": weight}
        for name, values in (places | numbers).items():
            self.columns.setdefault(name, []).append(values.cpu())
        self.records += group.records


@dataclass(frozen=True, eq=False)
class _Group:
    """The attention of some layers in some rows: weights [head, row, key], the heads of one layer after the other."""

    records: Sequence[AttentionRecord]
    rows: Tensor  # [row]: position of the query
    weights: Tensor


@dataclass(frozen=True, eq=False)
class _NextWords:
    """The most likely tokens after some rows: for each row up to 1 + OTHERS ids, and the first of them with its label."""

    rows: Tensor
    ids: Sequence[tuple[int, ...]]
    words: Sequence[tuple[int, str]]

    @property
    def are_words(self) -> Tensor:
        """[row] bool: False for just punctuation, a space or a part of a character."""
        return torch.tensor([_is_word(label) for _, label in self.words], device=self.rows.device)

    def among(self, chosen: Tensor) -> _NextWords:
        """Only the rows where `chosen` [row] is True."""
        at = chosen.nonzero()[:, 0].tolist()
        return _NextWords(self.rows[chosen], [self.ids[i] for i in at], [self.words[i] for i in at])


@dataclass(frozen=True, eq=False)
class _Keys:
    """Tables of the tokens that edges end on, [key] bool. In self-attention they are those of the queries too."""

    tokens: Tokens
    words: Tensor  # int: the word that each token belongs to
    real: Tensor  # no padding
    special: Tensor
    sinks: Tensor  # the first token of a decoder, otherwise the special tokens
    typed: Tensor  # words and symbols; without punctuation if there are words
    whole: Tensor  # whole words of one token
    long: Tensor
    longer: Tensor
    rare: Tensor  # not a common word
    uncommon: Tensor  # not one of the commonest words
    letters: Tensor
    scrap: Tensor  # one or two letters or digits of a longer word
    brief: Tensor  # one or two Latin letters, such as in, la, es: few nouns
    mark: Tensor  # punctuation, also a part of ¿

    @classmethod
    def of(cls, run: TraceRecord, tokens: Tokens, device: torch.device) -> _Keys:
        table = partial(torch.tensor, device=device)
        real, special = ~table(tokens.padding), table(tokens.special)
        sinks = special & real
        if run.config.kind == "decoder":
            sinks = torch.zeros_like(real)
            sinks[int(real.int().argmax())] = True
        pieces = [tokens.text[start:stop].strip() for start, stop in tokens.offsets]
        short = [len(piece) < SCRAP for piece in pieces]
        scraps = [piece.isalnum() and not is_ideograph(piece[0]) for piece in pieces]
        latin = [piece.isascii() and piece.isalpha() for piece in pieces]
        whole = table(words_of(tokens, True, True)) >= 0
        return cls(
            tokens,
            words=table(spaced_words(tokens)),
            real=real,
            special=special,
            sinks=sinks,
            typed=table(words_of(tokens, True, False)) >= 0,
            whole=whole,
            long=table(are_long(tokens)),
            longer=table(are_long(tokens, LONGER)),
            rare=~table(are_common(run.loaded, tokens)),
            uncommon=~table(are_common(run.loaded, tokens, COMMONEST)),
            letters=table([piece.isalpha() for piece in pieces]),
            scrap=table(short) & table(scraps) & ~whole,
            brief=table(short) & table(latin),
            mark=table([all(unicodedata.category(char)[0] == "P" for char in piece) for piece in pieces]),
        )


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for findings in one run, with the tables that several rules read.

    It reads the attentions of the last stack, and of an encoder–decoder its cross-attention.
    """

    run: TraceRecord
    patterns: Sequence[Tensor] | None = None
    known: dict[int, tuple[int, ...]] = field(default_factory=dict)  # position -> its most likely next tokens

    def next_words(self, rows: Tensor) -> _NextWords:
        """The most likely tokens after these rows, each computed once: a row costs a product with the whole vocabulary."""
        positions = rows.tolist()
        missing = [position for position in positions if position not in self.known]
        if missing:
            self.known.update(zip(missing, likeliest_tokens(self.run, missing, 1 + OTHERS), strict=True))
        ids = [self.known[position] for position in positions]
        firsts = [first for first, *_ in ids]
        return _NextWords(rows, ids, list(zip(firsts, labels_of(self.run.loaded, firsts), strict=True)))

    @cached_property
    def records(self) -> tuple[AttentionRecord, ...]:
        return records_of(self.run, None)

    @cached_property
    def maps(self) -> list[Tensor] | None:
        """The complete maps of the records, if they are already available."""
        if self.patterns is None:
            return None
        kind = self.records[0].stack, self.records[0].site
        each = zip(self.run.attention, self.patterns, strict=True)
        return [pattern for record, pattern in each if (record.stack, record.site) == kind]

    @cached_property
    def tokens(self) -> tuple[Tokens, Tokens]:
        """The tokens of the queries and of the keys."""
        return self.run.tokens_of(self.records[0])

    @cached_property
    def keys(self) -> _Keys:
        return _Keys.of(self.run, self.tokens[1], self.device)

    @property
    def device(self) -> torch.device:
        return self.records[0].device

    @property
    def is_cross(self) -> bool:
        return self.run.config.kind == "encoder-decoder"

    def rows(self, cells: int = CELLS) -> Tensor:
        """All rows but padding, or evenly spaced ones and the last, with about `cells` weights in a layer."""
        rows = (~torch.tensor(self.tokens[0].padding, device=self.device)).nonzero()[:, 0]
        most = max(MIN_ROWS, cells // (self.records[0].n_heads * self.records[0].n_key))
        return rows[evenly_spaced(len(rows), most, range(len(rows) - LAST_ROWS, len(rows)))]

    @cached_property
    def opening(self) -> Finding:
        """The edge of opening_finding(); its token and addition may be missing."""
        found = next((found for found in self._openings() if found is not None), None)
        if found is not None:
            return found
        kind = self.records[0].stack, site_of(self.run, None)
        link = next(link for link in opening_edges(self.run, self.patterns) if (link.stack, link.site) == kind)
        return Finding("stands out", *kind, link.layer, link.head, link.query, link.key, link.weight, habit=link.habit)

    def _openings(self) -> Iterator[Finding | None]:
        """Candidates of the opening, the most telling rule first."""
        writes = self.pushes["writes"].best() if self.pushes else None
        if writes is not None and _is_word(writes.word):
            yield writes
        if self.is_cross:
            yield writes
            yield self.pushes["stands out"].best((), TIER) if self.pushes else None
        else:
            outstanding = self.habits["stands out"]
            yield outstanding.best((), TELLS * TIER)
            yield self._copies().best() if self.pushes else None  # no edge is to a long word that is not common
            yield outstanding.best((), TIER)
            yield writes
        yield self.pushes["largest push"].best() if self.pushes else None
        yield None if self.is_cross else self.habits["stands out"].best((), 0)

    @cached_property
    def pushes(self) -> dict[Kind, _Candidates]:
        """Edges judged by their contribution to the most likely token after the last token, in cross-attention after every token.

        In cross-attention also by how they stand out. Empty for a model whose logits are not sums over edges.
        """
        if not has_looks(self.run):
            return {}
        rows = self.rows() if self.is_cross else self.rows()[-1:]
        next_words = self.next_words(rows)
        cells = self._pushing(rows)
        telling = cells * self._telling(rows)
        writing = telling * (next_words.are_words[:, None] | ~next_words.are_words.any())
        kinds = (*PUSHES, cast(Kind, "stands out")) if self.is_cross else PUSHES
        found: dict[Kind, _Candidates] = {kind: _Candidates(kind, next_words=next_words.words) for kind in kinds}

        def take(group: _Group, added: Tensor, others: Tensor) -> None:
            weights, product = group.weights, group.weights * added
            score = (weights * (added - others) + TIER * writing).where(
                (writing > 0) & _raises(added, others), -math.inf
            )
            found["writes"].add(group, score, addition=added)
            counts = cells & (weights > 0) & ~added.isnan()
            found["largest push"].add(group, product.where(counts, -math.inf), addition=added)
            against = counts & (weights >= AGAINST_WEIGHT) & (added <= AGAINST_FROM)
            found["votes against"].add(group, (-product).where(against, -math.inf), addition=added)
            if self.is_cross:
                habit = _to_key(weights, torch.ones_like(cells))
                beyond = weights - habit
                counts = (telling > 0) & (beyond >= STANDS_OUT_FROM)
                score = (beyond + TIER * telling).where(counts, -math.inf)
                found["stands out"].add(group, score, habit=habit, addition=added)

        self._each_group(next_words, take)
        return found

    def _each_group(self, next_words: _NextWords, take: Callable[[_Group, Tensor, Tensor], None]) -> None:
        """take(group, added, others) of all layers, small ones together, [head, row, key].

        `added` are the contributions of each edge to the logit of the row's most likely token, `others` the mean of those to
        the next ones.
        """
        n, positions = len(next_words.rows), next_words.rows.tolist()
        together: list[EdgeAttribution] = []

        def take_these() -> None:
            weights = torch.cat([found.weights[:, :n] for found in together])
            added, others = torch.cat([found.additions for found in together]).split(n, 1)
            take(_Group([found.record for found in together], next_words.rows, weights), added, others)
            together.clear()

        def looked(found: EdgeAttribution) -> None:
            if together and (len(together) + 1) * found.weights.numel() > CELLS:
                take_these()
            together.append(found)

        tokens = (*(some[:1] for some in next_words.ids), *(some[1:] for some in next_words.ids))
        wanted = Asked(self.run, site_of(self.run, None), (*positions, *positions), tokens)
        each_edge(wanted, looked, maps=self.maps)
        take_these()

    def _copies(self) -> _Candidates:
        """Edges of a decoder from any row to a copy of the token that is most likely next, as "writes"; no parts of characters."""
        next_words = self.next_words(self.rows(CELLS // 2))  # two numbers for each edge
        rows, keys = next_words.rows, self.keys
        written = torch.tensor([first for first, _ in next_words.words], device=rows.device)
        cells = written[:, None] == torch.as_tensor(keys.tokens.ids, device=rows.device)
        cells = cells & next_words.are_words[:, None] & (_back(rows, keys) > 1) & keys.real & ~keys.sinks
        cells = cells & (keys.words[rows][:, None] != keys.words)
        has_copy = cells.any(-1)
        if not has_copy.any():
            return _Candidates("writes")
        next_words, cells = next_words.among(has_copy), cells[has_copy]
        found = _Candidates("writes", next_words=next_words.words)

        def take(group: _Group, added: Tensor, others: Tensor) -> None:
            copies = cells & _raises(added, others) & (group.weights >= COPY_WEIGHT)
            found.add(group, (group.weights * (added - others)).where(copies, -math.inf), addition=added)

        self._each_group(next_words, take)
        return found

    def _pushing(self, rows: Tensor) -> Tensor:
        """[row, key] bool: the edges that are judged by their contributions.

        Sinks, special tokens and the token itself are left out. If nothing remains, only the token itself is, then nothing.
        """
        keys = self.keys
        real = keys.real.expand(len(rows), -1)
        other = real if self.is_cross else real & (_back(rows, keys) != 0)
        choices = (other & ~keys.sinks & ~keys.special, other, real)
        return next(cells for cells in choices if cells.any() or cells is real)

    def _telling(self, rows: Tensor) -> Tensor:
        """[row, key]: 0 for edges that may not open as "writes", otherwise 1 or more.

        Excluded are punctuation if there are words, and in a decoder one or two letters of a word and a common word just
        before the query. In cross-attention 3 for a long word that is none of the commonest, 2 for another long word.
        """
        keys = self.keys
        if self.is_cross:
            tier = 1 + keys.long + (keys.long & keys.uncommon).int()
            return (keys.typed * tier).expand(len(rows), -1)
        typed = keys.typed & ~(keys.scrap & keys.letters)
        return (typed & ~((_back(rows, keys) == 1) & ~keys.rare)).int()

    @cached_property
    def habits(self) -> dict[Kind, _Candidates]:
        """Edges and heads judged by their weights, from all rows."""
        keys, kind, rows = self.keys, self.run.config.kind, self.rows()
        kinds = (*HABITS[kind], cast(Kind, "rests")) if keys.sinks.any() else HABITS[kind]
        found: dict[Kind, _Candidates] = {kind: _Candidates(kind) for kind in kinds}
        # In an encoder a mean is over its words.
        spoken = ~keys.sinks[rows] if kind == "encoder" else torch.ones_like(rows, dtype=torch.bool)
        edges = None if self.is_cross else self._edge_rules(rows, found)
        for joint in joint_patterns(self.records, rows, self.maps):
            group = _Group(joint.records, rows, joint.weights)
            if edges is not None:
                edges(group)
            if not spoken.all():
                group = _Group(joint.records, rows[spoken], joint.weights[:, spoken])
            for kind, ahead in NEIGHBOURS.items():
                if kind in found:
                    found[kind].add_means(group, *_next_to(group, keys, ahead))
            if "one word" in found:
                sees = group.weights.sum(-1) > 0
                bits = (measures.entropy(group.weights) * sees).sum(-1) / sees.sum(-1).clamp(min=1)
                cell = (group.weights * ~keys.sinks).flatten(1).argmax(-1)
                n_key = group.weights.shape[-1]
                found["one word"].add_means(group, bits, cell // n_key, cell % n_key, sign=-1)
            if "rests" in found:
                found["rests"].add_means(group, *_resting(group, keys))
        return found

    def _edge_rules(self, rows: Tensor, found: dict[Kind, _Candidates]) -> Callable[[_Group], None]:
        """Adds the edges of a group of layers that stand out, and those of repeats, to the candidates."""
        keys, is_encoder = self.keys, self.run.config.kind == "encoder"
        back, tiers, repeats = _back(rows, keys), self._tiers(rows), self._repeats(rows)
        counted = keys.real.expand(back.shape)
        counted = counted if is_encoder else counted & ~keys.sinks & (back >= 0)
        far = torch.ones(()) if is_encoder else torch.log2(1 + back.abs().float())

        def add(group: _Group) -> None:
            by_distance, by_key = _elsewhere(group.weights, back, counted)
            beyond = group.weights - by_distance
            score = beyond * far + TIER * tiers * (beyond >= STANDS_OUT_FROM)
            counts = (tiers > 0) & (group.weights > 0)
            found["stands out"].add(group, score.where(counts, -math.inf), habit=by_distance)
            habit = torch.maximum(by_distance, by_key)
            for kind, cells in repeats.items():
                if kind in found:
                    found[kind].add(group, (group.weights - habit).where(cells, -math.inf), habit=habit)

        return add

    def _tiers(self, rows: Tensor) -> Tensor:
        """[row, key]: 0 for edges that may not stand out, otherwise how telling the words are: the rules of opening_finding(), from the
        last one, 1, up."""
        keys, is_encoder = self.keys, self.run.config.kind == "encoder"
        back, labels = _back(rows, keys), label_numbers(keys.tokens, self.device)
        apart = keys.words[rows][:, None] - keys.words
        far, near = (apart.abs() > 1, apart.abs() == 1) if is_encoder else (back > 1, back == 1)
        marks = keys.mark & ~keys.mark.all()
        typed = (keys.typed & ~marks & keys.real & ~keys.sinks) & (back != 0)
        may = typed & keys.typed[rows][:, None] & (labels[rows][:, None] != labels) & keys.rare
        both = may & keys.whole[rows][:, None] & keys.whole
        other = typed & (apart != 0)
        long, brief, scrap = keys.long, keys.brief, keys.scrap
        tiers = (
            both & far & keys.longer,
            both & far & long,
            may & far & long & (apart != 0),
            both & far & ~brief,
            other & far & long & keys.rare,
            other & far & keys.rare & ~scrap & ~brief,
            other & far & long & keys.uncommon,
            both & near & long & (not is_encoder),
            other & far & keys.uncommon & ~scrap & ~brief,
            other & (far | is_encoder),
            typed & is_encoder,
        )
        best = torch.zeros(back.shape, dtype=torch.int8, device=self.device)
        for i, cells in enumerate(reversed(tiers), 1):  # from the least telling, so that a better tier replaces it
            best.masked_fill_(cells, i)
        return best

    def _repeats(self, rows: Tensor) -> dict[Kind, Tensor]:
        """[row, key] bool of each kind: the edges of a decoder at a repeat, between whole words."""
        keys, ids = self.keys, self.keys.tokens.ids
        both = keys.whole[rows][:, None] & keys.whole & keys.real & ~keys.sinks
        return {
            "after a repeat": both & (_back(rows, keys) > 0) & measures.induction_cells(ids, rows),
            "same word": both & measures.same_cells(ids, rows, causal=True),
        }

    def described(self, found: Sequence[Finding]) -> list[Finding]:
        """The findings with the most likely token after each query and the edge's contribution to it, if these are missing."""
        missing = [one for one in found if one.token is None]
        if not missing or not has_looks(self.run):
            return list(found)
        rows = sorted({one.query for one in missing})
        words = self.next_words(torch.tensor(rows, device=self.device)).words
        wanted = asked(self.run, rows, [token for token, _ in words], None)
        described = list(found)

        def take(looked: EdgeAttribution) -> None:
            for i, one in enumerate(found):
                if one.token is None and one.layer == looked.record.layer:
                    row = rows.index(one.query)
                    added = float(looked.additions[one.head, row, one.key])
                    token, word = words[row]
                    described[i] = replace(one, addition=None if math.isnan(added) else added, token=token, word=word)

        each_edge(wanted, take, sorted({one.layer for one in missing}), self.maps)
        return described


def _is_word(label: str) -> bool:
    """True for a predicted token that is not just punctuation, a space or a part of a character."""
    return any(map(str.isalnum, label))


def _raises(added: Tensor, others: Tensor) -> Tensor:
    """True if an edge adds enough to the most likely token, and more to it than to other likely ones."""
    return (added >= WRITES_FROM) & (added >= TIMES * others)


def _back(rows: Tensor, keys: _Keys) -> Tensor:
    """[row, key]: query − key."""
    return rows[:, None] - torch.arange(len(keys.tokens), device=rows.device)


def _elsewhere(weights: Tensor, back: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
    """Mean weights of the head in other rows at each cell's distance, and on each cell's key, [head, row, key] each."""
    some, n = weights * counted, back.shape[-1]
    at = back.flatten() - int(back.min())
    sums = some.new_zeros(len(some), int(at.max()) + 1).index_add_(1, at, some.flatten(1))
    count = some.new_zeros(sums.shape[1]).index_add_(0, at, counted.float().flatten())
    distance = (sums[:, at].unflatten(1, (-1, n)) - some) / (count[at].unflatten(0, (-1, n)) - 1).clamp(min=1)
    return distance.clamp(min=0), _to_key(weights, counted)


def _to_key(weights: Tensor, counted: Tensor) -> Tensor:
    """Mean weights of the head in other rows on each cell's key, [head, row, key]."""
    some = weights * counted
    return ((some.sum(1, keepdim=True) - some) / (counted.sum(0) - 1).clamp(min=1)).clamp(min=0)


def _next_to(group: _Group, keys: _Keys, ahead: int) -> tuple[Tensor, Tensor, Tensor]:
    """The mean weight of each head on the previous or next token, [head], and the row and the key where it is largest."""
    targets, n = group.rows + ahead, len(keys.tokens)
    ends = keys.real & ~keys.sinks
    here = ((targets >= 0) & (targets < n) & ends[targets.clamp(0, n - 1)]).nonzero()[:, 0]
    if not len(here):
        nothing = here.new_zeros(len(group.weights))
        return group.weights.new_zeros(len(group.weights)), nothing, nothing
    weights = group.weights[:, here, targets[here]]  # [head, row]
    row = here[weights.argmax(-1)]
    return weights.mean(-1), row, targets[row]


def _resting(group: _Group, keys: _Keys) -> tuple[Tensor, Tensor, Tensor]:
    """The mean weight of each head on sinks, [head], over rows that can see another key, and the cell of the last row."""
    sinks = keys.sinks.nonzero()[:, 0]
    resting = group.weights[:, :, sinks].sum(-1)  # [head, row]
    rows = group.records[0].mask(queries=group.rows).sum(-1) > 1  # all records have the same mask
    means = resting[:, rows].mean(-1) if rows.any() else resting.mean(-1)
    key = sinks[group.weights[:, -1, sinks].argmax(-1)]
    return means, torch.full_like(key, len(group.rows) - 1), key
