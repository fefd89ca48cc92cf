"""Bars of work that takes a while, for a person at a terminal or in a notebook: as tqdm draws them, and gone when it is done.

Nothing is drawn where no one looks: in a server, a pipe, a test. TQDM_DISABLE=1 leaves them out everywhere, as in other programs.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

DELAY = 1.0  # seconds before a bar is there: most work is done by then
REST = 0.1  # seconds between two drawings


def is_watched() -> bool:
    """Whether a person sees it: in a notebook's kernel, or where errors go to a terminal.

    They wait in the main thread. Work of any other one is a server's, whose terminal is a log.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    return _kernel() or (sys.stderr is not None and sys.stderr.isatty())


def _kernel() -> bool:
    """Whether this is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def bar(**look: Any) -> Iterator[Callable[[int, int, str], None]]:
    """A bar that is told (done, of, what); `look` is as tqdm takes it, such as unit="layer". It goes also where the work is broken off."""
    if not is_watched() or os.environ.get("TQDM_DISABLE", "0") not in ("", "0"):
        yield lambda *_: None
        return
    # As tqdm.auto chooses, but for its warning where a notebook has no widgets: it is drawn with letters then.
    if _kernel() and importlib.util.find_spec("ipywidgets"):
        from tqdm.notebook import tqdm
    else:
        from tqdm.std import tqdm

    with tqdm(file=sys.stderr, leave=False, delay=DELAY, mininterval=REST, disable=False, **look) as drawn:

        def tell(done: int, of: int, what: str) -> None:
            drawn.total = of
            if what != drawn.desc.removesuffix(": "):
                drawn.set_description(what, refresh=False)
            drawn.update(done - drawn.n)

        yield tell
