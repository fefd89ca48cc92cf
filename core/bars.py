"""Bars of work that takes a while, for a person at a terminal or in a notebook: as tqdm draws them, and gone when it is done.

Nothing is drawn where no one looks: in a server, a pipe, a test. TQDM_DISABLE=1 leaves them out everywhere, as in other programs.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_served = False  # whether this process answers others
DELAY = 1.0  # seconds before a bar is there: most work is done by then
REST = 0.1  # seconds between two drawings


def none_here() -> None:
    """From now on, in this process: no bars. It answers others, and its terminal is a log."""
    global _served
    _served = True


def is_watched() -> bool:
    """Whether a person sees it: in a notebook's kernel, or where errors go to a terminal."""
    if _served:
        return False
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        return True
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def bar(**look: Any) -> Iterator[Callable[[int, int, str], None]]:
    """A bar that is told (done, of, what); `look` is as tqdm takes it, such as unit="layer". It goes also where the work is broken off."""
    if not is_watched() or os.environ.get("TQDM_DISABLE", "0") not in ("", "0"):
        yield lambda *_: None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a notebook has no ipywidgets: tqdm then draws with letters
        from tqdm.auto import tqdm

    with tqdm(file=sys.stderr, leave=False, delay=DELAY, mininterval=REST, disable=False, **look) as drawn:

        def tell(done: int, of: int, what: str) -> None:
            drawn.total = of
            if what != drawn.desc.removesuffix(": "):
                drawn.set_description(what, refresh=False)
            drawn.update(done - drawn.n)

        yield tell
