"""An atlas on Ray: the same table as without, also when it goes on with what is there."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import torch

ray = pytest.importorskip("ray", reason="`make test-cluster` installs Ray")

from core import load  # noqa: E402
from core.patching import atlas  # noqa: E402
from core.patching.atlas_ray import begin, on_ray  # noqa: E402

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.filterwarnings("default")]
TEXTS = [f"The king of {i} hills had {i + 1} golden birds, and every bird sang of the king." for i in range(11)] + [" "]


@pytest.fixture
def cluster() -> Iterator[None]:
    begin(2)
    yield
    ray.shutdown()


def test_the_table_is_the_same_bit_for_bit(cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(atlas, "PART", 3)
    loaded = load("minilm", device=torch.device("cpu"), dtype=torch.float32)
    one = atlas.survey(loaded, TEXTS, tmp_path / "one.parquet")
    told: list[tuple[int, int]] = []
    there = on_ray(partial(load, "minilm", device=torch.device("cpu"), dtype=torch.float32), atlas.MAX_TOKENS)
    other = atlas.survey(
        loaded, TEXTS, tmp_path / "other.parquet", surveyed=there, progress=lambda done, of: told.append((done, of))
    )
    assert one.equals(other) and one.num_rows > 500
    assert [done for done, _ in told] == [3, 6, 9, 12]

    def stops(parts):
        coming = there(parts)
        assert isinstance(coming, Generator)
        with closing(coming):  # what it does on the cluster ends here, and not when garbage is collected
            for at, found in enumerate(coming):
                if at == 2:
                    raise KeyboardInterrupt
                yield found

    with pytest.raises(KeyboardInterrupt):
        atlas.survey(loaded, TEXTS, tmp_path / "third.parquet", surveyed=stops)
    assert len([*(tmp_path / "third.parquet.parts").glob("*.parquet")]) == 2
    assert atlas.survey(loaded, TEXTS, tmp_path / "third.parquet", surveyed=there).equals(one)
