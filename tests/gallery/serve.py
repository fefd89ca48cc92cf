"""`make gallery`: a page with every part of the screen on fixed data, from the browser's files as they lie on disk. No Streamlit, no model."""

from __future__ import annotations

import json
import mimetypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

from app.classroom import component  # noqa: F401  what its browser files import is registered with it
from app.shell import bar, registry, style  # noqa: F401
from app.transport import edited, modules

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STORIES = HERE / "stories"
MODULES = "/app/"  # a story imports what it shows by a relative path, so a module's address is where it lies
SERVED = (".js", ".html")


def stories() -> list[str]:
    """Their names: a file each."""
    return sorted(path.stem for path in STORIES.glob("*.js"))


def answer(path: str) -> tuple[str, bytes] | None:
    """The type and the bytes of what is at an address; None where nothing is."""
    if path == "/":
        page = (HERE / "page.html").read_text(encoding="utf-8").replace("{{STYLE}}", style.page_style())
        return "text/html", page.encode()
    if path == "/stories":
        return "application/json", json.dumps(stories()).encode()
    if path.startswith(MODULES):
        modules.look()
        name = path.removeprefix(MODULES)
        return ("text/javascript", modules.source(name).encode()) if name in modules.names() else None
    file = (ROOT / path.lstrip("/")).resolve()
    if not file.is_relative_to(HERE) or file.suffix not in SERVED or not file.is_file():
        return None
    return mimetypes.guess_type(file.name)[0] or "text/plain", file.read_bytes()


class Handler(BaseHTTPRequestHandler):
    """Answers GET; nothing is to be kept by the browser."""

    def do_GET(self) -> None:
        found = answer(urlsplit(self.path).path)
        kind, body = found or ("text/plain", b"There is no such file.")
        self.send_response(200 if found else 404)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads a line for every file."""


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """The address of the page, on this machine alone, for as long as this is open."""
    registry.rooms()
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def main() -> int:
    edited.ON = True  # a file that is changed while somebody looks is there at the next load of the page
    with serving(int(sys.argv[1]) if len(sys.argv) > 1 else 0) as address:
        print(
            f"The gallery is at {address}/ and Ctrl-C ends it. A changed file is there when the page is loaded again.",
            flush=True,
        )
        try:
            Event().wait()
        except KeyboardInterrupt:
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
