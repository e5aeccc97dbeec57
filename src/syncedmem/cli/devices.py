"""The command ``devices``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from syncedmem.model import NoDeviceError

from .display import table, widen

__all__ = ["devices"]


def devices(
    *, as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of a table.")] = False
) -> None:
    """List the devices of this machine.

    For each device the list says what it is, or what is missing for it. SyncedMemory(size, device=NAME) takes these
    names; cpu is the host alone, as device=None. A number says which device of its kind, counted from 0, as in cuda:1.

    Without device=, a memory has device="auto". The line below the table says which device that is here. The
    environment variable SYNCEDMEM_DEVICE can name another one of the list.

    "memory only" means that the compiler of the device does not work. Memory and copies work all the same, and with
    OpenCL the host computes.
    """
    from syncedmem.runtime import probe
    from syncedmem.runtime.devices.registry import automatic_name

    reports, automatic, trouble = probe(), "", ""
    try:
        automatic = automatic_name()
    except NoDeviceError as error:
        trouble = str(error)
    if as_json:
        kind = automatic.partition(":")[0]
        typer.echo(json.dumps([{**vars(report), "auto": report.name == kind} for report in reports], indent=2))
        if trouble:
            typer.echo(f"syncedmem: {trouble}", err=True)
        return
    rows = table("device", "available", "what it is, or what is missing")
    for report in reports:
        mark = "[green]yes[/green]" if report.available else "[dim]no[/dim]"
        if report.limits:
            mark += f", {escape(report.limits)}"
        rows.add_row(report.name, mark, escape(report.detail))
    console = Console()
    widen(console)
    console.print(rows)
    meaning = f"[bold red]nothing[/]: {escape(trouble)}" if trouble else automatic
    console.print(f'device="auto" is {meaning}', highlight=False, soft_wrap=True)
