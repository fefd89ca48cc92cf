"""Code that was exported before core had folders, and notebooks, import its modules by their old names."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import core
from core import old_names

ROOT = Path(__file__).resolve().parents[2]
FRESH = """
import core
from core.given import given
from core.walk import guesses, terms, walk
from core.padding import inertness
from core.leakage import leakage, relearnt
from core.scaling import WIDTHS
from core.model import Transformer
from core.trace import Trace
from core.planner.runs import run_bytes
from core.interventions import Ablate
from core.interventions.masks import Window
from core import aggregate, live, measures, small
import core.read.conditional_loss, core.run.trace
assert given is core.read.conditional_loss.given and Trace is core.Trace and Ablate is core.Ablate
assert callable(core.trace) and callable(core.generate) and callable(core.build) and callable(core.plan)
assert core.read.conditional_loss.__spec__.name == core.read.conditional_loss.__name__ == "core.read.conditional_loss"
assert core.text.from_ids and core.small is small
"""


@pytest.mark.parametrize("old", sorted(set(old_names.OLD_NAMES) - {"atlas_ray"}))  # which needs Ray
def test_an_old_name_is_the_module_of_today(old: str) -> None:
    new = import_module(f"core.{old_names.OLD_NAMES[old]}")
    assert import_module(f"core.{old}") is new
    assert new.__name__ == f"core.{old_names.OLD_NAMES[old]}"


def test_a_fresh_process_reads_what_was_exported() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", FRESH], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_name_that_never_was_is_refused_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"core\.nothing"):
        import_module("core.nothing")
    with pytest.raises(AttributeError, match="nothing"):
        getattr(core, "nothing")  # noqa: B009
    with pytest.raises(ImportError, match="nothing"):
        exec("from core.model import nothing")
