"""What axe finds wrong with a page, of whatever impact: for every test that has one open."""

from __future__ import annotations

import time
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# What is Streamlit's own and none of ours, by the rule and what its markup has: its link past the bar stands before every landmark.
STREAMLITS = {("region", 'data-testid="stSkipToContent"')}


# Streamlit dims what a script has not said again yet, and a colour that is on its way has a contrast of its own.
RESTS = """document.querySelector('[data-stale="true"]') === null && document.getAnimations().every(
    one => one.playState !== "running" || one.effect.getTiming().iterations === Infinity)"""
MOST = 10.0  # seconds that a page is given to come to rest: while a run is under way it may have none


def faults(page: Page, context: str | None = None) -> list[str]:
    """One line for each place: the rule, its impact, where, and the markup. `context`: of this part of the page alone.

    Of the page at rest: nothing of it dim, no colour on its way.
    """
    deadline = time.monotonic() + MOST
    while not page.evaluate(RESTS) and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    # Of what axe can fetch before, the rules that are on want sounds and films; style sheets, which take longest, none of them.
    options = {"resultTypes": ["violations"], "preload": {"assets": ["media"]}}
    found: list[dict[str, Any]] = Axe().run(page, context=context, options=options).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {node['target']} {node['html'][:120]}"
        for rule in found
        for node in rule["nodes"]
        if not any(rule["id"] == name and markup in node["html"] for name, markup in STREAMLITS)
    ]
