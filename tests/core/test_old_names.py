"""Code that was exported before core had folders, and notebooks, import its modules by their old names."""

from __future__ import annotations

from importlib import import_module

import pytest

import core
from core import old_names


@pytest.mark.parametrize("old", sorted(set(old_names.OLD_NAMES) - {"atlas_ray"}))  # which needs Ray
def test_an_old_name_is_the_module_of_today(old: str) -> None:
    new = import_module(f"core.{old_names.OLD_NAMES[old]}")
    assert import_module(f"core.{old}") is new
    assert new.__name__ == f"core.{old_names.OLD_NAMES[old]}"


def test_a_name_that_never_was_is_refused_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"core\.nothing"):
        import_module("core.nothing")
    with pytest.raises(AttributeError, match="nothing"):
        getattr(core, "nothing")  # noqa: B009
    with pytest.raises(ImportError, match="nothing"):
        exec("from core.model import nothing")
