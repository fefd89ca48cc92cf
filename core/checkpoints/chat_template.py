"""The chat template that lies beside a tokenizer, as text: nothing here runs it."""

from __future__ import annotations

from pathlib import Path

from ..errors import CheckpointError
from .added_tokens import CONFIG
from .family import shown
from .files import read_json

FILE = "chat_template.jinja"
LONGEST = 1 << 20  # bytes; published ones have a few thousand


def read_chat_template(folder: Path) -> str:
    """chat_template.jinja, or chat_template of tokenizer_config.json as older folders have it: a text, or several by name, where
    the one called default counts. Empty where there is none. Raises CheckpointError for one that is no text or too long."""
    if (folder / FILE).is_file():
        try:
            if (folder / FILE).stat().st_size > LONGEST:
                raise CheckpointError(
                    f"{FILE} is larger than {LONGEST >> 20} MB, which no published file of that name is."
                )
            return (folder / FILE).read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CheckpointError(f"{FILE} cannot be read as text. Download it again.") from error
    said = read_json(folder / CONFIG).get("chat_template") if (folder / CONFIG).is_file() else None
    if isinstance(said, list):
        named = {each.get("name"): each.get("template") for each in said if isinstance(each, dict)}
        said = named.get("default", next(iter(named.values()), None))
    if said is not None and not isinstance(said, str):
        raise CheckpointError(
            f"{CONFIG}: chat_template is {shown(said)}, but it must be a text or a list of texts by name."
        )
    return said or ""
