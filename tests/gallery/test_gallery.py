"""Every part of the screen looks as it was accepted: light, dark, projected, on a phone and in forced colours.

A picture differs where more than SHARE of its pixels are off by more than AMOUNT in one of red, green and blue: more than the edges of
letters are between two versions of a browser, and less than a bar that is a little longer. `make gallery-accept` accepts what there is.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from tests.app.browsing import PATIENCE, once
from tests.gallery import serve

REFERENCES = Path(__file__).parent / "references"
FAILED = serve.ROOT / "test-results" / "gallery"  # what a picture that differs looks like now
ACCEPT = os.environ.get("UPDATE") == "1"
AMOUNT = 48  # of 255
SHARE = 0.0005
MOST_BYTES = 2_200_000  # of all references
COLOURS = 256  # of a reference; what that takes from a gradient is a fraction of AMOUNT

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "light": ("", {"viewport": {"width": 1280, "height": 720}}),
    "dark": ("&theme=dark", {"viewport": {"width": 1280, "height": 720}, "color_scheme": "dark"}),
    "projected": ("&projector=true", {"viewport": {"width": 1920, "height": 1080}}),
    "phone": ("", {"viewport": {"width": 390, "height": 844}, "has_touch": True}),
    "forced": ("", {"viewport": {"width": 1280, "height": 720}, "forced_colors": "active"}),
}
# What nothing is drawn with, or what draws only with a server or in a page of its own; the reason beside each.
UNDRAWN = {
    "classroom": "tells a class what is shown",
    "component": "hosts a part in Streamlit's page",
    "direction": "tells which way a text is read (tests/js/reading.test.mjs)",
    "fetcher": "fetches",
    "ground": "keeps what stands on it in its place (the stories of the stage stand on it)",
    "head_measures": "gives the chooser its numbers",
    "key_list": "lists the keys of a room (tests/app/test_keys.py opens it)",
    "labels": "gives a token its name",
    "language": "writes numbers (tests/app/test_numbers_in_languages.py)",
    "npz": "writes a file",
    "offline": "begins a page of its own (tests/app/test_export.py opens it)",
    "page_keys": "asks who turns a page",
    "popover": "places the panels of other parts (tests/app/test_walks.py looks at them)",
    "projection": "puts its bar into the page (tests/app/test_projector.py)",
    "progress": "keeps which steps were looked at",
    "remembered": "keeps the selection of each room (tests/js/selection.test.mjs)",
    "save": "saves and copies",
    "selection": "keeps what is chosen",
    "shortcuts": "asks what a key may do",
    "sink": "says a sentence (tests/app/test_chooser.py reads it)",
    "standalone": "writes a file",
    "writers": "fetches the makers of files (tests/app/test_papers.py looks when)",
    "writers/film": "writes a file (tests/app/test_films.py reads it)",
    "writers/fonts": "gives a letter its font (tests/js/writers.test.mjs)",
    "writers/gif": "writes a file",
    "writers/paths": "reads lines as numbers",
    "writers/pdf": "writes a file",
    "writers/recorder": "keeps what is painted for a file (tests/app/test_papers.py reads it)",
    "writers/vector": "writes a file (tests/app/test_papers.py reads it)",
    "writers/video": "writes a file",
    "type_scale": "tells the server the size of the type",
    "turns": "says an angle in words (tests/app/test_whatif.py reads it)",
}
# "DejaVu Sans" is what `make test` installs with a browser; of another font the pictures would say nothing.
FONT = """() => {
    const context = document.createElement("canvas").getContext("2d");
    const widths = ['"DejaVu Sans", monospace', "monospace"].map((font) => {
        context.font = `100px ${font}`;
        return context.measureText("Headlight").width;
    });
    return widths[0] !== widths[1] && Math.abs(widths[0] - 483) < 2;
}"""


@pytest.fixture(scope="module")
def page_of(browser: Browser) -> Iterator[Callable[[str], Page]]:
    """page_of(variant) -> the page with every story in that variant"""
    pages: dict[str, Page] = {}
    with ExitStack() as stack:
        address = stack.enter_context(serve.serving())

        def page(variant: str) -> Page:
            if variant not in pages:
                query, options = VARIANTS[variant]
                context = browser.new_context(reduced_motion="reduce", device_scale_factor=1, **options)
                stack.callback(context.close)
                page = context.new_page()
                page.set_default_timeout(PATIENCE)
                errors: list[str] = []
                page.on("pageerror", lambda error: errors.append(str(error)))
                page.goto(f"{address}/?bare{query}")
                once(page, "document.documentElement.dataset.ready")
                assert not errors, errors
                if not page.evaluate(FONT):
                    pytest.skip("no DejaVu Sans on this machine (Debian: apt-get install fonts-dejavu-core)")
                pages[variant] = page
            return pages[variant]

        yield page


def difference(seen: Image.Image, accepted: Image.Image) -> float:
    """The share of pixels that are off by more than AMOUNT; all of them where the sizes differ."""
    if seen.size != accepted.size:
        return 1.0
    one, other = (np.asarray(image.convert("RGB"), dtype=np.int16) for image in (seen, accepted))
    return float((np.abs(one - other).max(axis=2) > AMOUNT).mean())


def accept(image: Image.Image, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


@pytest.mark.thorough(but=16)
@pytest.mark.parametrize("story", serve.stories())
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_part_looks_as_it_was_accepted(page_of: Callable[[str], Page], variant: str, story: str):
    box = page_of(variant).locator(f"#{story}")
    seen = Image.open(io.BytesIO(box.screenshot(animations="disabled")))
    path = REFERENCES / f"{story}.{variant}.png"
    if ACCEPT:
        accept(seen, path)
    assert path.is_file(), (
        f"nobody has accepted {story} in {variant} yet: look at `make gallery`, then `make gallery-accept`"
    )
    with Image.open(path) as accepted:
        share, size = difference(seen, accepted), accepted.size
    if share > SHARE:
        FAILED.mkdir(parents=True, exist_ok=True)
        seen.save(FAILED / path.name)
    assert share <= SHARE, (
        f"{story} in {variant} differs in {share:.2%} of its pixels, of {SHARE:.2%} that may ({seen.size}, accepted {size}). "
        f"As it is now: {FAILED / path.name}. If that is right: make gallery-accept"
    )


def test_every_reference_is_of_a_story_and_all_are_small():
    wanted = {f"{story}.{variant}.png" for story in serve.stories() for variant in VARIANTS}
    found = {path.name: path for path in REFERENCES.glob("*")}
    if ACCEPT:
        for name in found.keys() - wanted:
            found.pop(name).unlink()
    assert found.keys() == wanted
    assert sum(path.stat().st_size for path in found.values()) <= MOST_BYTES


def test_whatever_draws_in_every_room_has_a_story():
    kit = serve.ROOT / "app" / "kit" / "browser"
    files = {path.relative_to(kit).with_suffix("").as_posix() for path in kit.rglob("*.js")}
    told = "\n".join(path.read_text(encoding="utf-8") for path in serve.STORIES.glob("*.js"))
    shown = set(re.findall(r'from "[./]*/app/kit/browser/([\w/]+)\.js"', told))
    assert shown <= files | {"words"}
    assert UNDRAWN.keys() <= files, "UNDRAWN names a file that is not there"
    assert not (missing := files - shown - UNDRAWN.keys()), (
        f"{sorted(missing)}: a story in tests/gallery/stories, or a reason in UNDRAWN"
    )
    assert not (both := shown & UNDRAWN.keys()), f"{sorted(both)} are in a story, and said to draw nothing"


def test_nothing_but_the_gallery_and_the_browser_s_files_is_served():
    assert serve.answer("/app/kit/browser/dom.js") and serve.answer("/tests/gallery/gallery.js")
    for path in (
        "/app/main.py",
        "/tests/gallery/serve.py",
        "/tests/gallery/../../README.md",
        "/tests/conftest.py",
        "/etc/passwd",
    ):
        assert serve.answer(path) is None, path


@pytest.mark.parametrize(
    ("change", "is_seen"),
    [
        ("nothing", False),
        ("an edge", False),
        ("a longer bar", True),
        ("another hue", True),
        ("a lost word", True),
        ("one pixel wider", True),
    ],
)
def test_what_is_seen_to_differ(change: str, is_seen: bool):
    """On a picture of 300 by 100 with a bar and a word of it."""
    base = np.full((100, 300, 3), 250, np.uint8)
    base[40:52, 20:120] = (47, 116, 181)
    base[60:70, 20:50:2] = 20
    now = base.copy()
    match change:
        case "an edge":
            now[40:52, 120] = (210, 225, 240)
            now[60:70, 20:50:2] = 60
        case "a longer bar":
            now[40:52, 120:122] = (47, 116, 181)
        case "another hue":
            now[40:52, 20:120] = (134, 71, 156)
        case "a lost word":
            now[60:70, 20:50] = 250
        case "one pixel wider":
            now = np.concatenate([now, now[:, -1:]], axis=1)
    assert (difference(Image.fromarray(now), Image.fromarray(base)) > SHARE) is is_seen
