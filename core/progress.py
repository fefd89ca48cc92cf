"""Progress bars (tqdm) in terminals and notebooks. They disappear when the work is done.

There are none in servers, pipes and tests, or with TQDM_DISABLE=1.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

DELAY = 1.0  # seconds before a bar appears; most work finishes sooner
REST = 0.1  # seconds between two updates


def is_watched() -> bool:
    """True in a notebook's kernel, or if standard error is a terminal.

    Only in the main thread: other threads are those of a server, whose terminal is a log.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    return _is_kernel() or (sys.stderr is not None and sys.stderr.isatty())


def _is_kernel() -> bool:
    """True in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def progress_bar(**look: Any) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar; yields a function to update it with (done, of, what). `look` has options of tqdm, such as unit="layer"."""
    if not is_watched() or os.environ.get("TQDM_DISABLE", "0") not in ("", "0"):
        yield lambda *_: None
        return
    # The choice of tqdm.auto, without its warning in notebooks that lack widgets.
    if _is_kernel() and importlib.util.find_spec("ipywidgets"):
        from tqdm.notebook import tqdm
    else:
        from tqdm.std import tqdm

    with tqdm(file=sys.stderr, leave=False, delay=DELAY, mininterval=REST, disable=False, **look) as shown:

        def update(done: int, of: int, what: str) -> None:
            shown.total = of
            if what != shown.desc.removesuffix(": "):
                shown.set_description(what, refresh=False)
            shown.update(done - shown.n)

        yield update
