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

from app import languages
from app.kit import numbers, params, widgets
from app.kit.widgets import Control, Panel
from app.session import boxes
from app.sizes import words
from core.checkpoints.from_config import parse_config
from core.errors import HeadlightError
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

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)


def config_of(text: str) -> ModelConfig:
    """The config in the text of a Hub config.json; no weights are needed. Raises Refused with a sentence."""
    return _read(text)[0]


@lru_cache(maxsize=16)
def to_link(text: str) -> str:
    """What decides of a config.json, for a link that brings the same model back. Raises Refused where config_of does, or it is too long."""
    config, decides = _read(text)
    short = _packed(decides)
    if len(short) > params.MOST:
        raise HeadlightError(numbers.filled(words.PASTE_NO_LINK, n=len(short), most=params.MOST))
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
        raise HeadlightError(numbers.filled(words.PASTE_TOO_LONG, n=len(text)))
    text = text.removeprefix("\ufeff")  # which some editors put before a text
    try:
        values = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise HeadlightError(_damage(text, error)) from error
    except HeadlightError:  # which is a ValueError
        raise
    except (RecursionError, ValueError) as error:  # a number of thousands of digits
        raise HeadlightError(words.PASTE_STRANGE) from error
    if not isinstance(values, dict):
        raise HeadlightError(words.PASTE_NO_OBJECT)
    watched = _Watched(values)
    config = parse_config(watched).config
    return config, {key: value for key, value in values.items() if key in watched.asked and key not in NO_SHAPE}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a config.json. Raises Refused for a key with two values (JSON takes the last), and for NaN and Infinity."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            first, second = (_short(json.dumps(some)) for some in (found[key], value))
            raise HeadlightError(words.PASTE_TWICE.format(key=_short(key), first=first, second=second))
        if isinstance(value, float) and not math.isfinite(value):
            raise HeadlightError(words.PASTE_NO_NUMBER.format(key=_short(key), value=json.dumps(value)))
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
    if said:
        from_link(said)
    return said


def _to_link(text: str) -> str:
    """What a link says of the box; "" of what it cannot say."""
    try:
        return to_link(text) if text.strip() else ""
    except HeadlightError:
        return ""


CONTROL = Control(
    params.Param("config", "", _read_link, words.CONFIG_IN_LINK), lambda said: from_link(said) if said else "", _to_link
)
CONFIG = CONTROL.param


def fill(panel: Panel, is_shown: bool) -> list[str]:
    """Have the box hold the config that a link brings; a link that has none leaves it, where it is not on the screen, as it is."""
    if is_shown or CONFIG.name in panel.asked() or not boxes.is_filled(CONFIG.name):
        return panel.fill(None, [CONFIG.name])
    return []


def held() -> ModelConfig | None:
    """The config in the box; None where there is none."""
    try:
        return config_of(boxes.held(CONFIG.name) or "")
    except HeadlightError:
        return None


def box(wrong: list[str]) -> ModelConfig:
    """What stands in the box of a config.json. Raises Refused; a sentence on a link that has no room for it goes to `wrong`."""
    opened, key = widgets.opens(CONTROL), boxes.key(CONFIG.name)
    text = st.text_area(words.PASTE, opened, key=key, help=words.PASTE_HELP, height=220) or ""
    widgets.holds(CONTROL, text)
    if not text.strip():
        raise HeadlightError(words.PASTE_FIRST)
    config = config_of(text)
    try:
        to_link(text)
    except HeadlightError as refusal:
        wrong.append(languages.said(refusal))
    return config
