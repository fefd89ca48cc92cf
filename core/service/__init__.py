"""The seam between what runs models and what shows them: a Service, its answers in plain data, and the one of this process."""

# Names for app and cluster, each once: an unused one fails tests/test_layering.py.
from ..read.comparison import AnswerChange, HeadDifference
from ..read.findings import Finding
from ..read.sinks import Sink
from ..read.word_order import shuffled_words
from ..read.worth import Worth
from ..run.attention import Receipt
from ..sweep.pairs import LEAST_DIFFERENCE, Pair, pairs_from, read_pairs
from ..sweep.part import Part
from ..sweep.sweeps import MOST_LOOKS, Asked, CutLooks, HeadPlace, PatchHeads, SilenceHeads
from ..write.generate import Sampling
from ..write.writing import TEMPERATURES, Reading
from .answer_cache import AnswerCache
from .answers import (
    AskedParts,
    AskedPaths,
    Facts,
    NextWord,
    PairChanges,
    PairRows,
    PartEstimates,
    PartRows,
    PartTests,
    PathEdges,
    RecordFacts,
    Site,
    SiteId,
    SweepPart,
    TensorPlace,
    Values,
)
from .arrival import into_loop
from .calls import Calls
from .in_progress import AT_ONCE
from .local import LocalService, Service
from .maps.answers import (
    HIDDEN,
    MAP_KINDS,
    Column,
    HeadAdditions,
    HeadDone,
    Heads,
    HeadWords,
    LayerDone,
    Likeness,
    MapKind,
    MapTransform,
    Row,
    Scores,
    Thumbnails,
    Tile,
)
from .maps.compute import word_groups
from .maps.heads import METRICS, THUMBNAIL
from .masks.answers import Outcome, ScoresAndMasks
from .one_run import OneRun, one_run
from .positions.answers import (
    Clock,
    OrderChange,
    PaperRules,
    StackPositions,
    Stretches,
    SwappedMaps,
    WordSwap,
)
from .positions.compute import RULES, Rule, paper_rules
from .training.answers import FrameFacts, LookFacts, News
from .training.local import look_facts
from .training.text_trainer import TextNews, TextTrainer
from .training.trainer import frame_facts
from .waiting import Waiting
from .walks.answers import (
    AddedFacts,
    EndingFacts,
    ExpertFacts,
    ResidualPathFacts,
    SiteWalk,
    StripFacts,
    WalkFacts,
    WalkNumber,
)
from .worker import cores
from .writing.answers import MOST_WRITTEN, BeamsGrown, OpenedText, WrittenOn, WrittenToken
