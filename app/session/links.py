"""What a link asks for, told apart from what it asked before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import streamlit as st

T = TypeVar("T")


def newly_asked(of: str, asked: Mapping[str, T]) -> dict[str, T]:
    """What a link asks of a part of the page that it did not ask when this was called last: a link was opened, or gone back to.

    `of` names the part. So a choice that does not exist is reported each time that a link asks for it, and not again at every rerun.
    """
    key = f"{of}_asked"
    before = st.session_state.get(key, {})
    st.session_state[key] = dict(asked)
    return {name: said for name, said in asked.items() if said != before.get(name)}
