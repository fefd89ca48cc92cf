"""What a link asks in vain is said each time that it is asked, and only then."""

from __future__ import annotations

import pytest

from app.session.links import newly_asked


def test_only_what_was_not_asked_before_is_new(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.session.links.st.session_state", {})
    assert newly_asked("memory", {"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
    assert newly_asked("memory", {"a": "1", "b": "3"}) == {"b": "3"}
    assert newly_asked("compute", {"a": "1"}) == {"a": "1"}  # of another part
    assert newly_asked("memory", {"b": "3"}) == {}
    assert newly_asked("memory", {"a": "1", "b": "3"}) == {"a": "1"}  # gone back to
