"""What a machine is: words whose meaning is stated, and rows.  Nothing here knows a word of Caffe's.

A *head* is a state, and says which sides hold the newest bytes.  A *call* is made from outside, an *action* is a step
of it, and a *fact* is true or false besides the head: that a side has a pointer, that we own it.  A *row* says what a
call does in some heads: its actions and the next head, or the reason of a refusal.  A *setting* is an input that is no
call.

A word that means nothing is legal.  It is drawn, tabulated, exported and explored like the others; only who judges
memories (the spec) and who moves bytes (the runtime) ask what it means.  Nobody takes a name apart to learn that.

A kind of words is listed whole or not at all: without a list the words are those of the rows, in their order.  So a
first machine needs only rows:

>>> Machine("door", [Row("open", "SHUT", "OPEN"), Row("close", "OPEN", "SHUT", do="ring")]).initial.name
'SHUT'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from .errors import DeclarationError, listed
from .size import MOST_WORDS, check_size

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = [
    "ACTION_MEANINGS",
    "CALL_MEANINGS",
    "FACT_MEANINGS",
    "Action",
    "BySetting",
    "Call",
    "Fact",
    "Head",
    "Machine",
    "Refusal",
    "Row",
    "Setting",
    "Word",
]

CALL_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "": "nothing that is known: it is only drawn; by a table alone its heads are compared too",
        "read": "returns a view of the side, which is fresh then",
        "write": "returns a view of the side to write; the side alone is fresh then",
        "overwrite": "the same, and nothing is copied to the side, because all of its bytes are going to be written",
        "adopt": "makes a buffer of the caller the memory of the side, which alone is fresh then",
        "push": "queues a copy from `source` to the side; both are fresh at once",
        "pull": "the same; another word for the other direction",
        "prefetch": "copies to the side what may be needed there; it is judged as a read that returns nothing",
        "evict": "makes the side stale; if it alone was fresh, its bytes go home first",
        "release": "frees what the memory owns, and ends it",
    }
)
"""What a call can do."""

_WRITES = ("write", "overwrite")
_SHOWS = ("read", *_WRITES)
_QUEUES = ("push", "pull")
_OF_A_SIDE = (*_SHOWS, "adopt", *_QUEUES)
"""What a call can only do to one side."""

ACTION_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "": "nothing that is known: it is only drawn",
        "allocate": "allocates the memory of the side; a side that no action allocates is there from the beginning",
        "zero": "fills the side with zeros",
        "copy": "copies from `source` to the side; if it is `queued`, perhaps after the call has returned",
        "adopt": "makes the buffer that the call was given the memory of the side",
        "free": "frees the memory of the side",
        "wait": "waits for queued copies; it is only drawn",
    }
)
"""What an action can do to the memory of its side."""

FACT_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "": "nothing that is known",
        "pointer": "there is memory on the side, the memory's own or the caller's",
        "owned": "the memory of the side was allocated, and has to be freed",
        "pinned": "the memory of the side is page-locked",
        "in flight": "a queued copy is not done; it is only drawn",
        "dirty": "the side was written; it is only drawn",
    }
)
"""What a fact can say of its side."""

_JOINERS = dict.fromkeys(map(ord, "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"))
"""Letters without ink, which Persian has, and emoji."""
_SHOWN = 3
"""How many words an error lists at most."""


@dataclass(frozen=True, slots=True)
class Head:
    """A state of the machine.

    Attributes
    ----------
    name : str
    fresh : tuple of str
        The sides that hold the newest bytes; none in a memory to which nobody has written.
    letter : str
        What stands for it in names of configurations; if empty, its name.
    """

    name: str
    fresh: tuple[str, ...] = ()
    letter: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Call:
    """What is called from outside.

    Attributes
    ----------
    name : str
    does : str
        One of `CALL_MEANINGS`.
    side : str
        The side that it is about; empty if it is about none, or about all.
    source : str
        Of a push or a pull: the side from which the bytes come.
    takes : str
        The name of the condition that it was given its argument; the call without it is an input of its own.  Empty if
        the call without its argument is not looked at.
    """

    name: str
    does: str = ""
    side: str = ""
    source: str = ""
    takes: str = ""

    def __post_init__(self) -> None:
        _check_meaning("call", self.name, self.does, CALL_MEANINGS)
        if self.does in _OF_A_SIDE and not self.side:
            raise DeclarationError(f"the call {self.name} means {self.does!r}, and names no side")

    @property
    def shows(self) -> bool:
        """Whether it returns a view of its side."""
        return self.does in _SHOWS

    @property
    def writes(self) -> bool:
        """Whether the caller writes through the view that it returns."""
        return self.does in _WRITES

    @property
    def queues(self) -> bool:
        """Whether it queues a copy to its side."""
        return self.does in _QUEUES

    @property
    def ends(self) -> bool:
        """Whether the memory is gone after the call."""
        return self.does == "release"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Fact:
    """What is true or false besides the head.

    Attributes
    ----------
    name : str
    means : str
        One of `FACT_MEANINGS`.
    side : str
    flag : bool
        Whether a memory can be asked for it.
    """

    name: str
    means: str = ""
    side: str = ""
    flag: bool = False

    def __post_init__(self) -> None:
        _check_meaning("fact", self.name, self.means, FACT_MEANINGS)

    def __str__(self) -> str:
        return self.name


class BySetting(NamedTuple):
    """The value of a fact that is true if a setting has a value, and false if it has another one."""

    setting: str
    value: str

    def holds(self, settings: Mapping[str, str]) -> bool:
        """Whether the fact is true, for these values of the settings."""
        return settings[self.setting] == self.value


@dataclass(frozen=True, slots=True)
class Action:
    """A step of a call, and its effect on the facts.

    Attributes
    ----------
    name : str
    does : str
        One of `ACTION_MEANINGS`.
    side : str
        The side whose memory it changes.
    source : str
        Of a copy: the side from which the bytes come.
    queued : bool
        Whether it may happen after the call has returned.
    sets, clears : tuple of str
        The facts that are true, and those that are false, afterwards.
    by_setting : tuple of (str, str, str)
        A fact, a setting and a value: the fact is true afterwards if the setting has this value, and false if not.
    code : str
        What stands for it in tables with many cells; if empty, its name.
    """

    name: str
    does: str = ""
    side: str = ""
    source: str = ""
    queued: bool = False
    sets: tuple[str, ...] = ()
    clears: tuple[str, ...] = ()
    by_setting: tuple[tuple[str, str, str], ...] = ()
    code: str = ""

    def __post_init__(self) -> None:
        _check_meaning("action", self.name, self.does, ACTION_MEANINGS)
        for name in ("sets", "clears"):  # one name stands alone, as in rows, and is no sequence of letters
            if isinstance(fact := getattr(self, name), str):
                object.__setattr__(self, name, (fact,))
        if self.does and not self.side:
            raise DeclarationError(f"the action {self.name} means {self.does!r}, and names no side")
        if self.does == "copy" and self.source in ("", self.side):
            raise DeclarationError(f"the action {self.name} is a copy to {self.side}, and names no other source")

    @property
    def changes(self) -> dict[str, bool | BySetting]:
        """The facts that it changes, with their values afterwards."""
        by_setting = {fact: BySetting(setting, value) for fact, setting, value in self.by_setting}
        return {**dict.fromkeys(self.sets, True), **dict.fromkeys(self.clears, False), **by_setting}

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is refused.

    Attributes
    ----------
    name : str
    error : str
        The name of the class of `syncedmem.model.errors` that tells it.
    needs : str
        The only head in which the call is allowed, if that is the reason.
    text : str
        What the error says, if it does not say which head is needed; if empty, the name.
    """

    name: str
    error: str = "IllegalCallError"
    needs: str = ""
    text: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Setting:
    """An input that is no call, such as Caffe's mode: it selects no row, and actions may look at it.

    Attributes
    ----------
    name : str
    values : tuple of str
    start : str
        The value at the beginning; if empty, the first one.

    Raises
    ------
    DeclarationError
        If there are no values, or if that of the beginning is none of them.
    """

    name: str
    values: tuple[str, ...]
    start: str = ""

    def __post_init__(self) -> None:
        if not self.values:
            raise DeclarationError(f"the setting {self.name} has no values")
        if self.start and self.start not in self.values:
            known = listed(self.values)
            raise DeclarationError(f"the setting {self.name} cannot start as {self.start!r}: there are {known}")

    @property
    def initial(self) -> str:
        """The value at the beginning."""
        return self.start or self.values[0]

    def __str__(self) -> str:
        return self.name


Word = Head | Call | Fact | Action | Refusal | Setting
Named = str | Word
"""A word, or its name."""
WordT = TypeVar("WordT", Head, Call, Fact, Action, Refusal)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Row:
    """What a call does in some heads, if the conditions hold; words are stored by their names.

    Parameters
    ----------
    call : str or Call
    source : str, Head or several
    dest : str or Head, optional
        The next head.  Without it the head stays as it is; or the memory is gone, if the call ends it.
    do : str, Action or several
        The actions, in the order in which they happen.
    when, unless : str, Fact or several
        The facts that must be true, and those that must be false.
    refused : str or Refusal
        Why the call is refused; then nothing happens.
    cite : str
        Where the original says so.
    only : str or several
        The machines that `Machine.select` makes to which the row belongs; empty for all of them.

    Attributes
    ----------
    call, refusal, cite : str
    source, actions, conditions, unless, only : tuple of str
    dest : str or None
    """

    call: str
    source: tuple[str, ...]
    dest: str | None
    actions: tuple[str, ...]
    conditions: tuple[str, ...]
    unless: tuple[str, ...]
    refusal: str
    cite: str
    only: tuple[str, ...]

    def __init__(  # noqa: PLR0913 -- the parts of a row
        self,
        call: Named,
        source: Named | Iterable[Named],
        dest: Named | None = None,
        *,
        do: Named | Iterable[Named] = (),
        when: Named | Iterable[Named] = (),
        unless: Named | Iterable[Named] = (),
        refused: Named = "",
        cite: str = "",
        only: str | Iterable[str] = (),
    ) -> None:
        if not isinstance(cast("object", cite), str):
            raise DeclarationError(f"{cite!r} is no text for cite=")
        attributes = {
            "call": _name(call),
            "source": _names(source),
            "dest": None if dest is None else _name(dest),
            "actions": _names(do),
            "conditions": _names(when),
            "unless": _names(unless),
            "refusal": _name(refused),
            "cite": cite,
            "only": _names(only),
        }
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def identifier(self, head: str) -> str:
        """A stable name in one of its heads: call, head and conditions, but no position."""
        tested = [fact if wanted else f"!{fact}" for fact, wanted in self.guards.items()]
        return f"{self.call}@{head}" + (f"[{','.join(tested)}]" if tested else "")

    @property
    def guards(self) -> dict[str, bool]:
        """The facts that it tests, with the values that they must have."""
        return {**dict.fromkeys(self.conditions, True), **dict.fromkeys(self.unless, False)}

    def unmet(self, holds: frozenset[str]) -> frozenset[str]:
        """The conditions that keep it from firing where these are true; none if it fires."""
        return frozenset(self.conditions) - holds | holds.intersection(self.unless)

    def __str__(self) -> str:
        return self.identifier("|".join(self.source))

    def __repr__(self) -> str:
        """As it is written: what is not said is left out, and one word stands alone."""
        named = {"do": self.actions, "when": self.conditions, "unless": self.unless, "only": self.only}
        arguments = [repr(self.call), _spelt(self.source), *([] if self.dest is None else [repr(self.dest)])]
        arguments += [f"{name}={_spelt(words)}" for name, words in named.items() if words]
        arguments += [f"{name}={text!r}" for name, text in (("refused", self.refusal), ("cite", self.cite)) if text]
        return f"Row({', '.join(arguments)})"


Words = Iterable[Any]
"""Words of a kind, or names of words that mean nothing."""


@dataclass(frozen=True, init=False, repr=False)
class Machine:
    """Words and rows; its words are looked up by their names.

    Parameters
    ----------
    name : str
    rows : iterable of Row
    title : str
        What its drawings and tables are called; if empty, its name.
    about : str
        A description that helps to choose.
    sides : iterable of str
        The places where bytes can be, the host first if there is one.  Without it they are those that the words name.
    heads : iterable of Head or str, or dict of str to str or several
        The head of a new memory first.  A dict has the fresh sides of each.
    calls, facts, actions, refusals : iterable of words or str
    settings : iterable of Setting
    cycles : iterable of iterable of str or Call
        Sequences of calls that can be repeated from a new memory.
    cite : str
        Where it is described.
    numbered_as : Machine, optional
        A machine with all of these words: in code they have the numbers that they have there.  A selection has those of
        the machine from which it was selected, so that all selections can be used together.

    Attributes
    ----------
    heads, calls, facts, actions, refusals, settings : mapping of str to word
        In their order.

    Raises
    ------
    DeclarationError
        If a word is listed twice, or is used and not listed; if a call has no rows; or if a row contradicts itself.
    """

    name: str
    rows: tuple[Row, ...]
    title: str
    about: str
    sides: tuple[str, ...]
    heads: Mapping[str, Head]
    calls: Mapping[str, Call]
    facts: Mapping[str, Fact]
    actions: Mapping[str, Action]
    refusals: Mapping[str, Refusal]
    settings: Mapping[str, Setting]
    cycles: tuple[tuple[str, ...], ...]
    cite: str
    numbered_as: Machine = field(compare=False)

    def __init__(  # noqa: PLR0913 -- the kinds of words
        self,
        name: str,
        rows: Iterable[Row],
        *,
        title: str = "",
        about: str = "",
        sides: Iterable[str] = (),
        heads: Words | Mapping[str, Named | Iterable[Named]] = (),
        calls: Words = (),
        facts: Words = (),
        actions: Words = (),
        refusals: Words = (),
        settings: Iterable[Setting] = (),
        cycles: Iterable[Iterable[Named]] = (),
        cite: str = "",
        numbered_as: Machine | None = None,
    ) -> None:
        _check_texts(name, title, {"about": about, "cite": cite})
        rows = tuple(rows)
        if not rows:
            raise DeclarationError(f"{name}: this machine has no rows")
        if strange := [row for row in cast("tuple[object, ...]", rows) if not isinstance(row, Row)]:
            raise DeclarationError(f"{name}: {strange[0]!r} is no row")
        kinds = _Kinds(name, rows)
        attributes: dict[str, Any] = {
            "name": name,
            "rows": rows,
            "title": title or name,
            "about": about,
            "heads": kinds.heads(heads),
            "calls": kinds.words(Call, calls, lambda row: [row.call]),
            "actions": kinds.words(Action, actions, lambda row: row.actions),
            "refusals": kinds.words(Refusal, refusals, lambda row: [row.refusal] if row.refusal else []),
            "settings": kinds.settings(tuple(settings)),
            "cycles": tuple(map(_names, cycles)),
            "cite": cite,
        }
        if idle := attributes["calls"].keys() - {row.call for row in rows}:
            raise DeclarationError(f"{name}: the call {min(idle)!r} has no rows")
        arguments = {call.takes for call in attributes["calls"].values() if call.takes}
        attributes["facts"] = kinds.facts(facts, attributes["actions"], arguments)
        attributes["sides"] = kinds.sides(tuple(sides), attributes)
        attributes["numbered_as"] = self if numbered_as is None else numbered_as
        kinds.check_letters(attributes)
        for name_, value in attributes.items():
            object.__setattr__(self, name_, value)
        kinds.check_cycles(self)
        kinds.check_settings(self)

    @property
    def initial(self) -> Head:
        """The head of a new memory."""
        return next(iter(self.heads.values()))

    @property
    def copies(self) -> bool:
        """Whether one of its actions copies."""
        return any(action.does == "copy" for action in self.actions.values())

    @property
    def flags(self) -> tuple[Fact, ...]:
        """The facts that a memory can be asked for."""
        return tuple(fact for fact in self.facts.values() if fact.flag)

    def select(  # noqa: PLR0913 -- what is said of a machine
        self,
        name: str,
        *,
        title: str = "",
        about: str = "",
        fix: Mapping[str, str | bool] = MappingProxyType({}),
        without: Named | Iterable[Named] = (),
        cycles: Iterable[Iterable[Named]] = (),
        cite: str = "",
    ) -> Machine:
        """Another machine out of some of these rows, never a copy of them.

        It has the rows that belong to it, without those that need a fact which is fixed as false, and the words that
        are left then.  Heads to which no row leads are dropped.

        Parameters
        ----------
        name : str
            The name of the new machine, by which rows belong to it (``only``).
        title, about : str
        fix : dict
            Facts, by their names.  False: the fact never holds, and is gone.  The name of another fact: it always
            equals that one, so conditions may name it, and memories have no such flag.
        without : str, Call or several
            Calls that it does not have.
        cycles : iterable
            As for `Machine`.
        cite : str

        Raises
        ------
        DeclarationError
            If a fact that is fixed, or a call, is unknown; or if nothing is left.
        """
        dropped = set(_names(without))
        if strange := sorted(dropped - self.calls.keys()):
            raise DeclarationError(f"{name}: {self.name} has no call {strange[0]!r} to drop")
        if unknown := [
            *fix.keys() - self.facts.keys(),
            *({value for value in fix.values() if value} - self.facts.keys()),
        ]:
            raise DeclarationError(f"{name}: {self.name} has no fact {unknown[0]!r} to fix")
        never = {fact for fact, value in fix.items() if value is False}
        mine = (row for row in self.rows if row.call not in dropped and (not row.only or name in row.only))
        wanted = (_without(row, never) for row in mine)
        rows = _reachable([row for row in wanted if row is not None], self.initial.name)
        used = _Kinds(name, tuple(rows))
        heads = used.names(lambda row: [*row.source, *([] if row.dest is None else [row.dest])])
        actions = used.names(lambda row: row.actions)
        return Machine(
            name,
            rows,
            title=title,
            about=about,
            sides=self.sides,
            heads=[head for head in self.heads.values() if head.name in heads],
            calls=_kept(self.calls, used.names(lambda row: [row.call])),
            facts=[
                fact if fact.name not in fix else replace(fact, flag=False)
                for fact in self.facts.values()
                if fact.name not in never
            ],
            actions=[_blind(action, never) for action in _kept(self.actions, actions)],
            refusals=_kept(self.refusals, used.names(lambda row: [row.refusal])),
            settings=self.settings.values(),
            cycles=cycles,
            cite=cite,
            numbered_as=self.numbered_as,
        )

    def __repr__(self) -> str:
        return f"<Machine {self.name}: {len(self.heads)} heads, {len(self.calls)} calls, {len(self.rows)} rows>"

    def _repr_svg_(self) -> str | None:
        """The diagram, in a notebook; None, and with it the repr, if the machine is unsound."""
        from .diagrams.diagram import diagram_svg  # noqa: PLC0415 -- it is on a higher floor; only a notebook asks

        try:
            return diagram_svg(self)
        except DeclarationError:
            return None

    def __reduce__(self) -> tuple[Callable[..., Machine], tuple[dict[str, Any]]]:
        """For copies and pickles: mappings that cannot be changed have neither."""
        kinds = ("heads", "calls", "facts", "actions", "refusals", "settings")
        arguments: dict[str, Any] = {kind: [*getattr(self, kind).values()] for kind in kinds}
        arguments |= {
            name: getattr(self, name) for name in ("name", "rows", "title", "about", "sides", "cycles", "cite")
        }
        return _again, (arguments | {"numbered_as": None if self.numbered_as is self else self.numbered_as},)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.rows))  # mappings have none

    def __str__(self) -> str:
        return self.name


def _again(arguments: dict[str, Any]) -> Machine:
    return Machine(**arguments)


class _Kinds:
    """The words of a machine, from what was listed and from its rows."""

    def __init__(self, name: str, rows: tuple[Row, ...]) -> None:
        self._name = name
        self._rows = rows
        written = sum(len(row.source) * (1 + len(row.actions) + len(row.guards)) for row in rows)
        check_size(name, written, MOST_WORDS, "words are in its rows, counted for each head")
        for row in rows:
            if not row.source:
                raise DeclarationError(f"{name}: a row of {row.call} has no head in which it applies")
            if row.refusal and (row.actions or row.dest is not None):
                raise DeclarationError(f"{name}: {row} refuses, and has actions or leads to a head nevertheless")
            if both := set(row.conditions) & set(row.unless):
                raise DeclarationError(f"{name}: {row} wants {min(both)} to be true and to be false")

    def names(self, of: Callable[[Row], Iterable[str]]) -> dict[str, Row]:
        """The names that rows use, in their order, each with its first row."""
        first_rows: dict[str, Row] = {}
        for row in self._rows:
            for word in of(row):
                first_rows.setdefault(word, row)
        return first_rows

    def words(self, kind: type[WordT], given: Words, of: Callable[[Row], Iterable[str]]) -> Mapping[str, WordT]:
        """The words of a kind: those that were listed, or else those that rows use."""
        if isinstance(given, str):
            raise DeclarationError(f"{self._name}: {given!r} is a text, not a list of words")
        used, given = self.names(of), tuple(given)
        check_size(self._name, max(len(used), len(given)), MOST_WORDS, f"words of the kind {kind.__name__.lower()}")
        listed: list[Any] = [kind(word) if isinstance(word, str) else word for word in given]
        if not listed:
            return MappingProxyType({word: kind(word) for word in used})
        words: dict[str, WordT] = {}
        for word in listed:
            if not isinstance(word, kind):
                raise DeclarationError(f"{self._name}: {word!r} is no {kind.__name__.lower()}")
            if word.name in words:
                raise DeclarationError(f"{self._name}: the {kind.__name__.lower()} {word.name!r} is listed twice")
            words[word.name] = word
        for word, row in used.items():
            if word not in words:
                self._unknown(kind.__name__.lower(), word, row, words)
        return MappingProxyType(words)

    def heads(self, given: Words | Mapping[str, Named | Iterable[Named]]) -> Mapping[str, Head]:
        """The heads; the first is that of a new memory."""
        if isinstance(given, Mapping):
            sides = cast("Mapping[str, Named | Iterable[Named]]", given)
            check_size(self._name, len(sides), MOST_WORDS, "words of the kind head")
            given = [Head(head, _names(fresh)) for head, fresh in sides.items()]
        return self.words(Head, given, lambda row: [*row.source, *([] if row.dest is None else [row.dest])])

    def facts(self, given: Words, actions: Mapping[str, Action], arguments: set[str]) -> Mapping[str, Fact]:
        """The facts that rows test and actions change, without the conditions on arguments."""
        tested = self.words(Fact, given, lambda row: [fact for fact in row.guards if fact not in arguments])
        changed = dict.fromkeys(chain.from_iterable(action.changes for action in actions.values()))
        if given and (unknown := [fact for fact in changed if fact not in tested]):
            raise DeclarationError(f"{self._name}: an action changes the fact {unknown[0]!r}, which is not listed")
        return MappingProxyType({**tested, **{fact: Fact(fact) for fact in changed if fact not in tested}})

    def sides(self, given: tuple[str, ...], attributes: Mapping[str, Any]) -> tuple[str, ...]:
        """The sides that were listed, or else those that words name."""
        named: dict[str, Word] = {}
        for kind in ("heads", "calls", "facts", "actions"):
            for word in attributes[kind].values():
                of_word = (*getattr(word, "fresh", ()), getattr(word, "side", ""), getattr(word, "source", ""))
                named |= {side: word for side in of_word if side and side not in named}
        for side, word in named.items():
            if given and side not in given:
                raise DeclarationError(f"{self._name}: {word} is about the side {side!r}, which is not listed")
        return given or tuple(named)

    def check_letters(self, attributes: Mapping[str, Any]) -> None:
        """Check that each word can be written on a line."""
        for kind in ("heads", "calls", "facts", "actions", "refusals", "settings", "sides"):
            for word in attributes[kind]:
                if not _is_line(word):
                    raise DeclarationError(f"{self._name}: {word!r} among the {kind} cannot be written on a line")

    def check_cycles(self, machine: Machine) -> None:
        """Refuse cycles of calls that there are not."""
        for call in chain.from_iterable(machine.cycles):
            if call not in machine.calls:
                raise DeclarationError(f"{self._name}: a cycle calls {call!r}, for which there is no row")

    def settings(self, given: tuple[Setting, ...]) -> Mapping[str, Setting]:
        """The settings, which no row names."""
        values = sum(len(setting.values) for setting in given)
        check_size(self._name, values, MOST_WORDS, "values of settings")
        settings = {setting.name: setting for setting in given}
        if len(settings) < len(given):
            raise DeclarationError(f"{self._name}: a setting is listed twice: {listed(given)}")
        return MappingProxyType(settings)

    def check_settings(self, machine: Machine) -> None:
        """Refuse effects that look at settings or values that there are not."""
        for action in machine.actions.values():
            for _, name, value in action.by_setting:
                if name not in machine.settings or value not in machine.settings[name].values:
                    raise DeclarationError(f"{self._name}: {action} looks at the setting {name}={value}: there is none")

    def _unknown(self, kind: str, word: str, row: Row, known: Iterable[str]) -> None:
        near = get_close_matches(word, known, 1)
        known = sorted(known)
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        hint = f"did you mean {listed(near)}?" if near else f"there are {listed(known[:_SHOWN])}{more}"
        raise DeclarationError(f"{self._name}: {row} names the {kind} {word!r}; {hint}")


def _check_meaning(kind: str, name: str, meaning: str, known: Mapping[str, str]) -> None:
    if meaning not in known:
        raise DeclarationError(f"the {kind} {name} cannot mean {meaning!r}: there are {', '.join(filter(None, known))}")


def _is_line(text: object) -> bool:
    """Whether something is a text that can be written on a line."""
    inked = text.translate(_JOINERS) if isinstance(text, str) else ""
    return bool(inked) and inked.isprintable()


def _check_texts(name: object, title: object, others: Mapping[str, object]) -> None:
    for what, text in (("name", name), ("title", title or name)):
        if not _is_line(text):
            raise DeclarationError(f"{text!r} cannot be the {what} of a machine: it cannot be written on a line")
    for what, text in others.items():
        if not isinstance(text, str):
            raise DeclarationError(f"{name}: {text!r} is no text for {what}=")


def _name(word: Named) -> str:
    if isinstance(word, str):
        return word
    if not isinstance(cast("object", word), Word):
        raise DeclarationError(f"{word!r} is no word and no name of one")
    return word.name


def _names(words: Named | Iterable[Named]) -> tuple[str, ...]:
    if isinstance(words, str | Word):
        return (_name(words),) if words else ()
    if not isinstance(cast("object", words), Iterable):
        raise DeclarationError(f"{words!r} is no word, no name of one, and no list of them")
    return tuple(map(_name, words))


def _spelt(words: tuple[str, ...]) -> str:
    return repr(words[0] if len(words) == 1 else words)


def _kept(words: Mapping[str, WordT], names: Iterable[str]) -> list[WordT]:
    wanted = set(names)
    return [word for name, word in words.items() if name in wanted]


def _without(row: Row, never: set[str]) -> Row | None:
    """A row of a selection, where some facts never hold; None if it needs one of them."""
    if never & set(row.conditions):
        return None
    return _changed(row, unless=tuple(fact for fact in row.unless if fact not in never))


def _blind(action: Action, never: set[str]) -> Action:
    """An action without its effect on facts that never hold."""
    return replace(
        action,
        sets=tuple(fact for fact in action.sets if fact not in never),
        clears=tuple(fact for fact in action.clears if fact not in never),
        by_setting=tuple(by for by in action.by_setting if by[0] not in never),
    )


def _reachable(rows: list[Row], initial: str) -> list[Row]:
    """Rows, each in those of its heads to which rows lead; without those that apply in none."""
    reached, before = {initial}, set[str]()
    while reached != before:
        before = set(reached)
        reached |= {row.dest for row in rows if row.dest is not None and reached & set(row.source)}
    reduced = ((row, tuple(head for head in row.source if head in reached)) for row in rows)
    return [row if source == row.source else _changed(row, source=source) for row, source in reduced if source]


def _changed(row: Row, *, source: tuple[str, ...] | None = None, unless: tuple[str, ...] | None = None) -> Row:
    return Row(
        row.call,
        row.source if source is None else source,
        row.dest,
        do=row.actions,
        when=row.conditions,
        unless=row.unless if unless is None else unless,
        refused=row.refusal,
        cite=row.cite,
    )
