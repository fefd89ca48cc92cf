"""Whether the visitor went back or forward: then the address says what they want to see, and the session what they saw."""

import json
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import streamlit as st
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.common import user_key_from_element_id


@dataclass(eq=False)
class Navigation:
    """The message with which a visitor went back or forward: where to, and what the components had said by then."""

    address: str
    said: WidgetStates


NAVIGATION = "_headlight_navigation"  # on a session, and once a script has noted it on what that script runs in
_untold: WeakValueDictionary[str, AppSession] = WeakValueDictionary()  # by id, the sessions that have one


def keep_navigations() -> None:
    """From now on, in this process: a script that is broken off before it noted that the visitor went back leaves that to the next.

    Streamlit 1.67 forgets it as soon as a component says something in the same moment, and what was chosen before then stands over
    the address that the visitor went to. That component may have spoken after the address of the room that was left came late and
    stood over the one they went to, so the next script gets the address of the way back too.
    """
    theirs = AppSession.request_rerun

    def asked(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None and client_state.is_history_navigation:
            setattr(self, NAVIGATION, Navigation(client_state.query_string, client_state.widget_states))
            _untold[self.id] = self
        elif client_state is not None and self.id in _untold:
            client_state.is_history_navigation = True
            client_state.query_string = getattr(self, NAVIGATION).address
        theirs(self, client_state)

    AppSession.request_rerun = asked


def noted() -> None:
    """The script has noted in the session that the visitor went back: one that comes after it is another matter."""
    context = get_script_run_ctx()
    session = None if context is None else _untold.pop(context.session_id, None)
    if session is not None:  # for the parts of the page that come later in this script
        setattr(context, NAVIGATION, getattr(session, NAVIGATION))


def said_before(key: str) -> Any:
    """The value that the component of this key had when the visitor went back, in the script that is for it; None where there was none."""
    context = get_script_run_ctx()
    if context is None or not context.is_history_navigation:
        return None
    navigation = getattr(_untold.get(context.session_id, context), NAVIGATION, None)
    if navigation is None:
        return None
    spoken = (one for one in navigation.said.widgets if user_key_from_element_id(one.id) == key)
    return next((json.loads(one.json_value) for one in spoken if one.json_value), None)


def is_history_navigation() -> bool:
    """Whether this run of the script is for the browser's Back or Forward.

    Streamlit knows it, for its own widgets, and has no name for it in its API. Without it, Back leads to another address and not to
    another room.
    """
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def repeat_address() -> None:
    """Have the browser's address say once more where the visitor went, when they went back or forward. First thing in a script.

    An address that the run before has written may still be on its way when they go, and then stands over the one they went to: the
    browser takes whatever comes, and Streamlit sends no address that it knows already. Without it the room changes and its address
    stays that of another one.
    """
    if is_history_navigation():
        st.query_params.update({})
