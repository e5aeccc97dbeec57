"""The machine as a Rust module without dependencies: enums, the table, and two functions that look up and step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..editions import head_machine
from ..head import Action, Call, Fact, Refusal, SyncedHead
from ..machine import DATA, Row
from ..mode import Mode
from .document import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["rust_module"]

_TAIL = """\
/// The row that answers a call, or None where this edition has no such call or head.
pub fn find(call: Call, head: Head, facts: u32, has_data: bool) -> Option<&'static Row> {
    let found = facts | if has_data { HAS_DATA } else { 0 };
    TABLE.iter().find(|row| {
        row.call == call && row.head == head && found & row.required == row.required && found & row.excluded == 0
    })
}

impl Row {
    /// The facts after this row, if all its actions succeeded; the head afterwards is `dest`.
    pub const fn facts_after(&self, facts: u32, mode: Mode) -> u32 {
        facts & self.kept[mode as usize] | self.sets[mode as usize]
    }
}
"""


def rust_module(edition: str = "caffe") -> str:
    """The machine of an edition as the text of a module.

    Raises
    ------
    DeclarationError
        If there is no such edition.
    """
    rows = head_machine(edition).rows
    lines = [
        f"//! The head machine of SyncedMemory, edition {edition}, format {VERSION}. Made by syncedmem diagram.",
        "",
        *_enum("Head", "Which copy is fresh.", ((head.name, head.value) for head in SyncedHead)),
        *_enum("Call", "What can be asked of a memory.", ((call.name, n) for n, call in enumerate(Call))),
        *_enum("Action", "A step that moves memory.", ((action.name, n) for n, action in enumerate(Action))),
        *_enum("Refusal", "Why a call is refused.", ((refusal.name, n) for n, refusal in enumerate(Refusal))),
        *_enum("Mode", "Caffe's mode.", ((mode.name, mode.value) for mode in Mode)),
        *(f"pub const {fact.name}: u32 = {fact.value};" for fact in Fact),
        f"pub const HAS_DATA: u32 = {DATA};",
        "",
        "/// A row of the table.  `required` and `excluded` are masks over the facts and `HAS_DATA`, `kept` and `sets`",
        "/// masks over the facts by mode; `dest` is `head` where the head stays as it is.",
        "#[derive(Debug, Clone, Copy, PartialEq, Eq)]",
        "pub struct Row {",
        "    pub id: &'static str,",
        "    pub cite: &'static str,",
        "    pub call: Call,",
        "    pub head: Head,",
        "    pub dest: Head,",
        "    pub required: u32,",
        "    pub excluded: u32,",
        "    pub refusal: Option<Refusal>,",
        "    pub actions: &'static [Action],",
        "    pub kept: [u32; 2],",
        "    pub sets: [u32; 2],",
        "}",
        "",
        f"pub static TABLE: [Row; {len(rows)}] = [",
        *(f"    {_row(row)}," for row in rows),
        "];",
        "",
    ]
    return "\n".join(lines) + "\n" + _TAIL


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _enum(name: str, about: str, members: Iterable[tuple[str, int]]) -> list[str]:
    body = [f"    {_camel(member)} = {value}," for member, value in members]
    return [f"/// {about}", "#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]", f"pub enum {name} {{", *body, "}", ""]


def _row(row: Row) -> str:
    refusal = f"Some(Refusal::{_camel(row.refusal.name)})" if row.refusal else "None"
    actions = ", ".join(f"Action::{_camel(action.name)}" for action in row.actions)
    return (
        f'Row {{ id: "{row.identifier}", cite: "{row.declared.cite}", call: Call::{_camel(row.declared.call.name)}, '
        f"head: Head::{_camel(row.head.name)}, dest: Head::{_camel(row.dest.name)}, required: {row.required}, "
        f"excluded: {row.excluded}, refusal: {refusal}, actions: &[{actions}], "
        f"kept: [{row.kept[0]}, {row.kept[1]}], sets: [{row.sets[0]}, {row.sets[1]}] }}"
    )
