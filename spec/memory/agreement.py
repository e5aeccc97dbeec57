"""Compares the table of a machine with the oracle, in every state that they can reach together.

The two have nothing in common: the table says which actions a row has, the oracle knows which copies are fresh.  A
third account, the content that was written last, knows neither.  Nobody looks into contents, so all that can matter is
which of them are equal.  So each write makes a content that differs from all others, and states that differ only in the
names of contents are one state.  There are finitely many of these, so what holds in all of them holds for all bytes and
for sequences of every length.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, get_args

from syncedmem.model import InvalidArgumentError
from syncedmem.model.moves import Stepper

from ..engine.violation import UnfitPolicyError
from .oracle import Does, Oracle, Wanted
from .policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from syncedmem.model.declaration import Call, Machine
    from syncedmem.model.moves import Input, Move, State

    from ..engine.subject import Subject
    from .oracle import Expected

__all__ = ["SENTENCES", "Agreement", "PolicyDifference", "check_fit", "check_policy", "check_sides", "compare"]

SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        "refusals": "A call is refused where the oracle refuses it, for the same reason, and nowhere else.",
        "actions": "A call allocates, zeroes, copies, adopts and frees what the oracle expects, in that order.",
        "freshness": "The head says which sides are fresh.",
        "pointers": "A side has a pointer if, and only if, somebody owns memory there.",
        "ownership": "The ownership flags say which sides the memory owns.",
        "pinning": "The flag of page-locked memory says of which kind the memory was when it was allocated.",
        "newest": "A fresh side holds what was written last, or zeros if nothing was.",
        "views": "The view that a call returns shows what was written last.",
    }
)
"""What is compared, by name."""

_ZEROS = 0
_SEEN = get_args(Does)
_OF_FACTS = {"pointer": "pointers", "owned": "ownership", "pinned": "pinning"}
_OF_BYTES = {"actions", "newest", "views"}
"""The sentences that need actions that mean something."""


class PolicyDifference(NamedTuple):
    """Where the table and the oracle differ.

    Attributes
    ----------
    sentence : str
        The name of what does not hold, from ``SENTENCES``.
    sequence : tuple of str
        A shortest sequence of inputs that shows it; empty if a new memory does.
    state : str
        The state before the last input.
    table, expected : str
        What the table says, and what must be.
    """

    sentence: str
    sequence: tuple[str, ...]
    state: str
    table: str
    expected: str

    def __str__(self) -> str:
        *before, call = self.sequence or ("a new memory",)
        after = f"after {' '.join(before)}" if before else "in a new memory"
        where = f"{call} in {self.state}{f' ({after})' if self.sequence else ''}"
        return f"{where}: the table says {self.table}; the policy says {self.expected}"


@dataclass(frozen=True)
class Agreement:
    """The result of a comparison.

    Attributes
    ----------
    states : int
        The number of states that were reached.
    steps : int
        The number of inputs that were compared, over all states.
    differences : tuple of PolicyDifference
        The first of each sentence that does not hold; empty if the two agree.
    """

    states: int
    steps: int
    differences: tuple[PolicyDifference, ...]


class _Together(NamedTuple):
    """A state of the table, and what is known of the same memory without the table."""

    state: State
    contents: tuple[int | None, ...]
    oracle: Oracle
    newest: int | None

    @property
    def key(self) -> object:
        """What tells this state from others."""
        return self.state, self.contents, self.newest, tuple(self.oracle.copies.items())

    def renamed(self) -> _Together:
        """The same state with other names of contents, which are the same for all states that are alike."""
        names: dict[int | None, int | None] = {None: None, _ZEROS: _ZEROS}
        for content in (self.newest, *self.contents, *(copy.content for copy in self.oracle.copies.values())):
            names.setdefault(content, len(names))
        copies = {side: copy._replace(content=names[copy.content]) for side, copy in self.oracle.copies.items()}
        return _Together(
            self.state,
            tuple(names[content] for content in self.contents),
            replace(self.oracle, copies=copies),
            names[self.newest],
        )


def compare(machine: Machine, policy: Policy, contents: int = 0) -> Agreement:
    """Follow a machine's table and the oracle together through all states that they reach.

    Parameters
    ----------
    machine : Machine
        Inputs that mean nothing to an oracle are left out.  If no action means anything, the table is about heads only,
        and neither actions nor bytes are compared.
    policy : Policy
        How the oracle decides what the theory leaves open.
    contents : int
        Count contents modulo this number, as other checkers do; then their counts of states are the same.  With 0 all
        contents are different.

    Raises
    ------
    DeclarationError
        If in a state two rows are enabled at once, or none.
    InvalidArgumentError
        If the policy names a setting, or a value of one, that the machine does not have.
    """
    _check_settings(machine, policy)
    return _Comparison(Stepper(machine), policy, contents).run()


def check_policy(subject: Subject) -> None:
    """Refuse a policy that says something else than the table of its machine: no memory can do both.

    Caffe's editions are not compared here, because their tables are proved.

    Raises
    ------
    InvalidArgumentError
        If the policy is none.
    UnfitPolicyError
    """
    if subject.policy is None:
        return
    if not isinstance(subject.policy, Policy):
        raise InvalidArgumentError("policy", subject.policy, "a Policy")
    check_fit(subject.machine, subject.policy)


def check_fit(machine: Machine, policy: Policy) -> None:
    """Refuse a policy that says something else than the table of a machine."""
    check_sides(machine, policy)
    try:
        differences = compare(machine, policy).differences
    except InvalidArgumentError as error:  # the oracle cannot say what a call does
        raise UnfitPolicyError(f"the policy does not fit the machine {machine}: {error}") from error
    if differences:
        raise UnfitPolicyError(f"the machine {machine} and its policy differ: {differences[0]}")


def check_sides(machine: Machine, policy: Policy) -> None:
    """Refuse a policy for other sides than those of a machine."""
    if set(policy.sides) != set(machine.sides):
        here, there = (", ".join(account.sides) or "none" for account in (policy, machine))
        raise UnfitPolicyError(f"the policy is for the sides {here}, and {machine} has {there}")


def _check_settings(machine: Machine, policy: Policy) -> None:
    """Refuse a policy whose kinds of memory depend on a setting, or a value of it, that the machine does not have."""
    for side, (setting, value) in policy.pinned.items():
        if setting not in machine.settings or value not in machine.settings[setting].values:
            known = [f"{setting.name}: {', '.join(setting.values)}" for setting in machine.settings.values()]
            wanted = f"a setting of {machine} and its value ({'; '.join(known) or 'it has none'})"
            raise InvalidArgumentError(f"pinned[{side!r}]", (setting, value), wanted)


class _Comparison:
    """A comparison that is under way."""

    def __init__(self, table: Stepper, policy: Policy, contents: int) -> None:
        self._table = table
        self._machine = table.machine
        self._contents = contents
        self._unsaid = set[str]() if any(action.does for action in self._machine.actions.values()) else _OF_BYTES
        self._inputs = [entry for entry in table.inputs(end=True) if entry.call is None or entry.call.does]
        oracle = Oracle.new(policy, 1, _ZEROS)
        held = tuple(oracle.copies[side].content for side in table.machine.sides)
        promised = policy.first_touch == "zero"
        self._start = _Together(table.start, held, oracle, _ZEROS if promised else None)
        self._differences: dict[str, PolicyDifference] = {}

    def run(self) -> Agreement:
        sequences: dict[object, tuple[str, ...]] = {self._start.key: ()}
        waiting, steps = deque([self._start]), 0
        self._tell((), self._start.state, self._unlike_facts(self._start.state, self._start.oracle))
        while waiting:
            here = waiting.popleft()
            for entry in self._inputs:
                steps += 1
                sequence = (*sequences[here.key], str(entry))
                after = self._taken(here, entry, sequence)
                if after is not None and after.key not in sequences:
                    sequences[after.key] = sequence
                    waiting.append(after)
        return Agreement(len(sequences), steps, tuple(self._differences.values()))

    def _taken(self, here: _Together, entry: Input, sequence: tuple[str, ...]) -> _Together | None:
        """The state after an input; None if nothing follows, or if the two differ."""
        step, call = self._table.step(here.state, entry), entry.call
        if step is None or call is None:
            return None if step is None else here._replace(state=step.after)
        last = here.newest or _ZEROS
        written = (last + 1) % self._contents if self._contents else self._unused(here)
        expected = here.oracle.expect(call, self._settings(here.state), written if entry.data else None)
        after = self._after(here, call, step, expected, written)
        differences = [
            difference
            for difference in self._unlike(here, call, step, expected, after)
            if difference[0] not in self._unsaid
        ]
        self._tell(sequence, here.state, differences)
        if differences or expected.refused or call.ends:
            return None
        return after if self._contents else after.renamed()

    def _tell(self, sequence: tuple[str, ...], state: State, differences: Iterable[tuple[str, str, str]]) -> None:
        for sentence, table, wanted in differences:
            self._differences.setdefault(sentence, PolicyDifference(sentence, sequence, _named(state), table, wanted))

    def _unused(self, here: _Together) -> int:
        return 1 + max((content for content in (here.newest, *here.contents) if content is not None), default=_ZEROS)

    def _after(self, here: _Together, call: Call, step: Move[State], expected: Expected, written: int) -> _Together:
        """The state after a call, in which the caller writes to what he may write."""
        held, oracle, newest = self._performed(here, step, written), expected.after, here.newest
        if (call.writes or call.does == "adopt") and not step.refusal:
            held[call.side], oracle, newest = written, oracle.written(call.side, written), written
        elif not oracle.fresh:  # nothing was kept, so it is as in a new memory
            newest = self._start.newest
        return _Together(step.after, tuple(held.values()), oracle, newest)

    def _performed(self, here: _Together, step: Move[State], written: int) -> dict[str, int | None]:
        """The contents of all sides after the actions of a row."""
        held = dict(zip(self._machine.sides, here.contents, strict=True))
        for action in map(self._machine.actions.__getitem__, step.actions):
            if action.does in ("allocate", "free"):
                held[action.side] = None
            elif action.does == "zero":
                held[action.side] = _ZEROS
            elif action.does == "copy":
                held[action.side] = held[action.source]
            elif action.does == "adopt":
                held[action.side] = written
        return held

    # --- what is compared

    def _unlike(
        self, here: _Together, call: Call, step: Move[State], expected: Expected, after: _Together
    ) -> Iterator[tuple[str, str, str]]:
        """The sentences that do not hold, each with what the table says and what must be."""
        wanted = here.oracle.policy.refusals.get(expected.refused, step.refusal) if expected.refused else ""
        if wanted != step.refusal or bool(expected.refused) != bool(step.refusal):
            yield "refusals", step.refusal or "it is done", wanted or expected.refused or "not refused"
            return
        if step.refusal:
            return
        actions = map(self._machine.actions.__getitem__, step.actions)
        done = [
            Wanted(action.does, action.side, action.source, action.queued)  # type: ignore[arg-type]
            for action in actions
            if action.does in _SEEN
        ]
        expected_steps = [step._replace(pinned=False) for step in expected.steps]
        if done != expected_steps:
            yield "actions", _listed(done), _listed(expected_steps)
        if call.does in ("read", "write") and here.newest is not None:
            shown = self._performed(here, step, _ZEROS)[call.side]
            if shown != here.newest:
                yield "views", "the view shows other bytes", "shown is what was written last"
        if not call.ends:
            yield from self._unlike_bytes(after)
            yield from self._unlike_facts(after.state, after.oracle)

    def _unlike_bytes(self, after: _Together) -> Iterator[tuple[str, str, str]]:
        held = dict(zip(self._machine.sides, after.contents, strict=True))
        known = {side: copy.content for side, copy in after.oracle.copies.items()}
        for side in self._machine.heads[after.state.head].fresh:
            if after.newest is not None and (held[side], known[side]) != (after.newest, after.newest):
                yield "newest", f"{after.state.head}, and {side} holds other bytes", "what was written last"

    def _unlike_facts(self, state: State, oracle: Oracle) -> Iterator[tuple[str, str, str]]:
        fresh = frozenset(self._machine.heads[state.head].fresh)
        if fresh != oracle.fresh:
            yield "freshness", f"{state.head}, so {_sides(fresh)}", _sides(oracle.fresh)
        for fact in self._machine.facts.values():
            if oracle.holds(fact) is (fact.name not in state.facts):
                wanted = f"{oracle.holds(fact)}, because it means {fact.means!r} of {fact.side}"
                yield _OF_FACTS[fact.means], f"{fact.name} is {fact.name in state.facts}", wanted

    def _settings(self, state: State) -> dict[str, str]:
        return dict(zip(self._machine.settings, state.settings, strict=True))


def _named(state: State) -> str:
    return " with ".join(filter(None, (state.head, ", ".join(sorted(state.facts)))))


def _listed(steps: Iterable[Wanted]) -> str:
    return (
        ", ".join(f"{step.operation} {f'{step.source} to ' if step.source else ''}{step.side}" for step in steps)
        or "nothing"
    )


def _sides(sides: Iterable[str]) -> str:
    return f"fresh: {', '.join(sorted(sides)) or 'none'}"
