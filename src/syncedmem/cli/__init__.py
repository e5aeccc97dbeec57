"""The command line: a module of this folder that has a function of its own name has a command.

The docstring and the options of the function are the command's help.  What takes long to import, such as the spec, a
command imports when it runs, so that ``--help`` stays quick.  ``display``, ``output`` and ``signals`` are for all of
them.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Any

import typer

from syncedmem import __version__
from syncedmem.interrupts import say
from syncedmem.model import FileFormatError, SyncedMemoryError

from .display import help_of
from .output import name_standard_output, printable
from .signals import interruptible

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Generator, Iterator

__all__ = ["app", "commands", "main"]

app: typer.Typer = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text: Rich draws boxes, and shows flags as if they took a <bool>
    help="Host/device mirrored memory as Caffe defined it. To check it on this machine, run: syncedmem verify",
)

_STORAGE = "HYPOTHESIS_STORAGE_DIRECTORY"
"""The environment variable by which Hypothesis is told where it may keep files."""


def commands() -> Iterator[Callable[..., Any]]:
    """The function of each command."""
    for module in iter_modules(__path__):
        command = getattr(import_module(f".{module.name}", __name__), module.name, None)
        if command is not None:
            yield command


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, metavar="", help="Print the version and exit."),
    ] = False,
) -> None:
    del version


for _command in commands():
    app.command(help=help_of(_command))(_command)


def main() -> None:
    """Run the command line; errors of this package become one line and exit status 2."""
    name_standard_output()
    try:
        with _nothing_kept(), interruptible() as signals:
            _run(signals)
    except (SyncedMemoryError, OSError) as error:
        text = printable(_line(error), in_one_line=isinstance(error, FileFormatError))
        typer.echo(f"syncedmem: {text}", err=True)
        sys.exit(2)


def _run(signals: list[signal.Signals]) -> None:
    """Run a command; one that was interrupted, and ends with an error, says so if it did not do it itself.

    Whatever the error is: in a library that is being imported, an interrupt often becomes one of another class.
    """
    try:
        app()
    except BaseException as end:
        if not signals or (isinstance(end, SystemExit) and not end.code):
            raise
        sys.exit(say(signals[0]))


@contextmanager
def _nothing_kept() -> Generator[None]:
    """Have Hypothesis keep nothing in the current folder, unless the user says where it may.

    What it keeps only saves it a second, and where it cannot make a folder it does without.
    """
    before = {name: value for name, value in os.environ.items() if name == _STORAGE}
    os.environ[_STORAGE] = before.get(_STORAGE) or os.devnull  # which processes that are started inherit
    try:
        yield
    finally:
        del os.environ[_STORAGE]
        os.environ.update(before)


def _line(error: Exception) -> str:
    """What an error says, in one line; one of the system, which file it is about and then what is wrong with it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
