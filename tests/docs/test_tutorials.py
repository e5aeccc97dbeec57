"""The tutorials: a reader who does what they say sees what they show."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import program
from walkthrough import WrongTutorialError, follow

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"


@pytest.mark.no_cover
@pytest.mark.parametrize("page", sorted(TUTORIALS.glob("*.md")), ids=lambda page: page.stem)
def test_a_reader_sees_what_the_tutorial_shows(page: Path, tmp_path: Path) -> None:
    """Their C and C++ needs a compiler. A picture that the reader makes is the one in docs/pictures."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed: make docs")
    program("g++")

    assert 2 <= follow(page, tmp_path)
    for picture in tmp_path.glob("*.svg"):
        assert (TUTORIALS.parent / "pictures" / picture.name).read_text() == picture.read_text()


PAGE = """# A program

Save this as `hello.sh`:

```bash
echo hello
```

It says hello. Add to `hello.sh`:

```bash
echo at 0x1234
exit 3
```

```console
$ bash hello.sh
hello
at 0x99
$ echo $?
3
```

Change `hello.sh`:

```diff
 echo at 0x1234
-exit 3
+echo more
```

Put this in place of `more` in `hello.sh`:

```bash
echo put
```

Add some lines of another file to `hello.sh`:

```{literalinclude} ../other.sh
:start-at: echo bye
:end-at: bye
```

Add the lines before `echo nor me` to `hello.sh`:

```{literalinclude} ../other.sh
:start-at: exit
:end-before: echo nor me
```

```console
$ bash hello.sh
hello
...
bye
```

Save it as `all.sh`:

```{literalinclude} ../other.sh
```

```{toctree}
```
"""


def followed(text: str, folder: Path) -> int:
    """Follow a page; the folder above it has another file."""
    (folder / "pages").mkdir()
    (folder / "other.sh").write_text("echo not me\necho bye\nexit\necho nor me\n")
    page = folder / "pages" / "page.md"
    page.write_text(text)
    (folder / "mine").mkdir()
    return follow(page, folder / "mine")


def test_files_are_saved_and_changed_and_commands_are_run(tmp_path: Path) -> None:
    assert 3 == followed(PAGE, tmp_path)
    mine, other = tmp_path / "mine", tmp_path / "other.sh"

    assert "echo hello\necho at 0x1234\necho put\necho bye\nexit\n" == (mine / "hello.sh").read_text()
    assert other.read_text() == (mine / "all.sh").read_text()


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("echo hello\n", "echo hallo\n", "printed\nhallo"),
        ("at 0x99", "at 99", "printed\nhello\nat 0x1234"),
        ("\nbye\n", "\nbye\nmore\n", "The page shows\nhello\n...\nbye\nmore"),
        ("$ echo $?\n3\n", "", "ended with status 3"),
        ("$ echo $?\n3\n", "$ echo $?\n0\n", "echo \\$\\?\nended with status 0 and printed\n3"),
        ("-exit 3", "-exit 4", "these lines are 0 times in the file"),
        ("place of `more`", "place of `less`", "0 lines have 'less'"),
        ("place of `more`", "place of `echo`", "3 lines have 'echo'"),
        ("Save this as `hello.sh`:", "This is hello:", "nothing says what this block is for"),
    ],
)
def test_a_page_that_is_wrong_is_found(tmp_path: Path, was: str, now: str, message: str) -> None:
    assert was in PAGE
    with pytest.raises(WrongTutorialError, match=message):
        followed(PAGE.replace(was, now), tmp_path)
