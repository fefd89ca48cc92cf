"""The seam between what runs models and what shows them: a Service, its answers in plain data, and the one of this process."""

from ..read.comparison import AnswerChange, HeadDifference, WordChange
from ..read.word_order import shuffled_words
from ..sweep.sweeps import MOST_LOOKS, Asked, CutLooks, HeadPlace, LookPlace, PatchHeads, SilenceHeads, Sweep
from ..write.generate import Sampling
from ..write.writing import TEMPERATURES, CacheCost, LensRow, Opening, Reading, Taken
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
    RecordFacts,
    Row,
    RunDone,
    Scores,
    Side,
    Site,
    SiteId,
    Thumbnails,
    Tile,
    Values,
    Whole,
)
from .calls import Calls, Following
from .in_progress import AT_ONCE
from .kept import Kept
from .local import LocalService
from .maps.compute import HIDDEN, MAP_KINDS, TILE, MapKind, MapTransform, word_groups
from .maps.heads import METRICS, THUMBNAIL, TensorPlace
from .masks.compute import Leak, Masked, Outcome, Padded, Unscaled
from .positions.compute import Clock, OrderChange, PaperRules, StackPositions, paper_rules
from .protocol import Service
from .sweeps import SweepPart
from .training.local import looked
from .training.trainer import FrameFacts, News, frame_facts
from .walks.compute import AddedFacts, NormFacts, SiteWalk, Walked, WalkNumber
from .worker import cores
from .writing.compute import MOST_WRITTEN, BeamsGrown, Begun, Written

__all__ = [
    "AT_ONCE",
    "HIDDEN",
    "MAP_KINDS",
    "METRICS",
    "MOST_LOOKS",
    "MOST_WRITTEN",
    "TEMPERATURES",
    "THUMBNAIL",
    "TILE",
    "AddedFacts",
    "AnswerChange",
    "Asked",
    "BeamsGrown",
    "Begun",
    "CacheCost",
    "Calls",
    "Clock",
    "Column",
    "CutLooks",
    "Facts",
    "Following",
    "FrameFacts",
    "HeadDifference",
    "HeadDone",
    "HeadPlace",
    "Heads",
    "Kept",
    "LayerDone",
    "Leak",
    "LensRow",
    "Likeness",
    "LocalService",
    "LookPlace",
    "Looked",
    "MapKind",
    "MapTransform",
    "Masked",
    "Measures",
    "News",
    "NextWord",
    "NormFacts",
    "Opening",
    "OrderChange",
    "Outcome",
    "Padded",
    "PaperRules",
    "PatchHeads",
    "Reading",
    "RecordFacts",
    "Row",
    "RunDone",
    "Sampling",
    "Scores",
    "Service",
    "Side",
    "SilenceHeads",
    "Site",
    "SiteId",
    "SiteWalk",
    "StackPositions",
    "Sweep",
    "SweepPart",
    "Taken",
    "TensorPlace",
    "Thumbnails",
    "Tile",
    "Unscaled",
    "Values",
    "WalkNumber",
    "Walked",
    "Whole",
    "WordChange",
    "Written",
    "cores",
    "frame_facts",
    "looked",
    "paper_rules",
    "shuffled_words",
    "word_groups",
]
