"""Registers the browser's part of Explore."""

from __future__ import annotations

from pathlib import Path

from app.attention import component
from app.transport import modules

modules.add("rooms/explore/browser", Path(__file__).parent / "browser")
ENTRY = "rooms/explore/browser/explore.js"
EXPLORE = component.register(ENTRY)
OFFLINE = "rooms/explore/browser/standalone.js"  # draws the same on a page that asks no server
