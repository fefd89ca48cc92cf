"""The theme, which every run of a script sends, is put together once; and the address that the server prints when it is ready.

Streamlit reads every option of it and turns each into protobuf again for every run of every visitor, while the file they stand in is
read when the server starts: a tenth of what its own thread has to do for a sentence. Without this all still works, more slowly.
"""

from __future__ import annotations

from streamlit import config
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.web.server import server_util


def address() -> str:
    """The address of the page for a browser on this machine."""
    return server_util.get_url(config.get_option("browser.serverAddress"))


def put_together_once() -> None:
    """From now on each section is read once, when it is sent first."""
    read, known = app_session._populate_theme_msg, dict[str, CustomThemeConfig]()

    def populate(msg: CustomThemeConfig, section: str = "theme") -> None:
        if section not in known:
            found = CustomThemeConfig()
            read(found, section)
            known[section] = found
        if known[section].ByteSize():  # to merge nothing would say that there is a section
            msg.MergeFrom(known[section])

    app_session._populate_theme_msg = populate
