"""The log as JSON: every line is one object, also those of libraries."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.app.browsing import ROOT

SECRET = "Marmalade"
# A process as app/main.py begins one, with what a server may log. uvicorn configures its loggers before it imports the application.
SERVER = f"""
import logging, logging.config, threading, warnings
from streamlit.logger import get_logger, init_uvicorn_logs
from uvicorn.config import LOGGING_CONFIG
from core.run.request import RunFinished
logging.config.dictConfig(LOGGING_CONFIG)
init_uvicorn_logs()
early = get_logger("streamlit.early")
from app.transport import logs, metrics, tracebacks
logs.begin()
tracebacks.keep_texts_out()
logs.announce("Headlight answers at http://localhost:8501")
logging.getLogger("headlight").warning("Ended with %d runs left.", 2)
metrics.run_ended(RunFinished("smollm2", "done", 16, 0.00123456, 0.0123, 1000))
early.warning("two\\nlines")
get_logger("streamlit.late").error("later")
logging.getLogger("uvicorn.error").info('192.0.2.1 - "WebSocket" [accepted]')
logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
logging.getLogger("uvicorn.access").info("GET /?q={SECRET}")
logging.getLogger("asyncio").error("a task")
warnings.warn("a pin", FutureWarning)
try:
    {{}}["{SECRET}"]
except KeyError:
    logging.getLogger("headlight").exception("An answer failed")
thread = threading.Thread(target=lambda: [][1])
thread.start()
thread.join()
raise ValueError("{SECRET}")
"""


def written(setting: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "", "HEADLIGHT_LOG": setting, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", SERVER], env=environment, capture_output=True, text=True, cwd=ROOT)


def test_every_line_is_an_object():
    done = written("json")
    assert done.returncode == 1 and done.stderr == ""
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line["at"].endswith("+00:00") for line in lines)
    run = {"model_id": "smollm2", "outcome": "done", "tokens": 16, "waited": 0.0012, "ran": 0.0123, "nbytes": 1000}
    assert [line["run"] for line in lines if "run" in line] == [run]
    found = [(line["logger"], line["level"], line["message"]) for line in lines if "run" not in line]
    assert [line for line in found if line[0] != "py.warnings"] == [
        ("headlight", "INFO", "Headlight answers at http://localhost:8501"),
        ("headlight", "WARNING", "Ended with 2 runs left."),
        ("streamlit.early", "WARNING", "two\nlines"),
        ("streamlit.late", "ERROR", "later"),
        ("uvicorn.error", "WARNING", "Invalid HTTP request received."),
        ("asyncio", "ERROR", "a task"),
        ("headlight", "ERROR", "An answer failed"),
        ("headlight", "ERROR", "A thread failed"),
        ("headlight", "CRITICAL", "The server failed"),
    ]
    (warned,) = [message for logger, _, message in found if logger == "py.warnings"]
    assert "FutureWarning: a pin" in warned
    ends = [line["traceback"].splitlines()[-1] for line in lines if "traceback" in line]
    assert ends == ["KeyError", "IndexError", "ValueError"] and SECRET not in done.stdout


def test_without_the_setting_a_terminal_gets_sentences_and_no_line_for_a_run():
    done = written("")
    assert done.stdout.splitlines()[0] == "Headlight answers at http://localhost:8501"
    assert "Ended with 2 runs left." in done.stderr
    assert "smollm2" not in done.stdout + done.stderr
