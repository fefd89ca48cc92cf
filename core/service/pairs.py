"""A set of pairs of sentences in the service: every head and MLP of one pair after the other taken from the other text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InterventionError, TextError
from ..model.config import ModelConfig
from ..run.predictions import labels_of
from ..sweep.leads import logit_diff_between, logit_diff_in
from ..sweep.pairs import Pair, checked, pair_tokens
from ..sweep.part import Component
from ..sweep.parts import patching_of
from ..sweep.sides import counterfactual_of
from ..trace import Trace, trace
from .answers import PairChanges, PairRows, PartRows
from .parts import PartRuns


@dataclass(frozen=True)
class AskedPair:
    """A pair whose texts have one length, and the tokens that it is asked about; None: the likeliest."""

    pair: Pair
    answer: int | None
    alternative: int | None


def asked_pairs(run: Trace, pairs: Sequence[Pair]) -> tuple[AskedPair, ...]:
    """The pairs, read by the model of a run. Raises TextError with the line of the first that cannot run."""
    loaded, found = run.loaded, []
    if loaded.config.kind != "decoder" or loaded.model.head is None or not loaded.config.writes:
        raise TextError("Parts are taken from another sentence in language models that write; this model is none.")
    for i, pair in enumerate(checked(pairs)):
        found.append(AskedPair(pair, *pair_tokens(loaded, pair, i)))
    return tuple(found)


def parts_in(config: ModelConfig) -> tuple[Component, ...]:
    """Every head and MLP of the last stack, from the last layer down: rows of late layers cost least."""
    n = config.stacks[-1][1]
    heads = range(config.n_heads)
    return tuple(
        part
        for layer in reversed(range(n))
        for part in (*(Component("head", layer, head) for head in heads), Component("mlp", layer, 0))
    )


@dataclass(frozen=True, eq=False)
class PairRuns:
    """One pair that is to run."""

    asked: AskedPair
    words: tuple[str, str]
    leads: tuple[float, float]
    runs: PartRuns

    def changes(self, rows: Sequence[PartRows]) -> PairChanges:
        """The change of the lead by every head and MLP, of all the rows."""
        config = self.runs.patching.counterfactual.run.config
        layers = config.stacks[-1][1]
        heads = np.zeros((layers, config.n_heads), np.float32)
        mlps = np.zeros(layers, np.float32)
        for part, log_p in ((part, log_p) for each in rows for part, log_p in zip(each.parts, each.log_p, strict=True)):
            change = log_p[0] - log_p[1] - self.leads[0]
            if part.kind == "head":
                heads[part.layer, part.at] = change
            else:
                mlps[part.layer] = change
        return PairChanges(self.asked.pair, self.words, self.leads, heads, mlps)


def opened_pair(run: Trace, asked: AskedPair, at: int) -> PairRuns:
    """Both texts run, by the model of a run as it is. Raises Refused in its kinds, which names the pair, TooLarge among them before any part
    runs."""
    try:
        own, other = (trace(run.loaded, text) for text in (asked.pair.text, asked.pair.other))
        lead = logit_diff_between(own, other, asked.answer, asked.alternative)
        watched = (lead.answer, lead.alternative)
        patching = patching_of(counterfactual_of(own, other, "other", None), watched)
    except (TextError, InterventionError) as error:
        raise TextError(f"{asked.pair.label(at)}: {error}") from None
    answer, alternative = labels_of(run.loaded, watched)
    leads = (float(patching.before[0] - patching.before[1]), logit_diff_in(other, lead))
    return PairRuns(asked, (answer, alternative), leads, PartRuns(patching, (parts_in(run.config),)))


def pairs_together(found: Sequence[PairRows]) -> PairRows:
    """All pairs, in one."""
    return PairRows(0, found[0].of, tuple(pair for rows in found for pair in rows.pairs))
