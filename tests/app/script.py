"""The script of a visit, run without a browser: its boxes, sentences and messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from app.transport import messages

UI = str(Path(__file__).resolve().parents[2] / "app" / "ui.py")


def visit(view: str, **params: str) -> AppTest:
    """Open a link to a room and run the script to its end."""
    return follow({"view": view, **params})


def follow(params: Mapping[str, str]) -> AppTest:
    """Open an address with these parameters and run the script to its end."""
    app = AppTest.from_file(UI, default_timeout=60)
    for name, value in params.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    """Every sentence on the page."""
    return "\n".join(item.value for item in app.text)


def box(app: AppTest, label: str) -> Any:
    """The text area or select box with this label."""
    return next(box for box in (*app.text_area, *app.selectbox, *app.number_input) if box.label == label)


def keyed(items: Iterable[Any], name: str) -> Any:
    """The one of these elements that holds a parameter of the address."""
    return next(item for item in items if str(item.key).startswith(f"box_{name}_"))


def slider(app: AppTest, name: str) -> Any:
    """A slider of the planner."""
    return keyed(app.select_slider, f"plan_{name}")


def message(app: AppTest, component: str) -> dict[str, Any]:
    """The header of the message to a component."""
    (found,) = [
        item.proto.bytes  # type: ignore[attr-defined]
        for item in app.get("bidi_component")
        if item.proto.component_name.endswith(component)  # type: ignore[attr-defined]
    ]
    return messages.unpack(found)[0]


def selection(app: AppTest, component: str) -> dict[str, str]:
    """The selection in a room, as parameters of a link."""
    return message(app, component)["chosen"]["values"]


def headline(app: AppTest) -> str:
    """The sentence above a chart."""
    return message(app, "planner")["sentence"]
