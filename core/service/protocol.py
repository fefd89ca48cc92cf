"""Service: everything that a screen asks of the machine that runs models, in plain data, so that it may be another machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from ..edits import Intervention
from ..learn.watched_training import Spec
from ..model.config import ModelConfig
from ..read.attribution import Contributions, LensLayer
from ..read.comparison import AnswerChange, Comparison
from ..read.head_roles import OpeningLink, Role
from ..read.layer_walk import Guess, Terms
from ..read.projections import Compared
from ..read.scaling import Spread
from ..read.word_order import Equivariance, MovedOn
from ..run.attention import Receipt
from ..run.request import Progress, Request
from ..run.trace import Predictions
from ..sweep.ablations import HeadEffects
from ..sweep.sweeps import Asked
from ..write.generate import Sampling
from ..write.writing import CacheCost, LensRow
from .answers import (
    Column,
    Facts,
    HeadDone,
    Heads,
    LayerDone,
    Likeness,
    Looked,
    Measures,
    NextWord,
    Row,
    RunDone,
    Scores,
    SiteId,
    Thumbnails,
    Tile,
    Values,
    Whole,
)
from .maps.compute import TILE, MapTransform
from .maps.heads import TensorPlace
from .masks.compute import Leak, Masked, Outcome, Padded, Unscaled
from .positions.compute import Clock, OrderChange, StackPositions
from .sweeps import SweepPart
from .training.trainer import News
from .walks.compute import AddedFacts, Walked, WalkNumber
from .writing.compute import BeamsGrown, Begun, Written


class Service(Protocol):
    """Runs by their key, and everything that can be seen of them.

    A key is Request.key. Answers are of the first text of a run, which is run again where it was dropped. All raise Refused in
    its kinds: TooLarge and Busy among them, and Unknown for a key whose request is not remembered; whoever has the request
    then submits it again, once. The arrays of an answer are shared and never to be written to. `site` is one of Site.id, `record`
    counts Facts.records, and `of` says which map is meant. What streams is closed by whoever no longer waits for it.
    """

    # runs: begun, followed, shown while they go on

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
        """A run that goes on, layer by layer, with the map of one head as soon as its layer is done, and one row of it."""
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

    async def status(self) -> dict[str, Any]:
        """What is held now, for the operator: counts, bytes and the device. Nothing about anybody's text."""
        ...

    # maps: what the weights of a run look like

    async def tile(
        self, key: str, of: MapTransform, rows: tuple[int, int], columns: tuple[int, int], cells: int = TILE
    ) -> Tile:
        """A region of a map, ends excluded; pooled where it has more than cells × cells values."""
        ...

    async def cells(self, key: str, of: MapTransform, rows: tuple[int, int], columns: tuple[int, int]) -> Tile:
        """Every value of a region, ends excluded, however large."""
        ...

    async def row(self, key: str, of: MapTransform, query: int) -> Row:
        """One row of a map, and why cells of it have no number."""
        ...

    async def column(self, key: str, of: MapTransform, at: int) -> Column:
        """Who looks at one column of a map. Raises Refused where too many weights would have to be worked out."""
        ...

    async def scores(self, key: str, record: int, head: int, query: int) -> Scores:
        """What the softmax of one row of a head is made of."""
        ...

    async def thumbnails(self, key: str) -> tuple[Thumbnails, ...]:
        """Of every record of the run."""
        ...

    async def heads(self, key: str) -> dict[SiteId, Heads]:
        """Every weight of the run."""
        ...

    async def whole(self, key: str) -> Whole:
        """heads(), openings() and roles() of a small run in one answer: the maps that all three read are worked out once.

        Roles are judged by every row here, also where roles() would draw some of them.
        """
        ...

    async def roles(self, key: str) -> tuple[tuple[Role, ...], ...]:
        """A name for each head of every record, after where its attention goes: see core.read.head_roles.roles."""
        ...

    async def openings(self, key: str) -> tuple[OpeningLink, ...]:
        """Where a picture of the run opens, by kind of attention in the order of the pass: see core.read.head_roles.openings."""
        ...

    async def opening(self, key: str, record: int, head: int) -> OpeningLink:
        """Where to begin reading one head."""
        ...

    async def measures(self, key: str, site: SiteId) -> Measures:
        """What one number can say about each head of a site: see core.measures."""
        ...

    async def norms(self, key: str, site: SiteId) -> np.ndarray:
        """‖value · W_O‖ of each key as each head would write it, float32 [layer, head, key]. Kobayashi et al. 2020."""
        ...

    async def likeness(self, key: str, site: SiteId, query: int, weights: Sequence[float]) -> Likeness:
        """The row of a query by every head of a site, beside weights [key] of somebody else's: of a class that votes, say."""
        ...

    async def proof(self, key: str, record: int) -> Receipt:
        """One record worked out again and compared."""
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

    async def next_words(self, key: str, positions: Sequence[int], k: int = 3) -> tuple[NextWord, ...]:
        """What the model is about to write behind each position, in labels as a person reads them, and how likely the text's
        own next word was. Raises Refused for a model that does not write."""
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

    def sweep(self, key: str, asked: Asked) -> AsyncGenerator[SweepPart]:
        """What each of many edits does by itself to one answer: every head silenced, every look cut, every head taken from
        another run. Its rows come as they are worked out, in turn with everybody's passes; finished sweeps are kept."""
        ...

    async def compare(self, key: str, other: str, k: int = 10) -> Comparison:
        """What is different in the other run."""
        ...

    async def answer_change(self, key: str, other: str, position: int | None = None, k: int = 6) -> AnswerChange:
        """How the answer of the other run differs: its words or vectors, the loss, and how spread out attention is."""
        ...

    # one token through one layer

    async def walk(self, key: str, stack: str, layer: int, query: int) -> Walked:
        """What one token is at each step of one layer."""
        ...

    async def terms(self, key: str, number: WalkNumber, k: int = 6) -> Terms:
        """One number of a walk as the sum that it is."""
        ...

    async def additions(self, key: str, stack: str) -> tuple[AddedFacts, ...]:
        """How long a vector every sublayer of a stack adds to every token."""
        ...

    async def guesses(self, key: str, query: int | None = None) -> tuple[Guess, ...]:
        """What the head would make of a token's stream behind every addition; None asks for the last real token."""
        ...

    # masks, padding and the scale

    async def masked(self, key: str, site: SiteId, layers: Sequence[int] | None = None) -> Masked:
        """The scores of some layers of a site before any mask (None: of all), and the run's masks. Raises TooLarge."""
        ...

    async def outcome(self, key: str, ids: Sequence[int] = ()) -> Outcome:
        """The next word, the probabilities of `ids` as the next one, and the loss; of an encoder the text's vector."""
        ...

    async def padded(
        self, key: str, texts: Sequence[str], side: Literal["left", "right"], text: int, layer: int | None = None
    ) -> Padded:
        """These texts in one batch of the run's model, seen from one of them, against that text alone.

        None is the layer in which a head would give padding most.
        """
        ...

    async def leakage(self, key: str) -> Leak:
        """The run's text as the model reads it whose last layer learnt without its mask. Raises Refused for any other model."""
        ...

    async def unscaled(self, key: str) -> Unscaled:
        """How far scores spread and how much choice rows have, with the division by √d and in a run without it."""
        ...

    async def spreads(self) -> tuple[Spread, ...]:
        """Random q·k of several widths, measured."""
        ...

    async def projections(self, d_model: int, widths: tuple[int, int, int], rows: int) -> Compared:
        """One product for q, k and v against three, timed where models run. Raises Refused for tables that take too long to make."""
        ...

    # positions

    async def positions(self, key: str) -> tuple[StackPositions, ...]:
        """How each stack of the run knows the order of its tokens."""
        ...

    async def position_rows(self, key: str, stack: str, first: int, rows: int) -> np.ndarray:
        """Rows of a stack's own table of positions, as it was loaded: float32 [pos, d_model]."""
        ...

    async def order_change(self, key: str, other: str, site: SiteId, reach: int = 8) -> OrderChange:
        """How far each head of a site moved in another run of the same tokens, and what each gives to every distance."""
        ...

    async def equivariance(self, key: str, places: Sequence[int]) -> Equivariance:
        """The proof that order comes in through positions alone: the words of an encoder's text moved to other places."""
        ...

    async def moved_on(self, key: str, by: int) -> MovedOn:
        """What it does to the run's scores and weights to move the whole text on by so many places."""
        ...

    async def clock(self, key: str, record: int, head: int, query: int, at: int) -> Clock:
        """One query and one key before rotary positions turned them, and all that makes their score of a distance."""
        ...

    # writing

    def write(
        self, key: str, path: Sequence[int], n: int, how: Sampling, also: Sequence[int] = ()
    ) -> AsyncGenerator[Begun | Written]:
        """What follows the run's text: the text with the tokens of `path` behind it, then up to n more as they are written.

        Each token is one turn among the passes, and none is written that nobody waits for. Labels of the tokens `also` come
        with the first answer.
        """
        ...

    def beams(self, key: str, n_beams: int, n: int) -> AsyncGenerator[BeamsGrown]:
        """The n_beams likeliest texts of up to n tokens behind the run's text, step by step, in turns as with write()."""
        ...

    async def lens_at(self, key: str, path: Sequence[int], position: int, token: int) -> tuple[LensRow, ...]:
        """What each layer would say behind one position of the text with `path` behind it, and how it ranks one token."""
        ...

    async def written_text(self, key: str, path: Sequence[int]) -> str:
        """The run's text, of an encoder-decoder its target, with the tokens of `path` behind it: as one would type it."""
        ...

    async def cache_cost(self, key: str, path: Sequence[int], n: int = 240) -> CacheCost:
        """How long the token behind n others takes with and without a cache, measured now, and whether both say the same."""
        ...

    # trainings

    def train(self, spec: Spec) -> AsyncGenerator[News]:
        """A training from its beginning, as far as it is, and then what comes of it until it has ended. Raises Busy.

        It is begun if nobody did; when the last who watches closes the iterator, one that has not ended is cancelled.
        """
        ...

    async def expect_training(self, spec: Spec) -> None:
        """Somebody may begin this training in a moment: let what it runs in be there by then. Nothing is begun."""
        ...

    async def training(self, spec: Spec) -> News:
        """What there is of a training now. Nothing is begun and nobody watches. Raises Refused where there is no such training."""
        ...

    async def pause_training(self, spec: Spec) -> None:
        """Let a training wait where it is once nobody watches it, instead of ending it; whoever watches it next lets it go on."""
        ...

    async def trained(self, spec: Spec, step: int) -> bytes:
        """The model of a frame as a zip: config, weights, tokenizer, recipe, card. Raises Refused where there is no such frame."""
        ...

    async def looks(self, spec: Spec, example: str, after: int = -1) -> tuple[Looked, ...]:
        """An example as every frame of a training behind step `after` sees it, so far: the next few, so that the first come soon.

        Raises Refused for an example that the task does not read, and where there is no such training.
        """
        ...
