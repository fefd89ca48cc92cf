"""The link that followers open, and the square that a camera reads it from."""

from __future__ import annotations

import io
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address

import segno
from starlette.requests import Request

MARGIN = 4  # modules of white around it, which readers need
HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")


@dataclass(frozen=True)
class Link:
    """Where followers find the server: the link of a code, what a board shows of it, and whether other computers reach it."""

    origin: str  # "https://headlight.example"
    base: str
    is_only_here: bool = False

    def of(self, code: str) -> str:
        """The link, in capitals where the path is ours alone: the square is then smaller. Hosts know no case, paths do."""
        whole = f"{self.origin}{self.base}/r/{code}"
        return whole.upper() if not self.base else whole

    @property
    def shown(self) -> str:
        return f"{self.origin.partition('://')[2]}{self.base}/r"


def link(request: Request, base: str, listens_at: str | None) -> Link:
    """Where a request came to; for a server that its own computer calls localhost but all may ask, its address in the network."""
    host = request.headers.get("host", "")
    name = host if HOST.fullmatch(host) else "localhost"
    if not _is_local(name):
        return Link(f"{request.url.scheme}://{name}", base)
    if listens_at is not None and _is_local(listens_at):
        return Link(f"{request.url.scheme}://{name}", base, is_only_here=True)
    address = _own_address()
    port = re.search(r":\d+$", name)
    return Link(f"{request.url.scheme}://{address or name}{port[0] if port and address else ''}", base, not address)


def svg(text: str) -> bytes:
    """The square of a text, black on white whatever the page's colours are."""
    square = segno.make_qr(text, error="m", boost_error=False)
    out = io.BytesIO()
    square.save(out, kind="svg", border=MARGIN, dark="#000", light="#fff", xmldecl=False, omitsize=True)
    return out.getvalue()


def _is_local(host: str) -> bool:
    name = re.sub(r":\d+$", "", host).strip("[]")
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost" or name.lower().endswith(".localhost")


def _own_address() -> str:
    """This computer's address in its network; "" where it is in none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation, which no one has
            found = probe.getsockname()[0]
        except OSError:
            return ""
    return "" if ip_address(found).is_loopback or ip_address(found).is_unspecified else found
