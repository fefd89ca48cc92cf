"""A visitor's address and runs of a small model, without a browser and without Streamlit."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from core.service import Facts

TEXTS = {
    "cat": ["[CLS]", "The", "cat", "saw", "it", "."],
    "dog": ["[CLS]", "The", "dog", "saw", "a", "cat", "."],
    "no": ["[CLS]", "No", "."],
}


class Address(dict[str, str]):
    """As st.query_params."""

    def get_all(self, name: str) -> list[str]:
        return [self[name]] if name in self else []

    def to_dict(self) -> dict[str, str]:
        return dict(self)

    def change(self, changes: Mapping[str, str | None]) -> None:
        """As app.streamlit_edge.history does: None takes a name out."""
        for name, text in changes.items():
            if text is None:
                self.pop(name, None)
            else:
                self[name] = text


def facts(text: str, model: str = "small") -> Facts:
    """Of a run of one of TEXTS."""
    labels = TEXTS[text]
    sites = (SimpleNamespace(id="encoder", query="source", key="source"),)
    spec = SimpleNamespace(id=model)
    found: Any = SimpleNamespace(key=f"run of {text}", spec=spec, sites=sites, labels=labels)
    found.source = SimpleNamespace(text=text)
    found.tokens = lambda _: SimpleNamespace(labels=labels)
    return cast(Facts, found)
