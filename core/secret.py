"""The server's secret, which signs names so that clients cannot forge them."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
from functools import cache

SETTING = "HEADLIGHT_SECRET"
FEWEST = 16  # characters
NONCE = MARK = 16  # bytes of a signed name, and of its signature


@cache
def server_secret() -> bytes:
    """HEADLIGHT_SECRET, shared by all processes of one site; random if it is not set. Raises ValueError if it is too short."""
    given = os.environ.get(SETTING, "")
    if given and len(given) < FEWEST:
        raise ValueError(
            f"{SETTING} has {len(given)} characters, and needs at least {FEWEST}. Make one with: openssl rand -hex 32"
        )
    return given.encode() or secrets.token_bytes(32)


def digest(purpose: str, data: bytes, secret: bytes | None = None) -> bytes:
    """HMAC-SHA256 of `data`, 32 bytes, different for each purpose."""
    return hmac.digest(server_secret() if secret is None else secret, purpose.encode() + b"\0" + data, "sha256")


def signed_name(purpose: str, secret: bytes | None = None) -> str:
    """A new random name with its signature: 43 letters, digits, - and _. The server need not store it."""
    nonce = secrets.token_bytes(NONCE)
    return spelled(nonce + digest(purpose, nonce, secret)[:MARK])


def is_signed(name: str, purpose: str, secret: bytes | None = None) -> bool:
    """True for names from signed_name() with this purpose and secret."""
    try:
        data = base64.b64decode(name + "=", altchars=b"-_", validate=True) if len(name) == 43 else b""
    except (binascii.Error, ValueError):
        return False
    # Only the canonical spelling is valid; otherwise one browser could have two names.
    is_whole = len(data) == NONCE + MARK and spelled(data) == name
    return is_whole and hmac.compare_digest(data[NONCE:], digest(purpose, data[:NONCE], secret)[:MARK])


def spelled(data: bytes) -> str:
    """URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
