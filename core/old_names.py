"""Deprecated names. They stay importable for one release, with a DeprecationWarning that gives the new name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

# Module inside core -> its old names, or those of modules that were merged into it.
OLD_MODULES = {
    "checkpoints.catalog": "checkpoints.trainer_state",
    "checkpoints.diagnose": "checkpoints.notices checkpoints.unopened",
    "checkpoints.families.encoders": "checkpoints.families.deberta",
    "checkpoints.families.gpt_like": "checkpoints.families.gpt_line",
    "checkpoints.families.llama_like": "checkpoints.families.llama_line checkpoints.families.relatives",
    "checkpoints.family": "checkpoints.rotary checkpoints.text_half",
    "checkpoints.files": "checkpoints.bare_names checkpoints.computed checkpoints.tensor_names",
    "checkpoints.from_config": "build checkpoints.build checkpoints.described",
    "checkpoints.gguf": "checkpoints.gguf.header checkpoints.gguf.parts",
    "checkpoints.gguf.model": "checkpoints.gguf.names checkpoints.gguf.weights",
    "checkpoints.gguf.tokenizer": "checkpoints.gguf.pre_tokenizers",
    "checkpoints.hub": "checkpoints.fetching",
    "checkpoints.local_models": "checkpoints.already_here",
    "checkpoints.metadata": "checkpoints.chat_template checkpoints.classifiers checkpoints.generation",
    "checkpoints.native_format": "checkpoints.own",
    "checkpoints.tokenizer_files": "checkpoints.added_tokens checkpoints.sentencepiece_file",
    "checkpoints.tokenizers": "checkpoints.sentencepiece_folder checkpoints.vocabulary",
    "checkpoints.weight_transforms": "checkpoints.adapter checkpoints.rounded",
    "dataframes": "frames",
    "device": "memory",
    "edits": "interventions",
    "edits.edit": "edits.fields edits.text",
    "edits.kinds": "edits.head_edits edits.masks edits.positions edits.words interventions.heads",
    "errors": "extras",
    "labs.masks": "leakage learn.leakage padding read.padding read.unmasked",
    "labs.positions": "order read.long_context read.word_order read.word_swap",
    "labs.sizes": "plan.growth plan.slips read.scaling scaling",
    "labs.worked_examples": "learn.residual_paths projections read.projections read.worked_examples small",
    "learn.recorded_runs": "finished learn.moments learn.saved_runs",
    "learn.tasks": "learn.head_measures tasks",
    "learn.training": "training",
    "learn.watched_training": "forks learn.fork_states live",
    "model.cache": "cache",
    "model.config": "config",
    "model.custom_mask": "mask_edits model.fused model.given model.mask_edits",
    "model.hooks": "hooks",
    "model.outputs": "model.classifier model.next_tokens",
    "model.positions": "positions",
    "model.rules": "rules",
    "model.text": "model.spelled text",
    "patching": "sweep",
    "patching.atlas": "atlas sweep.atlas sweep.corpus",
    "patching.atlas_ray": "atlas_ray sweep.atlas_ray",
    "patching.component_patching": "sweep.estimates sweep.evidence sweep.parts",
    "patching.counterfactual": "sweep.growing sweep.part sweep.sides",
    "patching.edited_runs": "ablations branches sweep.ablations sweep.branches",
    "patching.head_sweeps": "sweep.leads sweep.sweeps sweeps",
    "patching.path_patching": "sweep.paths",
    "patching.sentence_pairs": "sweep.pairs",
    "peers.views": "peers.shown",
    "plan": "planner",
    "plan.live_memory": "plan.alive plan.fit plan.measured",
    "plan.operations": "plan.devices",
    "plan.parameters": "plan.concatenated plan.depth plan.weights",
    "plan.peak": "plan.chunks plan.edits plan.pieces plan.runs planner.passes",
    "plan.plan": "plan.speed",
    "plan.tracing": "plan.live_bytes plan.ways planner.live",
    "plan.training": "plan.adapters plan.saved",
    "plan.verdict": "plan.cards plan.place",
    "plan.workload": "plan.cache plan.dtypes plan.uncounted",
    "progress": "bars",
    "read.attribution": "attribution read.directions",
    "read.comparison": "comparison",
    "read.edge_attribution": "read.looks read.strongest",
    "read.head_roles": "heads read.common_words",
    "read.key_steps": "read.strip read.worth",
    "read.layer_walk": "additions read.additions read.experts walk",
    "read.measures": "aggregate measures read.aggregate read.ragged read.sinks read.spaced_rows",
    "read.next_token_loss": "given read.conditional_loss read.ending",
    "read.report": "read.paper_figures report",
    "run.attention": "attention model.pooling pooling run.patterns",
    "run.call_records": "run.interface run.mask_functions",
    "run.capture": "capture run.call_paths run.lineage",
    "run.chunks": "chunks",
    "run.forward_pass": "passes run.weights weights",
    "run.from_attentions": "run.activation_cache run.brought",
    "run.predictions": "predictions run.classes",
    "run.recorder": "moments recorder run.moments",
    "run.request": "prompt request run.prompt",
    "run.trace": "run.batched_trace together",
    "run.trace_record": "run.notebook_picture still",
    "service.engine": "engine",
    "write.beams": "beams",
    "write.generate": "continuation generate write.continuation",
    "write.writer": "write.writing write.wrote writing",
}
FOLDERS = {"interventions": "edits", "planner": "plan", "sweep": "patching"}  # old packages

# Module inside core ("" is core itself) -> names that `import headlight` offered until 0.2; "old=new" if the name changed as well.
OLD_NAMES = {
    "": "Refused=HeadlightError estimate_parts=attribution_patching looks=edge_attribution opening_look=opening_finding patch_parts=patch_components strongest_looks=strongest_edges",
    "checkpoints": "Loaded ModelSpec",
    "edits": "Ablate AsPadding DropCausalMask DropPadding DropPositions EditMask Intervention MaskAfterSoftmax MaskFill NoScale ScaleHead SetMask SetPositions ShiftPositions ShufflePositions SwapWords Temperature Window",
    "errors": "Busy=ServerBusy CheckpointError ConfigError GenerationError InterventionError Outdated=StaleTrace RunCancelled TextError TooLarge Unknown=UnknownRun",
    "learn.training": "Batch Recipe TrainStep",
    "model.chat": "ChatText",
    "model.config": "RotaryScaling",
    "patching": "Estimates=AttributionEstimates Evidence HeadEffect HeadEffects Lead=LogitDiff Pair PairShares Part=Component PartAnswers=PatchResults PathEdge Sweep lead_between=logit_diff_between pairs_from patch_pairs read_pairs run_order three_tests",
    "read.attribution": "Contribution Contributions LensLayer",
    "read.comparison": "AnswerChange Comparison answer_change",
    "read.edge_attribution": "Link=EdgeWeights Moves=TokenAttribution Strongest adds=head_logit_attribution link=edge_in_all_heads looks_in=edge_attribution_in_layer moves=top_token_attribution",
    "read.findings": "Finding",
    "read.swaps": "Swap Swaps same_length",
    "run.attention": "Receipt Thumbnail",
    "run.predictions": "Classes Predictions",
    "run.recorder": "PositionRecord Step=TensorStep",
    "run.request": "Progress Request",
    "run.wrapped_trace": "Wrapped",
    "service.engine": "Engine",
    "trace": "WeightsTrace=AttentionsTrace",
    "write.beams": "Beam beam_steps",
    "write.generate": "Generation GenerationStep",
    "write.writer": "Opening Reading=TokenDistribution Writer opening",
}
MODULES = {old: new for new, names in OLD_MODULES.items() for old in names.split()}
NAMES = {
    old: (module, new or old)
    for module, names in OLD_NAMES.items()
    for old, _, new in (name.partition("=") for name in names.split())
}


def new_module(old: str) -> str | None:
    """The path inside core of a module with an old name; None if there never was one."""
    folder, _, rest = old.partition(".")
    if old in MODULES or folder not in FOLDERS:
        return MODULES.get(old)
    renamed = f"{FOLDERS[folder]}.{rest}" if rest else FOLDERS[folder]
    return MODULES.get(renamed, renamed)


def deprecated(package: str, old: str) -> object:
    """The value of a name that `package` offered until 0.2, with a warning. Raises AttributeError if there never was one."""
    if old in NAMES:
        module, new = NAMES[old]
        path = ".".join(filter(None, (package, module)))
        _warn(f"{package}.{old}", f"{path}.{new}", 3)
        return getattr(import_module(path), new)
    if (path := new_module(old)) is not None:
        _warn(f"{package}.{old}", f"{package}.{path}", 3)
        return import_module(f"{package}.{path}")
    raise AttributeError(f"module {package!r} has no attribute {old!r}")


def _warn(old: str, new: str, level: int) -> None:
    """Warn at the line `level` calls above. `from core import x` calls hasattr() before getattr(): only the second call warns."""
    if sys._getframe(level).f_code.co_name != "_handle_fromlist":
        warnings.warn(
            f"{old} is now {new}. The old name is removed in the next release.", DeprecationWarning, level + 1
        )


class SameModule(MetaPathFinder, Loader):
    """Imports a module by another name: the same object, never a copy. `own_name` returns the real name, or None for other modules."""

    def __init__(self, own_name: Callable[[str], str | None], warns: bool = False) -> None:
        self.own_name, self.warns = own_name, warns

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        own = self.own_name(fullname)
        found = None if own is None else find_spec(own)
        return None if found is None else ModuleSpec(fullname, self, origin=found.origin)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        own = str(self.own_name(spec.name))
        if self.warns:
            _warn(spec.name, own, 2)
        module = import_module(own)
        spec.loader_state = module.__spec__, module.__loader__, module.__package__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        # The import system wrote the other name into the module; restore its own.
        module.__spec__, module.__loader__, module.__package__ = spec.loader_state


class _Package(ModuleType):
    """A package of core. An import binds the module in its package; that of an old name must not replace a function of today."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and callable(vars(self).get(name))):
            super().__setattr__(name, value)


def install(package: ModuleType, alias: str | None = None) -> None:
    """Make old modules of a package importable, by its name or by another one that it has.

    `import headlight.generate` gives the module, and headlight.generate() stays the function.
    """
    name = package.__name__

    def own_name(path: str) -> str | None:
        inside, _, old = path.partition(".")
        new = new_module(old) if inside == (alias or name) else None
        return None if new is None else f"{name}.{new}"

    # Before the finder of files, which would read core/patching/atlas.py a second time as core.sweep.atlas.
    sys.meta_path.insert(0, SameModule(own_name, warns=True))
    # The packages that have functions with the names of old modules.
    for loaded in (package, import_module(f"{name}.plan")):
        loaded.__class__ = _Package
