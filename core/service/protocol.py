"""Service: everything that a screen asks of the machine that runs models, in plain data, so that it may be another machine.

Runs, the numbers of a run and what they depend on are asked here; what belongs to a topic is in the protocol of its folder.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

import numpy as np

from ..edits import Intervention
from ..model.config import ModelConfig
from ..read.attribution import Contributions, LensLayer
from ..read.comparison import AnswerChange, Comparison
from ..read.swaps import Swap
from ..run.classes import Classes
from ..run.predictions import Predictions
from ..run.request import Progress, Request
from ..sweep.ablations import HeadEffects
from ..sweep.pairs import Pair
from ..sweep.part import Component
from ..sweep.sweeps import SweepRequest
from .answers import (
    AskedParts,
    AskedPaths,
    Facts,
    HeadNotes,
    NextWord,
    PairRows,
    PartEstimates,
    PartRows,
    PartTests,
    PathEdges,
    SweepPart,
    TensorPlace,
    Values,
)
from .maps.answers import HeadDone, LayerDone, RunDone
from .maps.protocol import Maps
from .masks.protocol import Masks
from .positions.protocol import Positions
from .training.protocol import Trainings
from .walks.protocol import Walks
from .writing.protocol import Writing


class Service(Maps, Masks, Positions, Trainings, Walks, Writing, Protocol):
    """Runs by their key, and everything that can be seen of them.

    A key is Request.key. Answers are of the first text of a run, which is run again where it was dropped. All raise Refused in
    its kinds: TooLarge and Busy among them, and Unknown for a key whose request is not remembered; whoever has the request
    then submits it again, once. The arrays of an answer are shared and never to be written to. `site` is one of Site.id, `record`
    counts Facts.records, and `of` says which map is meant. What streams is closed by whoever no longer waits for it.
    """

    # runs: begun, followed, shown while they last

    async def submit(self, request: Request) -> str:
        """The key of a run, which is begun or joined. Raises Busy; whatever else is wrong comes with follow()."""
        ...

    async def edited(self, key: str, interventions: Sequence[Intervention]) -> str:
        """The key of the same run with these interventions as well, begun or joined as by submit().

        It reads the tokens that the run read: a target that an encoder-decoder wrote itself is now given to it.
        """
        ...

    async def let_go(self, key: str) -> None:
        """Somebody who was shown this run looks at another one now: it need not be kept for them. Any key will do."""
        ...

    def follow(self, key: str) -> AsyncGenerator[Progress]:
        """How far a run is, whenever that changes, until it has ended; raises what it was refused for.

        Whoever follows waits for it. When the last of them closes the iterator, a run that has not ended is cancelled.
        """
        ...

    def parts(
        self, key: str, record: int, head: int, query: int | None
    ) -> AsyncGenerator[LayerDone | HeadDone | RunDone]:
        """A run under way, layer by layer, with the map of one head as soon as its layer is done, and one row of it."""
        ...

    async def facts_so_far(self, key: str) -> Facts | None:
        """The same of a run that goes on and is shown in parts, where Progress.is_shown says so."""
        ...

    async def facts(self, key: str) -> Facts:
        """What the run says about itself."""
        ...

    async def model(self, model_id: str) -> ModelConfig | None:
        """The config of a model that is in memory now."""
        ...

    async def chats(self, model_id: str) -> bool:
        """Whether a model that is in memory now has a chat template, so that it reads a text as a conversation."""
        ...

    async def status(self) -> dict[str, Any]:
        """What is held now, for the operator: counts, bytes and the device. Nothing about anybody's text."""
        ...

    # numbers at any moment of a run, and its next words

    async def values(self, key: str, of: TensorPlace, most: int) -> Values:
        """The first `most` × `most` numbers of a tensor; of the residual stream ‖x‖ of 4 · most tokens."""
        ...

    async def point(self, key: str, point: str, positions: Sequence[int] | None = None) -> np.ndarray:
        """The numbers that passed a hook point, its axes without the batch, as Trace.value gives them; float32."""
        ...

    async def predictions(self, key: str, positions: Sequence[int] | None = None, k: int = 10) -> Predictions:
        """The k likeliest next tokens at each position; None asks for the last real token."""
        ...

    async def classes(self, key: str) -> Classes:
        """The answer of a classifier. Raises Refused for a model without a classification head."""
        ...

    async def next_words(self, key: str, positions: Sequence[int], k: int = 3) -> tuple[NextWord, ...]:
        """What the model is about to write behind each position, in labels as a person reads them, and how likely the text's
        own next word was. Raises Refused for a model that does not write."""
        ...

    async def word_chances(
        self, key: str, words: Sequence[str], position: int | None = None
    ) -> tuple[float | None, ...]:
        """The probability of each of these words as the next one after a position (None: the last real token); None for a word
        that is not a single token with the space before it. Raises Refused for a model that does not write."""
        ...

    async def logit_lens(self, key: str, k: int = 10, positions: Sequence[int] | None = None) -> tuple[LensLayer, ...]:
        """What the head would predict from the residual stream before and behind every layer."""
        ...

    # causes: what a prediction depends on, and what is different in another run

    async def contributions(self, key: str, position: int | None = None, token: int | None = None) -> Contributions:
        """What each part of the model added to a logit."""
        ...

    async def ablate_each(self, key: str, position: int | None = None, token: int | None = None) -> HeadEffects:
        """What silencing each head alone does to a prediction, or to the vector of an encoder's text."""
        ...

    def sweep(self, key: str, asked: SweepRequest) -> AsyncGenerator[SweepPart]:
        """What each of many edits does by itself to one answer: every head silenced, every look cut, every head taken from
        another run. Its rows come as they are worked out, in turn with everybody's passes; finished sweeps are kept."""
        ...

    async def part_estimates(self, key: str, asked: AskedParts) -> PartEstimates:
        """By how much each part of a run would move a lead, to first order, and what there is to run: the order of part_rows()
        follows from it, and no more. Raises TextError for texts of unequal lengths, and TooLarge before anything runs."""
        ...

    def part_rows(self, key: str, asked: AskedParts, only: Component | None = None) -> AsyncGenerator[PartRows]:
        """The next word with each head, MLP and stream at a word changed by itself: a run for each, the strongest estimates first,
        as sweep() gives its rows. `only` is one part alone, which waits for none of the others."""
        ...

    async def part_tests(self, key: str, asked: AskedParts, part: Component) -> PartTests:
        """One head or MLP silent, at its mean and, where there is another run, taken from it, and whether these tests agree."""
        ...

    def path_edges(self, key: str, asked: AskedParts, paths: AskedPaths) -> AsyncGenerator[PathEdges]:
        """How far the change of one head moves the lead through one input of a later head, all else held: a run for each path, as
        sweep() gives its rows. Raises TextError for unequal lengths, and TooLarge before anything runs."""
        ...

    async def head_notes(self, key: str, asked: AskedParts) -> HeadNotes:
        """Every head by the token that it reads where it acts, and by which of the two answers its output pushes up or down."""
        ...

    def pair_rows(self, key: str, pairs: tuple[Pair, ...]) -> AsyncGenerator[PairRows]:
        """Every head and MLP taken from the other text of each pair, one pair after the other, by the model of this run as it is. Raises
        TextError with the line of the first pair that cannot run, before any runs, and TooLarge before the pair that is too large."""
        ...

    async def swaps(self, key: str, n: int = 3) -> tuple[Swap, ...]:
        """Words of the text whose replacement by one other changes the answer, the n that change it most, each checked by a run.
        Raises TextError for a model that is no decoder that writes."""
        ...

    async def compare(self, key: str, other: str, k: int = 10) -> Comparison:
        """What is different in the other run."""
        ...

    async def answer_change(self, key: str, other: str, position: int | None = None, k: int = 6) -> AnswerChange:
        """How the answer of the other run differs: its words or vectors, the loss, and how spread out attention is."""
        ...
