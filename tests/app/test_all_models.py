"""The list of all models on offer: by name, form and size, with the keyboard, on a phone, for three models and for three hundred."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from app.session import listed
from app.session import models as session_models
from app.session import words as session_words
from app.shell import words
from core import checkpoints
from core.checkpoints import ModelSpec, find
from tests.app.browsing import PATIENCE, Screen, serving
from tests.app.pages import lend
from tests.app.test_accessibility import findings
from tests.app.test_brought import adapter, classifier, plain

NAMED = "odd *name* `x` :red[y] $z$"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A classifier, an adapter and its base, a folder with signs of markdown, and three hundred copies of its config."""
    place = tmp_path_factory.mktemp("offered")
    base = plain(place / "base")
    found = [
        base,
        adapter(place / "tuned", "base"),
        classifier(place / "moods", ("calm", "glad")),
        plain(place / NAMED),
    ]
    for n in range(300):
        folder = place / f"model-{n:03}"
        folder.mkdir()
        for file in base.iterdir():
            (folder / file.name).symlink_to(file)
        found.append(folder)
    return found


@pytest.fixture(scope="module")
def address(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADLIGHT_MODELS", ",".join(map(str, folders)))
        log = tmp_path_factory.mktemp("server") / "log"
        with serving("app/main.py", log) as address:
            yield address
        assert "Traceback" not in log.read_text()


def test_each_model_is_known_by_form_size_and_use(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    offered = session_models.read(",".join(map(str, folders[:4])), [*session_models.MODELS.values()])
    monkeypatch.setattr(session_models, "MODELS", offered)
    found = {each.id: each for each in listed.listed(offered)}
    assert (found["smollm2"].form, found["translator"].form) == ("decoder", "encoder-decoder")
    assert found["moods"].form == "classifier" and found["tuned"].form == found["base"].form == "encoder"
    assert "with an adapter" in found["tuned"].use
    assert found["base"].n_params == find("minilm").n_params
    assert all(each.use and each.n_params for each in found.values())

    def those(text: str = "", form: str = "", size: str = "") -> set[str]:
        return {each.id for each in found.values() if each.matches(text, form, size)}

    assert those("german english") == {"translator"} and those(form="classifier") == {"moods"}
    assert those("CLASS") == {"moods"} and those("odd *name") == {NAMED}
    assert "smollm2" in those(size="middle") and "copy" in those(size="small") and not those(size="large")
    assert those("copy", form="encoder") == set() and those() == set(found)


def test_a_model_that_could_not_be_read_is_read_again(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ModelSpec(id="late", title="late", source="hub", location="somebody/late")
    monkeypatch.setattr(session_models, "MODELS", {"late": spec})
    monkeypatch.setattr(checkpoints, "cached", lambda _: None)
    assert [each.form for each in listed.listed(["late"])] == [""]
    monkeypatch.setattr(checkpoints, "cached", lambda _: folders[0])
    assert [each.form for each in listed.listed(["late"])] == ["encoder"]


def opened(screen: Screen) -> Locator:
    screen.page.get_by_label(words.MODEL, exact=True).click()
    screen.page.get_by_role("option", name=words.ALL_OPTION, exact=True).click()
    dialog = screen.page.get_by_role("dialog")
    expect(dialog).to_contain_text("20 of 3", timeout=PATIENCE)
    return dialog


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(1280, 720), (390, 844)], ids=str)
def test_three_hundred_models_are_found_by_name_form_and_keys(
    browser: Browser, address: str, size: tuple[int, int]
) -> None:
    with lend(browser, viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce") as page:
        screen = Screen(page, address).open("?model=MiniLM-L6")
        dialog = opened(screen)
        assert "model=MiniLM-L6" in page.url  # the box shows again what it showed
        assert findings(screen) == []
        wide = dialog.evaluate("box => [box.scrollWidth - box.clientWidth, document.documentElement.scrollWidth]")
        assert wide[0] <= 1 and wide[1] <= size[0]
        dialog.get_by_role("button", name=words.HERE_MORE.format(n=20)).click()
        expect(dialog).to_contain_text("40 of 3")
        field = dialog.get_by_label(words.ALL_FIND)
        field.fill("no such thing")
        field.press("Enter")
        expect(dialog).to_contain_text(words.ALL_NONE)
        field.fill("odd")
        field.press("Enter")
        expect(dialog.get_by_role("button", name=NAMED, exact=True)).to_be_visible()  # as it is spelt
        field.fill("")
        field.press("Enter")
        dialog.get_by_role("radio", name=session_words.FORMS["classifier"], exact=True).press("Enter")
        expect(dialog).to_contain_text("1 of 1")
        moods = dialog.get_by_role("button", name="moods", exact=True)
        expect(moods).to_have_count(1)  # the list before, which had it too, goes a moment later
        moods.press("Enter")
        expect(dialog).to_have_count(0)
        page.wait_for_url("**model=moods*")
        screen.leave()
