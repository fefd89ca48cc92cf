"""Old names of modules: code that was exported, and notebooks, still import core.given, core.walk, core.planner and the like."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

OLD_NAMES = {  # the module as it was called until 0.1, and where it is; core.model answers for itself
    "config": "model.config",
    "positions": "model.positions",
    "rules": "model.rules",
    "cache": "model.cache",
    "text": "model.text",
    "hooks": "model.hooks",
    "pooling": "model.pooling",
    "mask_edits": "model.mask_edits",
    "request": "run.request",
    "prompt": "run.prompt",
    "passes": "run.forward_pass",
    "recorder": "run.recorder",
    "attention": "run.attention",
    "chunks": "run.chunks",
    "moments": "run.activations",
    "weights": "run.weights",
    "capture": "run.capture",
    "together": "run.batched_trace",
    "predictions": "run.predictions",
    "still": "run.notebook_picture",
    "measures": "read.measures",
    "heads": "read.head_roles",
    "attribution": "read.attribution",
    "comparison": "read.comparison",
    "given": "read.conditional_loss",
    "walk": "read.layer_walk",
    "additions": "read.additions",
    "order": "read.word_order",
    "padding": "read.padding",
    "scaling": "read.scaling",
    "small": "read.worked_examples",
    "projections": "read.projections",
    "aggregate": "read.aggregate",
    "report": "read.report",
    "ablations": "sweep.ablations",
    "branches": "sweep.branches",
    "sweeps": "sweep.sweeps",
    "atlas": "sweep.atlas",
    "atlas_ray": "sweep.atlas_ray",
    "generate": "write.generate",
    "beams": "write.beams",
    "writing": "write.writing",
    "continuation": "write.continuation",
    "tasks": "learn.tasks",
    "training": "learn.training",
    "live": "learn.watched_training",
    "finished": "learn.saved_runs",
    "leakage": "learn.leakage",
    "forks": "learn.fork_states",
    "build": "checkpoints.build",
    "engine": "service.engine",
    "interventions.heads": "edits.head_edits",
    "interventions": "edits",
    "planner.live": "plan.live_bytes",
    "planner.passes": "plan.peak",
    "planner": "plan",
}
FOLDERS = {"interventions": "edits", "planner": "plan"}  # whose other modules kept their names


def new_name(old: str) -> str | None:
    """Where the module is that was called `old` inside core; None for a name that never was another."""
    folder, _, rest = old.partition(".")
    return OLD_NAMES.get(old) or (f"{FOLDERS[folder]}.{rest}" if folder in FOLDERS and rest else None)


class SameModule(MetaPathFinder, Loader):
    """Finds a module by another name: the same module, never a second copy of it. `named` gives its own name, None for no module here."""

    def __init__(self, named: Callable[[str], str | None]) -> None:
        self.named = named

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        own = self.named(fullname)
        there = None if own is None else find_spec(own)
        return None if there is None else ModuleSpec(fullname, self, origin=there.origin)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(str(self.named(spec.name)))
        spec.loader_state = module.__spec__, module.__loader__, module.__package__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        # The import system wrote the other name into the module; it stays what it is.
        module.__spec__, module.__loader__, module.__package__ = spec.loader_state


def install(package: str) -> None:
    """Make old names importable. Those of loaded modules are entered at once: an import would bind core.trace, a function, to its module."""

    def named(name: str) -> str | None:
        inside, _, old = name.partition(".")
        new = new_name(old) if inside == package else None
        return None if new is None else f"{package}.{new}"

    sys.meta_path.append(SameModule(named))
    for old in OLD_NAMES:
        module = sys.modules.get(f"{package}.{new_name(old)}")
        if module is not None:
            sys.modules.setdefault(f"{package}.{old}", module)
