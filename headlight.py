"""`import headlight` in a checkout: the very modules of core and app, under the names that they have once they are installed.

An installed Headlight is a package of this name; here the same package lies in core/. A class of headlight.run.trace is the
class of core.run.trace, so that code which the screens export does here what it does anywhere.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from core.old_names import SameModule, install

if TYPE_CHECKING:
    from core import *  # noqa: F403

INSTALLED = "headlight"
HERE = {f"{INSTALLED}.app": "app", f"{INSTALLED}.cluster": "cluster", INSTALLED: "core"}  # the longest name first


def name_here(installed: str) -> str | None:
    """The name that a module of an installed Headlight has in a checkout: headlight.app.kit is app.kit, headlight.run is core.run."""
    if not installed.startswith(f"{INSTALLED}."):
        return None
    package = next(name for name in HERE if installed == name or installed.startswith(f"{name}."))
    return HERE[package] + installed.removeprefix(package)


if __name__ == "__main__":
    from core.__main__ import main

    sys.exit(main(prog=f"python -m {INSTALLED}"))

sys.meta_path.insert(0, SameModule(name_here))  # before the finder of files, which would read them a second time
core = import_module(HERE[INSTALLED])
install(core, INSTALLED)
for name, loaded in list(sys.modules.items()):
    if name.startswith("core."):
        sys.modules.setdefault(INSTALLED + name.removeprefix("core"), loaded)
sys.modules[INSTALLED] = core
