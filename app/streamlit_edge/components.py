"""What Streamlit gets for a component's script: a few lines that fetch the modules, and that it does not take for a file's name."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

KEPT = "edited_components"  # in the session


def loader(addresses: Sequence[str], export: str = "default", is_hosted: bool = False) -> str:
    """A script that fetches these modules, and is what the first of them exports under that name: or, where it `is_hosted`, what the
    second one's `component` makes of that.

    `addresses` are below the address of the page. Streamlit sends a component's script with every message of it, so it is
    these lines alone. All modules are asked for at once, so that their imports of each other wait for nothing. There must
    be more than one line: Streamlit takes a single one with a slash in it for the path of a file, and refuses it.
    """
    found = f"host.component(entry.{export})" if is_hosted else f"entry.{export}"
    return f"""
const get = (address) => import(new URL(address, document.baseURI).href);
const [entry, host] = await Promise.all({json.dumps(list(addresses))}.map(get));
export default {found};
"""


def of_visit(name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """How a component is registered, the same for as long as a visit lasts: its browser has loaded what that names.

    That it is registered again, as its edited files have it by then, is no accident that Streamlit has to warn of.
    """
    kept = st.session_state.setdefault(KEPT, {})
    if name not in kept:
        kept[name] = work()
    logging.getLogger("streamlit.components.v2.component_registry").setLevel(logging.ERROR)
    return kept[name]
