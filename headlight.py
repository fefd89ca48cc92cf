"""`import headlight` in a checkout: the very modules of core and app, under the names that they have once they are installed.

An installed Headlight is a package of this name; here the same package lies in core/. A class of headlight.run.trace is the
class of core.run.trace, so that code which the screens export does here what it does anywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core import *  # noqa: F403

INSTALLED = "headlight"
HERE = {f"{INSTALLED}.app": "app", f"{INSTALLED}.cluster": "cluster", INSTALLED: "core"}  # the longest name first


def name_here(installed: str) -> str:
    """What a module of an installed Headlight is called in a checkout: headlight.app.kit is app.kit, headlight.run is core.run."""
    package = next(name for name in HERE if installed == name or installed.startswith(f"{name}."))
    return HERE[package] + installed.removeprefix(package)


class SameModule(MetaPathFinder, Loader):
    """Finds a module of headlight as the one of core or app that it is, never a second copy of it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{INSTALLED}."):
            return None
        there = find_spec(name_here(fullname))
        if there is None:
            return None
        return ModuleSpec(fullname, self, origin=there.origin)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(name_here(spec.name))
        spec.loader_state = module.__spec__, module.__loader__, module.__package__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        # The import system wrote the new name into the module; it stays what it is.
        module.__spec__, module.__loader__, module.__package__ = spec.loader_state


if __name__ == "__main__":
    from core.__main__ import main

    sys.exit(main(prog=f"python -m {INSTALLED}"))

sys.meta_path.insert(0, SameModule())  # before the finder of files, which would read them a second time
core = import_module(HERE[INSTALLED])
for name, loaded in list(sys.modules.items()):
    if name.startswith("core."):  # at once, the old names of modules among them: to import one would bind it in core
        sys.modules.setdefault(INSTALLED + name.removeprefix("core"), loaded)
sys.modules[INSTALLED] = core
