"""Which files of tests `make quick` runs, and which it leaves to `make test`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent
# Measured with `pytest tests/core --durations=0` on one core: each of these takes some 0.6 seconds or more. What takes as long and is
# asked all the same: parity, invariants, the kernels against the textbook, the names of heads, what an edit does, the planner's fit. A
# new file is quick until somebody writes it here.
SLOW = frozenset(
    {
        "core/plan/test_chunks",
        "core/plan/test_operations",
        "core/plan/test_parameters",
        "core/plan/test_plan",
        "core/plan/test_runs",
        "core/plan/test_saved",
        "core/plan/test_tracing",
        "core/test_ablations",
        "core/test_additions",
        "core/test_atlas",
        "core/test_attribution",
        "core/test_card",
        "core/test_checkpoints",
        "core/test_chunks",
        "core/test_command_line",
        "core/test_edited_models",
        "core/test_engine",
        "core/test_families",
        "core/test_fetching",
        "core/test_saved_runs",
        "core/test_generate",
        "core/test_watched_training",
        "core/test_order_service",
        "core/test_own_format",
        "core/test_projections",
        "core/test_races",
        "core/test_records",
        "core/test_refused_checkpoints",
        "core/test_scaling",
        "core/test_service",
        "core/test_service_masks",
        "core/test_service_turns",
        "core/test_shipped",
        "core/test_sweeps",
        "core/test_tasks",
        "core/test_batched_trace",
        "core/test_trainer",
        "core/test_training",
        "core/test_writing",
    }
)


def files() -> list[Path]:
    """What `make quick` runs: who may import whom, the browser's logic, and of core what is not slow."""
    core = [path for path in sorted((ROOT / "core").rglob("test_*.py")) if not is_slow(path)]
    return [ROOT / "test_layering.py", *core, ROOT / "js"]


def is_slow(path: Path) -> bool:
    """Whether a file of tests is one of them."""
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).with_suffix("").as_posix() in SLOW
