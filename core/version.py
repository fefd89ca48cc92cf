"""Which version of Headlight this is: of the package that is installed, or of the folder that it runs from."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

DISTRIBUTION = "headlight-attention"  # on a package index `headlight` is another program's
PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def _version() -> str:
    if PROJECT.is_file():  # a checkout, whatever is installed beside it
        project = tomllib.loads(PROJECT.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == DISTRIBUTION:
            return project["version"]
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:  # a copy of the folder alone
        return "unknown"


__version__ = _version()
