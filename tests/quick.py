"""Which files of tests `make quick` runs, and which it leaves to `make test`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent
# Measured with `pytest tests/core --durations=0` on one core: each of these takes some 0.6 seconds or more. What takes as long and is
# asked all the same: parity, invariants, the kernels against the textbook, the names of heads, what an edit does, the planner's fit. A
# new file is quick until somebody writes it here.
SLOW = frozenset(
    {
        "core/plan/test_adapters",
        "core/plan/test_cards",
        "core/plan/test_chunks",
        "core/plan/test_operations",
        "core/plan/test_parameters",
        "core/plan/test_plan",
        "core/plan/test_runs",
        "core/plan/test_saved",
        "core/plan/test_tracing",
        "core/plan/test_verdict",
        "core/plan/test_weights",
        "core/test_ablations",
        "core/test_added_tokens",
        "core/test_additions",
        "core/test_atlas",
        "core/test_attribution",
        "core/test_batched_trace",
        "core/test_capture_masks",
        "core/test_card",
        "core/test_chat",
        "core/test_checkpoints",
        "core/test_chunks",
        "core/test_command_line",
        "core/test_docs_notebooks",
        "core/test_edited_models",
        "core/test_engine",
        "core/test_families",
        "core/test_fetching",
        "core/test_findings",
        "core/test_generate",
        "core/test_labels",
        "core/test_long_context",
        "core/test_looks",
        "core/test_next_tokens",
        "core/test_old_names",
        "core/test_order_service",
        "core/test_own_format",
        "core/test_pairs",
        "core/test_paper_figures",
        "core/test_parts",
        "core/test_parts_smollm2",
        "core/test_paths",
        "core/test_position_counts",
        "core/test_projections",
        "core/test_public_reports",
        "core/test_races",
        "core/test_records",
        "core/test_refused_checkpoints",
        "core/test_rounded",
        "core/test_saved_runs",
        "core/test_scaling",
        "core/test_service",
        "core/test_service_masks",
        "core/test_service_paths",
        "core/test_service_turns",
        "core/test_shipped",
        "core/test_strip",
        "core/test_swaps",
        "core/test_sweeps",
        "core/test_tasks",
        "core/test_trainer",
        "core/test_training",
        "core/test_unmasked",
        "core/test_unopened",
        "core/test_watched_training",
        "core/test_wrapped",
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
