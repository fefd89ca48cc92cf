"""The link that followers open, and the square that a camera reads it from."""

from __future__ import annotations

import io
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address

import segno
from starlette.requests import Request

from app.classroom import sentences
from app.transport import loopback

MARGIN = 4  # modules of white around it, which readers need
HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")
# Where a browser finds the page, as far as links need it: no name or password, query or fragment; and it ends with a slash.
PAGE = re.compile(rf"(https?)://({HOST.pattern})((?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*/)")
LONGEST = 600  # signs of such an address: what a square still holds


@dataclass(frozen=True)
class Link:
    """Where followers find the page: the link of a code, what a board shows of it, and why other computers do not reach it."""

    page: str  # "https://headlight.example/lab/"
    unreachable: str = ""  # a sentence; "" where they do

    def of(self, code: str) -> str:
        """The link, in capitals where the path is ours alone: the square is then smaller. Hosts know no case, paths do."""
        whole = f"{self.page}r/{code}"
        return whole.upper() if self.page.count("/") == 3 else whole

    @property
    def shown(self) -> str:
        return f"{self.page.partition('://')[2]}r"


def link(request: Request, seen: str, base: str, listens_at: str | None, port: int) -> Link:
    """The link of a class whose teacher's browser finds the page at `seen`.

    What the browser says is the truth: a proxy may stand before this process, with another host and another path. Where it says
    nothing that can be followed, it is what the request came to: its host, and `base`, the path of the page here. For a page
    that its own computer calls localhost it is this computer's address in its network, if this process listens there.
    """
    asked = request.headers.get("host", "")
    here = f"{request.url.scheme}://{asked if HOST.fullmatch(asked) else 'localhost'}{base}/"
    page = seen if len(seen) <= LONGEST and PAGE.fullmatch(seen) else here
    found = PAGE.fullmatch(page)
    if found is None or not loopback.is_local(found[2]):
        return Link(page)
    scheme, name, path = found[1], found[2], found[5]
    its_port = re.search(r":(\d+)$", name)
    if name != asked or path != f"{base}/" or its_port is None or int(its_port[1]) != port:
        return Link(page, sentences.NO_OUTSIDE_ADDRESS)  # a proxy or a tunnel; nothing more is known of it here
    if listens_at is not None and loopback.is_local(listens_at):
        return Link(page, sentences.NO_ADDRESS)
    address = _own_address()
    return Link(f"{scheme}://{address}:{port}{path}") if address else Link(page, sentences.NO_NETWORK)


def svg(text: str) -> bytes:
    """The square of a text, black on white whatever the page's colours are."""
    square = segno.make_qr(text, error="m", boost_error=False)
    out = io.BytesIO()
    square.save(out, kind="svg", border=MARGIN, dark="#000", light="#fff", xmldecl=False, omitsize=True)
    return out.getvalue()


def _own_address() -> str:
    """This computer's address in its network; "" where it is in none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation, which no one has
            found = probe.getsockname()[0]
        except OSError:
            return ""
    return "" if ip_address(found).is_loopback or ip_address(found).is_unspecified else found
