"""What every export says about itself: version, caption, and the lines of code that load and trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.export import files, words
from core.checkpoints import find
from core.errors import CheckpointError
from core.learn.text_training import key_of
from core.service import Facts
from core.version import __version__

if TYPE_CHECKING:
    import pandas as pd


def version() -> str:
    """Headlight's own."""
    return __version__


def load_line(run: Facts) -> str:
    """hl.load of this very model."""
    spec = run.spec
    if key_of(spec.id) is not None:  # a visitor has it as a download
        return 'loaded = hl.load("path/to/the-downloaded-folder")'
    if spec.source == "trained":
        return f"from headlight.learn import watched_training\n\nloaded = watched_training.trained({literal(spec.id)})  # learns it again: the same weights"
    if spec.source == "built":
        return f"loaded = ...  # {spec.title}: hl.build(config), {spec.note or 'random weights'}"
    if spec.source == "weights":
        return "attentions, tokens = ..." if spec.id == "from_attentions" else "cache, tokens = ..."
    if spec.source == "folder":  # where it lies on the server is no one's business
        arguments = [literal(f"path/to/{Path(spec.location).name}")]
    else:
        arguments = [literal(spec.id)]
        if spec.revision and _is_hub_name(spec.id):
            arguments.append(f"revision={literal(spec.revision)}")
    if run.device != "cpu":
        arguments.append(f"device={literal(run.device)}")
    if run.dtype != "float32":
        arguments.append(f"dtype=torch.{run.dtype}")
    return f"loaded = hl.load({', '.join(arguments)})"


def _is_hub_name(name: str) -> bool:
    try:
        return find(name).source == "hub"
    except CheckpointError:
        return False


def trace_line(run: Facts) -> str:
    if run.conversation is not None:
        return f"run = hl.trace_chat({', '.join(['loaded', messages(run.conversation), *_edits(run)])})"
    if run.spec.source == "weights":
        what = "attentions" if run.spec.id == "from_attentions" else "cache"
        return f"run = hl.{run.spec.id}({what}, tokens)"
    arguments = ["loaded", literal(run.source.text)]
    if run.target is not None and run.target.text:
        arguments.append(f"target={literal(run.target.text)}")
    return f"run = hl.trace({', '.join([*arguments, *_edits(run)])})"


def messages(conversation: tuple[str, str]) -> str:
    """A conversation as hl.trace_chat and Loaded.chat_tokens take it."""
    text, answer = conversation
    begun = f", answer={literal(answer)}" if answer else ""
    return f'[{{"role": "user", "content": {literal(text)}}}]{begun}'


def _edits(run: Facts) -> list[str]:
    edits = ", ".join(f"hl.edits.{edit}" for edit in run.interventions)
    return [f"interventions=[{edits}]"] if edits else []


def literal(text: str) -> str:
    """The text as Python writes it, with nothing in it that a spreadsheet could take for a formula once a line is cut."""
    return re.sub(r"([,;])([=+\-@])", lambda m: f"{m[1]}\\x{ord(m[2]):02x}", repr(text))


def line(parts: list[str]) -> str:
    return " · ".join(" ".join(part.split()) for part in parts)


def about(
    name: str, sentence: str, note: str, caption: str, code: str, tables: Sequence[tuple[str, str, pd.DataFrame]]
) -> dict[str, Any]:
    """What the browser puts into the files of a chart; `tables` are (label, file name, DataFrame)."""
    return {
        "title": sentence,
        "alt": words.ALT.format(sentence=sentence, note=note).strip(),
        "caption": caption,
        "snippet": code,
        "name": name,
        "tables": [(label, file, files.table_csv(table, caption, code)) for label, file, table in tables],
    }
