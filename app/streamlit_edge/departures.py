"""What is done when a visitor has gone: the tab is closed, or nothing is heard of it any more; and when he stays away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st
from streamlit import runtime
from streamlit.runtime.caching.ttl_cache import TTLCache
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager


@dataclass
class _Visit:
    session_id: str
    act: Callable[[], object] | None = None


def when_gone(act: Callable[[], object] | None) -> None:
    """Have this done, and nothing else that was said before, when the visitor of this script goes; it must be quick.

    Streamlit releases what belongs to a session alone when that is disconnected; but it does so too when any visitor clears
    its caches. Whether the visitor has gone is known once Streamlit has put the session away, which is after this call of its.
    Without this a run goes on for a visitor who has left, and others wait for their turn after it.
    """
    context = get_script_run_ctx()
    if context is not None:
        _visit(context.session_id).act = act


def forget() -> int:
    """Let go of the sessions of visitors who have not come back in time; how many. In the thread of the server's loop.

    Streamlit keeps the session of a closed tab for two minutes, up to 128 of them, in case its visitor was only cut off; but it
    looks for those that are over only when the next visitor leaves. The last 128 of a day would be kept all night, with three
    open files each.
    """
    if not runtime.exists():
        return 0
    manager = runtime.get_instance()._session_mgr
    if not (
        isinstance(manager, WebsocketSessionManager) and isinstance(manager._session_storage, MemorySessionStorage)
    ):
        return 0
    kept = manager._session_storage._cache
    return len(kept.expire()) if isinstance(kept, TTLCache) else 0


def _released(visit: _Visit) -> None:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # in a thread of some script, which cleared the caches
        return
    loop.call_soon(_act_if_gone, visit)


def _act_if_gone(visit: _Visit) -> None:
    if visit.act is not None and not runtime.get_instance().is_active_session(visit.session_id):
        visit.act()


@st.cache_resource(scope="session", on_release=_released, show_spinner=False)
def _visit(session_id: str) -> _Visit:
    return _Visit(session_id)
