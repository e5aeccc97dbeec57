"""Texts that a drawing or a table shows instead of the machine's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..compiled import head_machine
from ..errors import InvalidExportError
from ..head import DEFAULT_EDITION
from ..vocabulary import phrase_of, sides_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..exploration import Input
    from ..head import Action
    from ..machine import AnyEdition

__all__ = ["PLAIN", "Labels", "labels_of"]

_LONGEST = 40
_SIGNS = " _-.,+/()!?'"
"""Besides letters and digits of any script; other signs mean something in one of the formats."""


class Labels(NamedTuple):
    """Texts for names; a name without a text is shown as it is.

    Attributes
    ----------
    texts : tuple of (name, text)
    """

    texts: tuple[tuple[str, str], ...] = ()

    def of(self, name: str) -> str:
        """The text for a head, a call, a guard, a flag, a refusal or a side."""
        return dict(self.texts).get(name, name)

    def of_action(self, action: Action) -> str:
        """The text for an action in a drawing; a few words, if it has none."""
        return dict(self.texts).get(action.value) or phrase_of(action, self.of)

    def of_input(self, asked: Input) -> str:
        """The text for a call with its argument, or for a change of mode."""
        name = "" if asked.call is None else asked.call.value
        return self.of(name) + str(asked)[len(name) :]


PLAIN = Labels()
"""No texts: every name is shown as it is."""


def labels_of(texts: Sequence[str], edition: AnyEdition = DEFAULT_EDITION) -> Labels:
    """Read labels as a person writes them.

    Parameters
    ----------
    texts : sequence of str
        Each is ``NAME=TEXT``, or several of these with semicolons between them.  A name is one of a head, call, guard,
        flag, action or refusal of the edition, or a side: CPU or GPU.  A text has 1 to 40 letters, digits, blanks and
        ``_-.,+/()!?'``.
    edition : str or Declaration
        A name from ``EDITIONS``, or a `Declaration`.

    Raises
    ------
    InvalidExportError
        If there is no such name, if a name has two texts or none, if a text is too long or has another character, or
        if two heads or two calls would look the same.
    DeclarationError
        If there is no such edition.
    """
    kinds, found = _names(edition), dict[str, str]()
    known = dict.fromkeys(name for names in kinds.values() for name in names)
    for part in (part for text in texts for part in text.split(";") if part.strip()):
        name, equals, label = (word.strip() for word in part.partition("="))
        if not equals:
            raise InvalidExportError(f"a label is NAME=TEXT, not {part.strip()!r}")
        if name not in known:
            raise InvalidExportError.unknown("name", name, known)
        if name in found:
            raise InvalidExportError(f"{name} has two labels, {found[name]!r} and {label!r}")
        found[name] = _checked(name, label)
    labels = Labels(tuple(found.items()))
    for kind in ("head", "call"):
        _check_apart(kind, kinds[kind], labels)
    return labels


def _names(edition: AnyEdition) -> dict[str, tuple[str, ...]]:
    """The names of a machine that can be shown, by kind."""
    machine = head_machine(edition)
    return {
        "head": tuple(head.name for head in machine.edition.heads),
        "call": tuple(call.value for call in machine.calls),
        "guard": tuple(guard.value for guard in machine.names.guards),
        "flag": tuple((fact.name or "").lower() for fact in machine.names.facts if fact in machine.edition.flags),
        "action": tuple(action.value for action in machine.names.actions),
        "refusal": tuple(refusal.value for refusal in machine.names.refusals),
        "side": tuple(sides_of(machine.names).values()),
    }


def _checked(name: str, label: str) -> str:
    if not label:
        raise InvalidExportError(f"the label of {name} is empty")
    if len(label) > _LONGEST:
        raise InvalidExportError(f"the label of {name} has {len(label)} characters, and can have {_LONGEST}: {label!r}")
    if wrong := [sign for sign in label if not (sign.isalnum() or sign in _SIGNS)]:
        raise InvalidExportError(
            f"the label of {name} has {wrong[0]!r}: use letters, digits, blanks and {_SIGNS.strip()}"
        )
    return label


def _check_apart(kind: str, names: Iterable[str], labels: Labels) -> None:
    there: dict[str, str] = {}
    for name in names:
        text = labels.of(name)
        if text in there:
            raise InvalidExportError(f"the {kind}s {there[text]} and {name} would both be shown as {text!r}")
        there[text] = name
