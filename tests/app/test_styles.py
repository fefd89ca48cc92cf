"""Style sheets say nothing of what is never drawn: every class in them is one that a browser file or a page makes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parents[2] / "app"
SHEETS = sorted(APP.rglob("*.css"))
KIT = APP / "kit" / "browser"
# Who makes what a sheet is about, beside the files in its own folder and the kit's
MAKERS = {
    "attention/browser": ("rooms/explore/browser",),
    "classroom/browser": ("rooms",),
    "shell/browser": ("classroom/browser", "rooms/lessons/browser"),
    "kit/browser": ("attention/browser", "classroom/browser", "rooms", "shell/browser"),
    "streamlit_edge": (".",),
}
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`\w])//[^\n]*", re.DOTALL)
TEXT = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`")
NAME = re.compile(r"[A-Za-z_][\w-]*")
BEGINNING = re.compile(r"([A-Za-z_][\w-]*)\$?\{")  # of a name whose rest is known only when it runs


def named(files: Iterable[Path]) -> tuple[set[str], set[str]]:
    """Every name in the texts of browser files, or anywhere in Python's; and the beginnings of those that are put together."""
    sources = [(path.suffix, path.read_text(encoding="utf-8")) for path in files]
    texts = "\n".join(
        source if suffix == ".py" else "\n".join(TEXT.findall(COMMENT.sub("", source))) for suffix, source in sources
    )
    return set(NAME.findall(texts)), set(BEGINNING.findall(texts))


@pytest.mark.parametrize("sheet", SHEETS, ids=[str(path.relative_to(APP)) for path in SHEETS])
def test_every_class_of_a_sheet_is_made_somewhere(sheet: Path):
    folder = sheet.parent
    makers = [folder, KIT, *(APP / name for name in MAKERS.get(folder.relative_to(APP).as_posix(), ()))]
    files = {path for maker in makers for path in (*maker.rglob("*.js"), *maker.rglob("*.py"))}
    names, beginnings = named([*files, *folder.parent.glob("*.py"), *(APP / "kit").glob("*.py")])
    selectors = re.findall(r"([^{}]+)\{", COMMENT.sub("", sheet.read_text(encoding="utf-8")))
    classes = {name for one in selectors if "@" not in one for name in re.findall(r"\.([A-Za-z_][\w-]*)", one)}
    unused = {
        name
        for name in classes - names
        if name.removeprefix("st-key-") not in names
        and not any(name.startswith(start) and (len(start) > 2 or name[len(start) :].isdigit()) for start in beginnings)
    }
    assert not unused, f"{sheet.relative_to(APP)}: no one makes {sorted(unused)}; rules that nothing uses are deleted"
