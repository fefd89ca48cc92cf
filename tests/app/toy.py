"""The application with one more room, from a temporary folder and with one line in the registry: `streamlit run tests/app/toy.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import mkdtemp

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

from app import rooms  # noqa: E402
from app.shell import registry  # noqa: E402

FILES = {
    "words.py": '''
"""Words of the toy room."""

TITLE = "Toy"
LINE = "Nothing but a sentence"
SENTENCE = "This room stands in a temporary folder."
''',
    "view.py": '''
"""The toy room: a sentence with a projector and files, and a line that its own browser file writes."""

from datetime import date
from pathlib import Path

import pandas as pd
from streamlit.components import v2

from app.export import about
from app.kit import headline
from app.rooms.toy import words
from app.transport import modules

modules.add("rooms/toy/browser", Path(__file__).parent / "browser")
_component = v2.component("toy", html='<p class="toy"></p>', js=modules.loader("rooms/toy/browser/toy.js"))


def show():
    caption = about.line([words.SENTENCE, f"Headlight {about.version()}", date.today().isoformat()])
    table = pd.DataFrame({"number": [1, 2]})
    files = about.about("headlight-toy", words.SENTENCE, "", caption, "print(1)", [("numbers", "headlight-toy", table)])
    headline.headline("toy", {"sentence": words.SENTENCE, "scale": headline.scale("toy"), "about": files})
    _component(key="toy", data="drawn in the browser")
''',
    "browser/toy.js": """
// One line, written by the helper that all rooms share.

import { add } from "../../../kit/browser/dom.js";

export default function ({ data, parentElement }) {
  const place = parentElement.querySelector(".toy");
  place.replaceChildren();
  add(place, "b").textContent = data;
}
""",
    "__init__.py": '''
"""The toy room."""

from app.rooms.toy import view, words
from app.kit.room import Room

ROOM = Room(id="toy", title=words.TITLE, group="learn", line=words.LINE, show=view.show)
''',
}

FOLDER = Path(mkdtemp(prefix="headlight-room-"))
for name, text in FILES.items():
    path = FOLDER / "toy" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.lstrip(), encoding="utf-8")

rooms.__path__.append(str(FOLDER))
registry.ROOMS = (*registry.ROOMS, "toy")

from app import main  # noqa: E402
from app.shell import errors, routes  # noqa: E402

app = st.App(
    ROOT / "app" / "ui.py",
    lifespan=main.lifespan,
    routes=routes.ROUTES,
    middleware=main.MIDDLEWARE,
    on_script_error=errors.on_script_error,
)
