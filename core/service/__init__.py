"""The seam between what runs models and what shows them: a Service, its answers in plain data, and the one of this process."""

# Names for app and cluster, each once: an unused one fails tests/test_layering.py.
from ..labs.positions import shuffled_words
from ..labs.worked_examples import ResidualPath
from ..patching.counterfactual import Component
from ..patching.head_sweeps import MAX_EDGES, AblateHeads, BlockEdges, HeadPlace, PatchHeads, SweepRequest
from ..patching.sentence_pairs import MIN_DIFFERENCE, Pair, pairs_from, read_pairs
from ..read.comparison import AnswerChange, HeadDifference
from ..read.findings import Finding
from ..read.key_steps import KeyStep, ResidualProfile
from ..read.layer_walk import LayerWalk, Routing, SiteWalk, SublayerNorms, WalkNumber
from ..read.measures import Sink
from ..read.next_token_loss import Ending
from ..run.attention import Receipt
from ..write.generate import Sampling
from ..write.writer import TEMPERATURES, TokenDistribution
from .facts import Facts, RecordFacts, Site, SiteId, TensorPlace, Values
from .jobs import RunHandle
from .maps import (
    HIDDEN,
    MAP_KINDS,
    Column,
    HeadAdditions,
    HeadDone,
    Heads,
    HeadWords,
    LayerDone,
    MapKind,
    MapTransform,
    Row,
    Scores,
    Similarity,
    Thumbnails,
    Tile,
    word_groups,
)
from .masks import Outcome, ScoresAndMasks
from .pictures import AT_ONCE, METRICS, THUMBNAIL, OneRun, one_run
from .positions import (
    RULES,
    ContextExtensions,
    OrderEffect,
    PaperRules,
    RotaryPairs,
    Rule,
    StackPositions,
    SwappedMaps,
    WordSwap,
    paper_rules,
)
from .service import LocalService, NextWord, Service, SyncCalls
from .sweep_rows import (
    PairChanges,
    PairRows,
    PartEstimates,
    PartRows,
    PartTests,
    PatchRequest,
    PathEdges,
    PathRequest,
    SweepPart,
)
from .text_training import TextTrainer, TextTrainingUpdate
from .training import FrameFacts, LookFacts, TrainingUpdate, frame_facts, look_facts
from .worker import AnswerCache, cores, into_loop
from .writing import MAX_WRITTEN, BeamsGrown, Continuation, PreparedText, WrittenToken
