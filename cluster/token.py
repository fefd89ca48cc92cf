"""The secret that front ends and the machines with the models share (HEADLIGHT_SERVICE_TOKEN), if their network is not private."""

from __future__ import annotations

import hmac
import os
import re

SETTING = "HEADLIGHT_SERVICE_TOKEN"
HEADER = "authorization"
DENIED = 401
TOKEN = re.compile(r"[\x21-\x7e]{16,1024}")  # what a header can hold, and no one guesses


def token(value: str | None = None) -> str:
    """The token from HEADLIGHT_SERVICE_TOKEN; "" if none is required. Raises ValueError for one that is too short."""
    found = os.environ.get(SETTING, "") if value is None else value
    if found and not TOKEN.fullmatch(found):
        raise ValueError(f"{SETTING} must be 16 to 1,024 letters, digits and signs of ASCII, without spaces.")
    return found


def header(of: str) -> dict[str, str]:
    """Headers that a front end adds to each call."""
    return {HEADER: f"Bearer {of}"} if of else {}


def is_right(sent: str, of: str) -> bool:
    """True if a call with this header may be answered. It takes the same time however much of a token is right."""
    return not of or hmac.compare_digest(sent.encode(), f"Bearer {of}".encode())
