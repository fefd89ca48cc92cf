"""`make dev`: Headlight as it is while somebody edits it. What changed on disk is on the screen at the next load of the page."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from app.transport import edited  # noqa: E402


def command(arguments: list[str]) -> list[str]:
    """What starts the server; `arguments` are more of Streamlit's options.

    Streamlit watches the folder and runs the scripts of open pages again. It is kept from what it does with modules else: it would
    import all of them anew, those too that hold the models and the runs of this process. edited.py knows which can be.
    """
    watch = {
        "fileWatcherType": "auto",
        "runOnSave": "true",
        "folderWatchList": str(ROOT / "app"),
        "folderWatchBlacklist": str(ROOT),
    }
    options = [part for name, value in watch.items() for part in (f"--server.{name}", value)]
    return [sys.executable, "-m", "streamlit", "run", str(ROOT / "app" / "main.py"), *options, *arguments]


if __name__ == "__main__":
    os.chdir(ROOT)
    # A folder that is watched is no place for what Python writes when it has imported a module.
    mine = {edited.SETTING: "1", "PYTHONDONTWRITEBYTECODE": "1"}
    os.execve(sys.executable, command(sys.argv[1:]), os.environ | mine)
