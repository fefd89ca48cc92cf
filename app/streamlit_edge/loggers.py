"""Streamlit gives each of its loggers a handler of its own; here they use those of the root logger, which write in one form."""

from __future__ import annotations

import logging

from streamlit import logger as theirs

SERVER = ("uvicorn", "uvicorn.error", "uvicorn.asgi")  # uvicorn configures these before it imports main.py
ACCESS = "uvicorn.access"  # stays off: an address holds a visitor's sentence


def use_root_handlers() -> None:
    """From now on in this process, also for loggers that Streamlit creates later."""
    theirs.setup_formatter = _propagate
    theirs.update_formatter()
    for name in (*SERVER, ACCESS):
        _propagate(logging.getLogger(name))


def _propagate(logger: logging.Logger) -> None:
    logger.handlers.clear()
    logger.propagate = logger.name != ACCESS
    if logger.name in SERVER:  # at INFO they name every websocket with the address of its visitor
        logger.setLevel(logging.WARNING)
