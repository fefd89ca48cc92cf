"""Code that was exported by an older Headlight, and notebooks, find modules and names of core by their old names, with a warning."""

from __future__ import annotations

import json
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import core
from core import old_names
from tests import wheels

ROOT = Path(__file__).resolve().parents[2]
NEEDS_RAY = {"atlas_ray", "sweep.atlas_ray"}
OLD = sorted(old_names.MODULES.keys() | old_names.FOLDERS.keys())

# In a process of its own, because a module is imported once. Packages are imported before their modules, which would import them.
IMPORTED = """
import json
import sys
import warnings
from importlib import import_module
from pathlib import Path

import core
import core.labs, core.peers, core.service

def functions():
    packages = {name: module for name, module in sys.modules.items() if name.startswith("core") and hasattr(module, "__path__")}
    return {f"{name}.{key}": id(value) for name, module in packages.items() for key, value in vars(module).items() if callable(value)}

before, found = functions(), {}
for number, name in enumerate(sys.argv[1:]):
    file = Path(f"caller{number}.py")
    file.write_text(f"import {name}")
    sys.path.insert(0, ".")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import_module(file.stem)
    module = sys.modules[name]
    spec = module.__spec__
    found[name] = [module.__name__, spec.name, [(str(each.message), each.filename, each.lineno) for each in caught]]
after = functions()
assert {name: after.get(name) for name in before} == before, [name for name in before if after.get(name) != before[name]]
print(json.dumps(found))
"""


@pytest.mark.parametrize("package", ["core", "headlight"])
def test_an_old_module_is_imported_as_the_one_of_today_and_warns_once(package: str, tmp_path: Path) -> None:
    folders = [f"{folder}.{new}" for folder, new in (("planner", "verdict"), ("planner", "plan"), ("sweep", "atlas"))]
    names = [
        f"{package}.{old}" for old in sorted({*OLD, *folders} - NEEDS_RAY, key=lambda name: (name.count("."), name))
    ]
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nimport {package}\n"
    found = json.loads(wheels.ran(sys.executable, "-c", start + IMPORTED, *names, cwd=tmp_path))
    assert found.keys() == set(names)
    for number, name in enumerate(names):
        module, spec, caught = found[name]
        now = f"core.{old_names.new_module(name.removeprefix(f'{package}.'))}"
        assert module == spec == now
        ((message, file, line),) = caught
        assert message == f"{name} is now {now}. The old name is removed in the next release."
        assert (Path(file).name, line) == (f"caller{number}.py", 1)


@pytest.mark.parametrize("old", sorted(old_names.NAMES))
def test_an_old_name_is_the_object_of_today_and_warns_once(old: str) -> None:
    module, new = old_names.NAMES[old]
    place = ".".join(filter(None, ("core", module)))
    assert old not in core.__all__
    for use in (f"from core import {old} as value", f"import headlight\nvalue = headlight.{old}"):
        names: dict[str, object] = {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            exec(compile(use, "caller.py", "exec"), names)
        assert names["value"] is getattr(import_module(place), new)
        (warning,) = caught
        assert warning.category is DeprecationWarning and f"core.{old} is now {place}.{new}." in str(warning.message)
        assert (warning.filename, warning.lineno) == ("caller.py", 1 + use.count("\n"))


def test_no_old_name_is_a_name_of_today() -> None:
    folder = ROOT / "core"
    today = {".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")}
    today = {name.removesuffix(".__init__") for name in today}
    assert not today & set(OLD)
    assert {old_names.new_module(old) for old in OLD} <= today


def test_a_name_that_never_was_is_refused_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"core\.nothing"):
        import_module("core.nothing")
    with pytest.raises(AttributeError, match="nothing"):
        getattr(core, "nothing")  # noqa: B009
    with pytest.raises(ImportError, match="nothing"):
        exec("from core.model import nothing")
