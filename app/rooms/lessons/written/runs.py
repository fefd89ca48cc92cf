"""Measures of a written step, from the runs that it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from app.kit import numbers
from app.rooms.lessons.written import words
from app.rooms.lessons.written.expressions import Measure
from app.rooms.lessons.written.faults import Fault, Unfit
from app.rooms.lessons.written.lesson import Written, pieces_of
from app.rooms.lessons.written.rules import compared, place
from core.errors import HeadlightError
from core.model.text import Tokens
from core.run.request import Request
from core.service import Facts, MapTransform, Service


@dataclass(frozen=True)
class Best:
    """The head that gives most from one token to another."""

    layer: int
    head: int
    weight: float


@dataclass
class Runs:
    """The runs of one step by their text, each made once."""

    step: Written
    model: str
    service: Service
    _facts: dict[str, Facts] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many there are by now."""
        return len(self._facts)

    async def facts(self, text: str) -> Facts:
        """Of one text, once its run has ended. Raises Unfit with the reason of a refusal."""
        if text not in self._facts:
            try:
                key = await self.service.submit(Request(self.model, (text,), self.step.target))
                async for _ in self.service.follow(key):
                    pass
                self._facts[text] = await self.service.facts(key)
            except HeadlightError as refusal:
                raise Unfit(Fault(self.step.line_of("text"), str(refusal))) from refusal
        return self._facts[text]

    async def sizes(self) -> Mapping[str, float]:
        """Sizes of the run of the step's own text: expressions.SIZES."""
        facts = await self.facts(self.step.text)
        config = facts.config
        return {
            "tokens": len(facts.source),
            "layers": max(config.n_encoder_layers, config.n_decoder_layers),
            "heads": config.n_heads,
            "kv_heads": config.n_kv_heads or config.n_heads,
            "d_model": config.d_model,
            "d_head": config.d_head,
            "d_ff": config.d_ff,
            "vocab": config.vocab_size,
        }

    async def measured(self, asked: Iterable[Measure]) -> dict[Measure, float]:
        """The value of each measure. Raises Unfit for a word that is several tokens where one is asked for."""
        found: dict[Measure, float] = {}
        by_text: dict[str, list[Measure]] = {}
        for measure in dict.fromkeys(asked):
            by_text.setdefault(self.step.other(measure.at), []).append(measure)
        for text, those in by_text.items():
            found |= await self._chances(text, [measure for measure in those if measure.kind == "p"])
            found |= await self._looks(text, [measure for measure in those if measure.kind == "look"])
            counted = [measure for measure in those if measure.kind == "n"]
            if counted:
                wins = await self.wins(text)
                found |= {measure: float(wins[measure.word]) for measure in counted}
        return found

    async def _chances(self, text: str, asked: list[Measure]) -> dict[Measure, float]:
        if not asked:
            return {}
        facts = await self.facts(text)
        try:
            chances = await self.service.token_probabilities(facts.key, [measure.word for measure in asked])
        except HeadlightError as refusal:
            raise Unfit(Fault(self.step.line_of("check"), str(refusal))) from refusal
        found: dict[Measure, float] = {}
        for measure, p in zip(asked, chances, strict=True):
            if p is None:
                sentence = words.SEVERAL.format(word=numbers.quoted(measure.word), model=facts.spec.title)
                raise Unfit(Fault(self._line_of(measure.word), sentence))
            found[measure] = p
        return found

    def _line_of(self, word: str) -> int:
        """Where a word is asked about: an option, or the check."""
        option = next((option for option in self.step.options if option.said == word), None)
        if option is not None:
            return option.line
        return self.step.line_of("show" if word in self.step.show else "check")

    async def _looks(self, text: str, asked: list[Measure]) -> dict[Measure, float]:
        if not asked:
            return {}
        row, keys = await self.row(text)
        found = {measure: float(row[self.within(keys, text, measure.word)].sum()) for measure in asked}
        for measure, weight in found.items():
            if np.isnan(weight):
                sentence = words.HIDDEN.format(word=numbers.quoted(self.step.at), other=numbers.quoted(measure.word))
                raise Unfit(Fault(self._line_of(measure.word), sentence))
        return found

    async def row(self, text: str) -> tuple[np.ndarray, Tokens]:
        """The weights of the step's head, from the word that looks, and the tokens that it looks at. NaN where it may not look."""
        facts = await self.facts(text)
        record, head = self.head(facts)
        queries, keys = facts.tokens_of(record)
        found = await self.service.row(facts.key, MapTransform(record, head), self.query(queries, text))
        return np.where(found.reasons > 0, np.nan, found.values), keys

    def head(self, facts: Facts) -> tuple[int, int]:
        """The record and the head. Raises Unfit where the run has none of this number."""
        layer, head = self.step.head or (0, 0)
        site = facts.sites[0]
        if layer >= len(site.records) or head >= site.n_heads:
            sentence = words.HEAD_RANGE.format(
                model=facts.spec.title, layers=len(site.records) - 1, heads=site.n_heads - 1
            )
            raise Unfit(Fault(self.step.line_of("head"), sentence))
        return site.records[layer], head

    def query(self, tokens: Tokens, text: str) -> int:
        """The token that looks: the last one of the step's word, or of the text."""
        *_, (last, start, end) = pieces_of(text)
        where = place(text, self.step.at) if self.step.at else (start, end)
        return self._tokens(tokens, where, self.step.at or last)[-1]

    def within(self, tokens: Tokens, text: str, word: str) -> list[int]:
        """The tokens of a word."""
        return self._tokens(tokens, place(text, word), word)

    def _tokens(self, tokens: Tokens, where: tuple[int, int], word: str) -> list[int]:
        found = [
            i
            for i, (start, end) in enumerate(tokens.offsets)
            if start < where[1] and end > where[0] and not tokens.special[i] and not tokens.padding[i]
        ]
        if not found:
            raise Unfit(Fault(self.step.line_of("at"), words.NO_PLACE.format(word=numbers.quoted(word))))
        return found

    async def every_head(self, text: str) -> tuple[np.ndarray, Tokens]:
        """The weights of every head from the word that looks, [layer, head, key]."""
        facts = await self.facts(text)
        site = facts.sites[0]
        query = self.query(facts.tokens(site.query), text)
        even = [1 / site.n_key] * site.n_key
        return (await self.service.similarity(facts.key, site.id, query, even)).rows, facts.tokens(site.key)

    async def wins(self, text: str) -> dict[str, int]:
        """In how many heads each of the compared words gets more than every other one."""
        rows, keys = await self.every_head(text)
        those = compared(self.step)
        weights = np.stack([rows[..., self.within(keys, text, word)].sum(-1) for word in those])  # [word, layer, head]
        most = [weights[i] > np.delete(weights, i, 0).max(0) for i in range(len(those))]
        return {word: int(more.sum()) for word, more in zip(those, most, strict=True)}

    async def n_heads(self) -> int:
        """How many heads the words are counted in."""
        site = (await self.facts(self.step.text)).sites[0]
        return len(site.records) * site.n_heads


def best_head(rows: np.ndarray, key: int) -> Best:
    """Of weights [layer, head, key], the head that gives most to one key."""
    layer, head = np.unravel_index(int(rows[..., key].argmax()), rows.shape[:2])
    return Best(int(layer), int(head), float(rows[layer, head, key]))
