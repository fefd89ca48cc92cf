"""A page of another site, such as a course's, that shows Headlight in a frame."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The lines that docs/hosting.md gives to the author of such a page.
HEARS = """<script>
addEventListener("message", ({ source, data }) => {
  if (data?.headlight !== "height") return;
  for (const frame of document.querySelectorAll("iframe"))
    if (frame.contentWindow === source) frame.height = data.height;
});
</script>"""


def frame(address: str, more: str = "") -> str:
    """The line of HTML that shows an address."""
    return f'<iframe src="{escape(address)}" width="1000" height="600" {more}></iframe>'


@contextmanager
def course_page() -> Iterator[tuple[str, list[str]]]:
    """Its address, and a list whose one entry is the body that it has then."""
    shown = [""]

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<!doctype html><meta charset='utf-8'><body>{shown[0]}</body>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", shown
    finally:
        server.shutdown()
        server.server_close()
