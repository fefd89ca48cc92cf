"""Called by `headlight run`: Streamlit with this server, in this process, until it is told to stop."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from streamlit.web import cli

from app.session import settings
from core import checkpoints
from core.errors import HeadlightError

MAIN = Path(__file__).with_name("main.py")
OWN_MACHINE = ("localhost", "127.0.0.1", "::1")  # no other machine reaches these


def start(address: str, port: int | None, models: Sequence[str]) -> None:
    """Serve the screens. `models` are offered beside those that ship, and the first of them opens.

    Raises Refused for a port or a model that cannot be one.
    """
    if port is not None and not 0 < port < 1 << 16:
        raise HeadlightError(f"--port is {port}, but it must be between 1 and 65,535.")
    if address in OWN_MACHINE:
        os.environ.setdefault(settings.OWN_MACHINE, "1")
    if models:
        offer(models)
    folder = next(folder for folder in MAIN.parents if (folder / ".streamlit").is_dir())
    if folder != MAIN.parent:  # a checkout: Streamlit looks for its settings beside the script, and where it is started
        os.chdir(folder)
    listens = ["--server.address", address, *(["--server.port", str(port)] if port else [])]
    cli.main(["run", str(MAIN), *listens], prog_name="headlight")


def offer(models: Sequence[str]) -> None:
    """Add these to the models of the chooser, by the environment that the server reads."""
    found = [checkpoints.find(name) for name in models]
    places = [str(Path(spec.location).resolve()) if spec.source == "folder" else spec.id for spec in found]
    if cut := next((place for place in places if "," in place), None):
        raise HeadlightError(f"The path {cut} has a comma in it, which separates models. Give the folder another name.")
    before = os.environ.get(settings.MODELS)
    os.environ[settings.MODELS] = ",".join([*([before] if before else []), *places])
    os.environ[settings.DEFAULT] = Path(places[0]).name if found[0].source == "folder" else found[0].id
