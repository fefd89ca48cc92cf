"""Draws the pictures of the README and of links again, each from the room as it is now, on the model that opens: `make pictures`."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from app.shell import link_preview
from scripts import browser
from tests.app.browsing import browsing, idle, serving

DOCS = Path(__file__).resolve().parents[1] / "docs"
LAPTOP = (1280, 720)
PHONE = (390, 844)
PROJECTOR = (1920, 1080)
OPENS = "SmolLM2-135M"  # a link without a model is of before there was one, and opens MiniLM
COLOURS = 256  # of a picture: flat surfaces and thin letters look the same with a palette, in a third of the bytes


@dataclass(frozen=True)
class Picture:
    """Where a picture is taken, in which window and colours."""

    address: dict[str, str]
    size: tuple[int, int] = LAPTOP
    scheme: Literal["light", "dark"] = "light"
    folder: Path = DOCS
    until: str = ""  # what is there once runs of their own have come, where a pause between two of them looks like rest


PICTURES = {
    "preview": Picture({}, size=link_preview.SIZE, folder=link_preview.PICTURE.parent),  # of a link, as others show it
    "explore": Picture({}),
    "explore-dark": Picture({}, scheme="dark"),
    "explore-phone": Picture({}, size=PHONE),
    "explore-projector": Picture({"projector": "true"}, size=PROJECTOR),
    "explore-lines": Picture({"model": "minilm", "show": "lines"}),
    "explore-translator": Picture({"model": "translator", "text": "Ein Hund läuft durch den Schnee.", "site": "cross"}),
    "step": Picture({"view": "step", "model": OPENS}),
    "masks": Picture({"view": "masks", "model": OPENS}),
    "lab-padding": Picture(
        {
            "view": "masks",
            "model": OPENS,
            "lab": "padding",
            "partner": "The capital of France is",
            "pad": "off",
            "side": "left",
        }
    ),
    "lab-leak": Picture({"view": "masks", "model": OPENS, "lab": "leak"}, until=".texts > div:last-child .twin"),
    "lab-kinds": Picture(
        {"view": "masks", "lab": "kinds", "model": "translator", "text": "Ein Hund rennt durch den Schnee."}
    ),
    "positions": Picture({"view": "positions", "model": OPENS}),
    "generate": Picture({"view": "generate", "model": OPENS, "text": "Once upon a time, there was a little"}),
    "whatif": Picture({"view": "whatif", "model": OPENS}),
    "train": Picture({"view": "train", "model": OPENS}),
    "shapes": Picture({"view": "shapes", "model": OPENS}),
    "memory": Picture(
        {
            "view": "memory",
            "plan_model": "llama-3-8b",
            "plan_phase": "run",
            "plan_dtype": "float16",
            "plan_source": "32768",
            "plan_batch": "4",
            "plan_piece": "2,048 tokens at a time",
            "memory_card": "RTX 4090",
        }
    ),
}


def at_rest(page: Page) -> bytes:
    """The page once two looks at it, a second apart, are the same: what is computed row by row has come."""
    last, now = b"", page.screenshot()
    while now != last:
        page.wait_for_timeout(1000)
        last, now = now, page.screenshot()
    return now


def taken(there: Browser, server: str, picture: Picture) -> bytes:
    """A picture as PNG, once its room is drawn and comes to rest."""
    context = there.new_context(
        viewport={"width": picture.size[0], "height": picture.size[1]},
        color_scheme=picture.scheme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{server}/?{urlencode(picture.address)}")
    expect(page.locator(".hl[data-painted]").first).to_be_visible(timeout=120_000)
    idle(page)
    if picture.until:
        page.locator(picture.until).first.wait_for(timeout=120_000)
    image = Image.open(io.BytesIO(at_rest(page)))
    context.close()
    small = io.BytesIO()
    image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()


def main(names: list[str]) -> int:
    """The pictures of these names, or all. Returns what a program exits with."""
    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        print(f"No picture is called {', '.join(unknown)}; there are {', '.join(PICTURES)}.", file=sys.stderr)
        return 2
    if (chromium := browser.find()) is None:
        return browser.main()
    with (
        TemporaryDirectory() as folder,
        serving("app/main.py", Path(folder) / "log") as server,
        browsing(chromium) as there,
    ):
        for name in names or PICTURES:
            data = taken(there, server, PICTURES[name])
            (PICTURES[name].folder / f"{name}.png").write_bytes(data)
            print(f"{name}: {len(data) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
