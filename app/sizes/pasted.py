"""The config.json that a visitor pastes: as our config, as a link says it, and the box that it is pasted into."""

from __future__ import annotations

import json
import math
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import Any

import streamlit as st

from app.kit import params
from app.session import room
from app.sizes import words
from app.streamlit_edge.history import is_history_navigation
from core.checkpoints.described import described
from core.errors import Refused
from core.model.config import ModelConfig

MOST_TEXT = 100_000  # characters of a config.json
RAW = -zlib.MAX_WBITS  # deflate without a header, which a link does not need
LINK = re.compile(r"[A-Za-z0-9_-]*")
NO_SHAPE = ("dtype", "torch_dtype", "quantization_config")  # of the weights, which a page has its own choices for


class _Watched(dict[str, Any]):
    """A config.json that notes which of its keys were asked for."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def config_of(text: str) -> ModelConfig:
    """The config in the text of a Hub config.json; no weights are needed. Raises Refused with a sentence."""
    return _read(text)[0]


@lru_cache(maxsize=16)
def to_link(text: str) -> str:
    """What decides of a config.json, for a link that brings the same model back. Raises Refused where config_of does, or it is too long."""
    config, decides = _read(text)
    short = _packed(decides)
    if len(short) > params.MOST:
        raise Refused(words.PASTE_NO_LINK.format(n=len(short), most=params.MOST))
    if config_of(from_link(short)) != config:
        raise AssertionError("a config.json was read without a key being asked for")
    return short


def from_link(said: str) -> str:
    """The text that a link brings, as it stands in the box. Raises ValueError where it is damaged; its config is still to be read."""
    if len(said) > params.MOST or LINK.fullmatch(said) is None:
        raise ValueError("too long, or with letters that no such link has")
    opened = zlib.decompressobj(RAW)
    try:
        packed = opened.decompress(urlsafe_b64decode(said + "=" * (-len(said) % 4)), MOST_TEXT)
        values = json.loads(packed)
        text = json.dumps(values, indent=2)
    except (zlib.error, RecursionError) as error:
        raise ValueError("damaged") from error
    if not opened.eof or opened.unused_data or not isinstance(values, dict):
        raise ValueError("cut off, or not a config")
    return text


def _packed(values: dict[str, Any]) -> str:
    packer = zlib.compressobj(9, zlib.DEFLATED, RAW)
    packed = packer.compress(json.dumps(values, separators=(",", ":")).encode()) + packer.flush()
    return urlsafe_b64encode(packed).decode().rstrip("=")


def _read(text: str) -> tuple[ModelConfig, dict[str, Any]]:
    """The config, and the part of its text that was read. Raises Refused."""
    if len(text) > MOST_TEXT:
        raise Refused(words.PASTE_TOO_LONG.format(n=len(text)))
    text = text.removeprefix("\ufeff")  # which some editors put before a text
    try:
        values = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise Refused(_damage(text, error)) from error
    except Refused:  # which is a ValueError
        raise
    except (RecursionError, ValueError) as error:  # a number of thousands of digits
        raise Refused(words.PASTE_STRANGE) from error
    if not isinstance(values, dict):
        raise Refused(words.PASTE_NO_OBJECT)
    watched = _Watched(values)
    config = described(watched).config
    return config, {key: value for key, value in values.items() if key in watched.asked and key not in NO_SHAPE}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a config.json. Raises Refused for a key with two values, of which JSON takes the last, and for NaN and Infinity."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            first, second = (_short(json.dumps(some)) for some in (found[key], value))
            raise Refused(words.PASTE_TWICE.format(key=_short(key), first=first, second=second))
        if isinstance(value, float) and not math.isfinite(value):
            raise Refused(words.PASTE_NO_NUMBER.format(key=_short(key), value=json.dumps(value)))
        found[key] = value
    return found


def _damage(text: str, error: json.JSONDecodeError) -> str:
    """Why a text is no JSON, and what to paste in its place: said by what it looks like."""
    if text.lstrip().startswith("<"):
        return words.PASTE_PAGE
    before, rest = text[: error.pos], text[error.pos :].strip()
    if error.msg == "Extra data":
        return words.PASTE_MORE.format(line=before.rstrip().count("\n") + 1, rest=_short(rest))
    plain = re.sub(r'"(?:[^"\\]|\\.)*"?', "", text)
    open_ = sum(map(plain.count, "{[")) - sum(map(plain.count, "}]"))
    if open_ > 0 and (not rest or error.msg.startswith("Unterminated string")):
        return words.PASTE_CUT_OFF.format(open=open_, brackets=words.BRACKETS[open_ > 1])
    if re.match(r"'|(?:True|False|None)\b", rest):
        return words.PASTE_PYTHON.format(line=error.lineno, column=error.colno)
    return words.PASTE_NO_JSON.format(line=error.lineno, column=error.colno, message=error.msg)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def _read_link(said: str, _: Any) -> str:
    from_link(said)
    return said


CONFIG = params.Param("config", "", _read_link, words.CONFIG_IN_LINK)


def box(view: str, notes: list[str]) -> ModelConfig:
    """What stands in a room's box, which a link fills and which the address follows. Raises Refused; sentences go to `notes`."""
    _take(view, notes)
    text = st.text_area(words.PASTE, key=f"{view}_paste", help=words.PASTE_HELP, height=220) or ""
    st.session_state[f"{view}_pasted"] = text  # Streamlit forgets a box that is not drawn
    if not text.strip():
        leave()
        raise Refused(words.PASTE_FIRST)
    config = config_of(text)
    try:
        said = to_link(text)
        if st.query_params.get(CONFIG.name) != said:
            st.query_params[CONFIG.name] = said
    except Refused as refusal:
        leave()
        notes.append(str(refusal))
    return config


def leave() -> None:
    """Take the config out of the address: another model is on the page."""
    st.query_params.pop(CONFIG.name, None)


def _take(view: str, notes: list[str]) -> None:
    """Fill the box before it is drawn: a link counts when the room is entered and when the visitor goes back, and no late message does."""
    session, name = st.session_state, CONFIG.name
    session.setdefault(f"{view}_paste", session.get(f"{view}_pasted", ""))
    arrivals = session.get(room.ARRIVALS, 0)
    if arrivals == session.get(f"{view}_arrivals"):
        return
    asked = {name: st.query_params[name]} if name in st.query_params else {}
    values, wrong = params.read((CONFIG,), None, asked)
    notes += wrong
    if values[name]:
        session[f"{view}_paste"] = from_link(values[name])
    elif is_history_navigation():
        session[f"{view}_paste"] = ""
    session[f"{view}_arrivals"] = arrivals  # last: a script that is broken off before leaves it to the next
