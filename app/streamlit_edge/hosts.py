"""Names under which this server answers: Streamlit's `server.allowedHosts`, against DNS rebinding.

With DNS rebinding, a page of another site lets its own name resolve to this machine, so that the browser takes our answers for its own.
Streamlit reads the option for websockets only, and allows every name unless it is set.
"""

from __future__ import annotations

from streamlit import config
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

OPTION = "server.allowedHosts"
OWN = ["localhost", "*.localhost", "127.0.0.1", "::1"]  # by which a machine calls itself


def allow_own(is_own_machine: bool) -> None:
    """On a person's own machine, answer under OWN only, unless hosts are named already."""
    listens_at = config.get_option("server.address") or ""
    if is_own_machine and listens_at.lower() in OWN and not config.get_option(OPTION):
        config.set_option(OPTION, OWN)


def is_allowed(host: str | None) -> bool:
    """True if a request with this Host header may be answered."""
    return is_host_allowed(host)
