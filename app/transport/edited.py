"""What is read again while a developer edits it (`make dev`): whether that is so, and what has changed on disk."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeVar

SETTING = "HEADLIGHT_DEV"  # scripts/dev.py sets it, and nothing else does
ON = os.environ.get(SETTING) == "1"
READ = ("*.js", "*.css")  # of the folders that are watched
WORDS = "words"  # the last part of the name of a module that has only words

log = logging.getLogger("headlight")
Stamps = dict[Path, tuple[int, int]]  # path -> when it was changed, in ns, and its bytes
Found = TypeVar("Found")
_lock = threading.Lock()
_imported: dict[str, Stamps] = {}  # package -> its files when it was looked at last


def cached(work: Callable[[], Found]) -> Callable[[], Found]:
    """functools.cache, but computed at every call while files are edited."""
    return work if ON else cache(work)


def cached_by(work: Callable[[str], Found]) -> Callable[[str], Found]:
    """The same of work that differs by language."""
    return work if ON else cache(work)


def stamps(folders: Iterable[Path]) -> Stamps:
    """The browser's files in these folders, and the modules with words that are imported, as they lie on disk now."""
    files = [path for folder in folders for kind in READ for path in folder.glob(kind)]
    return _stamped([*files, *(Path(module.__file__) for module in _words() if module.__file__)])


def reload_words(before: Stamps, now: Stamps) -> None:
    """Evaluate the modules with words again if one of them has changed. One that cannot be read stays as it was."""
    if not any(path.suffix == ".py" and before.get(path) != stamp for path, stamp in now.items()):
        return
    for module in _words():  # in the order in which they were imported: each after those whose words it repeats
        try:
            importlib.reload(module)
        except Exception:  # whatever a half-written file raises: its author reads it and goes on
            log.exception("%s cannot be read. What it said before stays.", module.__name__)


def forget_changed(package: str) -> None:
    """While files are edited: if a module of a package has changed, the next to import one of them gets all of them again.

    That is for modules that no one else holds and that hold nothing that lasts.
    """
    if not ON:
        return
    with _lock:
        found = sys.modules.get(package)
        if found is None or not found.__file__:
            return
        now = _stamped(Path(found.__file__).parent.rglob("*.py"))
        before = _imported.setdefault(package, now)
        if now == before:
            return
        _imported[package] = now
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]


def _stamped(paths: Iterable[Path]) -> Stamps:
    found: Stamps = {}
    for path in paths:
        try:
            stat = path.stat()
        except FileNotFoundError:  # an editor that saves by renaming, caught in between
            continue
        found[path] = (stat.st_mtime_ns, stat.st_size)
    return found


def _words() -> list[ModuleType]:
    app = importlib.util.resolve_name("..", __package__)
    known = [module for name, module in list(sys.modules.items()) if name.startswith(f"{app}.")]
    return [module for module in known if module.__name__.rsplit(".", 1)[-1] == WORDS]
