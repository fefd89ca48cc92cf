"""Rules for tests of the screen: a browser on a busy machine may miss a beat, so each test may be tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two more tries for what drives a browser. A fault that is really there fails all three."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=1))
