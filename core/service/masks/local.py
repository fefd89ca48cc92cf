"""Masks, padding, leakage and the division by √d, of the Service in this process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from ...checkpoints import Loaded
from ...edits import DropPadding, NoScale
from ...errors import Refused
from ...learn.leakage import check_model, leakage, relearnt
from ...learn.leakage import facts as leak_facts
from ...read.padding import inertness
from ...read.projections import Compared, timed
from ...read.scaling import WIDTHS, Spread, sharpness, spread
from ...read.unmasked import unmasked
from ...run.request import Request
from ...run.trace import Trace
from ..answers import SiteId
from ..engine import Engine
from ..worker import Worker, check_below
from . import compute
from .answers import LeakageFacts, Outcome, PaddingEffect, ScaleEffect, ScoresAndMasks, UnmaskedFacts


class LocalMasks(Worker):
    """The effects of masks, proved by other runs."""

    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._leaking = threading.Lock()
        # the model that leaks, and the one whose other weights it shares
        self._leaky: tuple[Loaded, Loaded] | None = None

    async def masked(self, key: str, site: SiteId, layers: Sequence[int] | None = None) -> ScoresAndMasks:
        """The scores of some layers of a site before any mask (None: of all), and the run's masks. Raises TooLarge."""
        run, at = await self._site(key, site)
        chosen = range(len(at.records)) if layers is None else layers
        for layer in chosen:
            check_below("layer", layer, len(at.records))
        return await self._work(partial(compute.masked_of, run, at, chosen))

    async def masked_rows(
        self, key: str, site: SiteId, layer: int, head: int, rows: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Some rows of one head, end excluded: its scores before any mask, float32 [row, key], and why cells are masked, as in Tile."""
        run, at = await self._site(key, site)
        check_below("layer", layer, len(at.records))
        check_below("head", head, at.n_heads)
        check_below("row", rows[0], at.n_query)
        check_below("row", rows[1] - 1, at.n_query)
        return await self._work(partial(compute.rows_of, run.attention[at.records[layer]], head, range(*rows)))

    async def outcome(self, key: str, ids: Sequence[int] = ()) -> Outcome:
        """The next word, the probabilities of `ids` as the next one, and the loss; of an encoder the text's vector."""
        losses = await self._kept.get(("losses", key), lambda: self._again(key, compute.losses_of))
        return await self._again(key, lambda run: compute.outcome_of(run, ids, losses))

    async def padded(
        self, key: str, texts: Sequence[str], side: Literal["left", "right"], text: int, layer: int | None = None
    ) -> PaddingEffect:
        """These texts in one batch of the run's model, seen from one of them, against that text alone.

        None is the layer in which a head would give padding most.
        """
        check_below("text", text, len(texts))
        run = await self._run(key)
        if layer is not None:
            check_below("layer", layer, run.config.stacks[0][1])
        model = self.engine.request_of(key).model_id
        asked = Request(model, tuple(texts), "" if run.target is not None else None, padding_side=side)
        one = replace(asked, texts=(texts[text],))
        keys = [await self.submit(each) for each in (asked, replace(asked, interventions=(DropPadding(),)), one)]
        batch, free, alone = [await self._run(each) for each in keys]

        def prove() -> PaddingEffect:
            seen, unhidden = batch.text(text), free.text(text)
            proofs = inertness(seen, alone), inertness(unhidden, alone)
            return compute.padded_of(seen, unhidden, alone, proofs, layer)

        return await self._pass(prove)

    async def leakage(self, key: str) -> LeakageFacts:
        """The run's text as the model reads it whose last layer learnt without its mask. Raises Refused for any other model."""

        def make(run: Trace) -> LeakageFacts:
            check_model(run.loaded)
            with self._leaking:
                if self._leaky is None or self._leaky[0] is not run.loaded:
                    self._leaky = run.loaded, relearnt(run.loaded)
                other = self._leaky[1]
            return compute.leakage_facts(leakage(run, other), leak_facts())

        return await self._kept.get(("leakage", key), lambda: self._again(key, make))

    async def unmasked(self, key: str) -> UnmaskedFacts:
        """The run's text with the causal mask taken away, nothing trained. Raises Refused for a model that has none, or writes nothing."""

        def make(run: Trace) -> UnmaskedFacts:
            return compute.unmasked_facts(run, unmasked(run))

        return await self._kept.get(("unmasked", key), lambda: self._again(key, make))

    async def unscaled(self, key: str) -> ScaleEffect:
        """How far scores spread and how much choice rows have, with the division by √d and in a run without it."""
        run, other = await self._run(key), await self._run(await self.edited(key, (NoScale(),)))
        return await self._work(lambda: ScaleEffect(sharpness(run.attention), sharpness(other.attention)), slow=True)

    async def spreads(self) -> tuple[Spread, ...]:
        """Random q·k of several widths, measured."""
        return await self._kept.get(("spreads",), lambda: self._work(lambda: tuple(map(spread, WIDTHS)), slow=True))

    async def projections(self, d_model: int, widths: tuple[int, int, int], rows: int) -> Compared:
        """One product for q, k and v against three, timed where models run. Raises Refused for tables that take too long to make."""
        try:
            return await self._work(partial(timed, d_model, widths, rows, self.engine.device), slow=True)
        except ValueError as error:
            raise Refused(
                f"Three products of these sizes are not timed: {error} would take too long to make."
            ) from None
