"""The seam between what runs models and what shows them: a Service, its answers in plain data, and the one of this process."""

from ..comparison import AnswerChange, WordChange
from ..sweeps import Asked, CutLooks, HeadPlace, LookPlace, PatchHeads, SilenceHeads, Sweep
from .answers import (
    Column,
    Facts,
    HeadDone,
    Heads,
    LayerDone,
    Measures,
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
)
from .calls import Calls, Following
from .heads import METRICS, THUMBNAIL
from .kept import Kept
from .live import AT_ONCE
from .local import LocalService, cores
from .maps import HIDDEN, MAP_KINDS, TILE, MapKind, MapTransform, word_groups
from .masks import Leak, Masked, Outcome, Padded, Unscaled
from .positions import Clock, OrderChange, StackPositions
from .protocol import Service
from .sweeps import SweepPart
from .walks import AddedFacts, NormFacts, SiteWalk, Walked

__all__ = [
    "AT_ONCE",
    "HIDDEN",
    "MAP_KINDS",
    "METRICS",
    "THUMBNAIL",
    "TILE",
    "AddedFacts",
    "AnswerChange",
    "Asked",
    "Calls",
    "Clock",
    "Column",
    "CutLooks",
    "Facts",
    "Following",
    "HeadDone",
    "HeadPlace",
    "Heads",
    "Kept",
    "LayerDone",
    "Leak",
    "LocalService",
    "LookPlace",
    "MapKind",
    "MapTransform",
    "Masked",
    "Measures",
    "NormFacts",
    "OrderChange",
    "Outcome",
    "Padded",
    "PatchHeads",
    "RecordFacts",
    "Row",
    "RunDone",
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
    "Thumbnails",
    "Tile",
    "Unscaled",
    "Values",
    "Walked",
    "WordChange",
    "cores",
    "word_groups",
]
