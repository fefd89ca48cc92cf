"""The log as JSON, one object a line (HEADLIGHT_LOG=json): runs, warnings, tracebacks and what Streamlit and uvicorn report."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType

from app.streamlit_edge import loggers

SETTING = "HEADLIGHT_LOG"
log = logging.getLogger("headlight")


class Json(logging.Formatter):
    """A record as one line of JSON. A record of a run (`run` among its extras) has that in place of a message."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        }
        if (run := getattr(record, "run", None)) is not None:
            return json.dumps(fields | {"run": run})
        fields |= {"level": record.levelname, "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            fields["traceback"] = record.exc_text or self.formatException(record.exc_info)
        return json.dumps(fields)


def is_json() -> bool:
    return os.environ.get(SETTING) == "json"


def begin() -> None:
    """Write the whole log of this process to the standard output as JSON, if HEADLIGHT_LOG=json asks for it."""
    if not is_json():
        return
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(Json())
    logging.getLogger().handlers[:] = [handler]
    log.setLevel(logging.INFO)
    loggers.use_root_handlers()
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread


def announce(text: str) -> None:
    """Tell the operator that the server is ready. A terminal shows the text only."""
    if is_json():
        log.info(text)
    else:
        print(text, flush=True)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("The server failed", exc_info=(kind, error, trace))


def _uncaught_in_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
        log.error("A thread failed", exc_info=failed.exc_value)
