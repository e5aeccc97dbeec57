"""A drawing of any machine in layers: the first head on top, and each other head below those that lead to it.

The method is Sugiyama's: arrows that lead back are cut, then come layers, then an order within each that has few
crossings, then positions.  Labels have rows of their own between the layers, in which every arrow that passes has a
lane.  So within a row nothing lies on anything else.  Between two rows there are only arrows, which leave a row
straight, run across on a track of their own, and enter the next row straight.  A call that stays is written into its
box.  A call that leads from every state to one is a single arrow from nowhere.  Arrows to one state with equal labels
join.

All of this is laid out from above to below.  A drawing to the right is the same with its axes exchanged; only what is
written stays as it is, so a box is as high there as it is wide here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate, combinations, count, pairwise
from math import fsum
from random import Random
from textwrap import TextWrapper
from typing import TYPE_CHECKING, NamedTuple

from .arrangement import Arrangement, Arrow, Box
from .drawing import Direction, Kind, Line
from .layout import MARGIN, Anchor, indent_of, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .drawing import Drawing, Node
    from .layout import Point

__all__ = ["layered", "least_size"]

_EVERYWHERE = "an arrow from nowhere leaves every state"

_WIDE = 640
"""How wide a row of labels may get before it becomes several."""
_LONG = 18
"""A step of more letters takes several lines of text."""
_LONG_NAMES = 32
"""The letters of a line that names states."""
_MOST_ROWS = 6
_GAP = 14
"""Between two items of a row; a tick or a cross before a call fits in."""
_BOX = 36
"""The least width and height of a box."""
_LANE = 12
"""The width of an arrow that passes a row."""
_TURN = 6
"""Between a label and its arrow that turns there."""
_TRACK = 10
"""Between two arrows that run across, and between two that leave one box."""
_NEAR = 5
"""Arrows that are nearer than this look like one."""
_JOG = 9
"""An arrow that moves aside by less than this looks like a mistake."""
_SWEEPS = 8
_BEGINNINGS, _FEW = 12, 400
"""How many orders of the rows of a drawing with few items are begun with."""
_IDLE = 4
"""Sweeps that make nothing better, after which a beginning is given up."""
_MANY = 4_000
"""A drawing of more items is swept less often."""
_MANY_LEGS = 60
"""Between two rows with more arrows that run across, they cross as it happens."""
_TOP = 34
"""The room for the dot before the first box."""


@dataclass(eq=False, slots=True)
class _Item:
    """Something in a row: a box, a label with the lane of its arrow, or the lane of an arrow that passes.

    Attributes
    ----------
    row : int
    width, height : int
        Its size along the row and across it.
    lane : int
        How far from its left edge its arrow runs; of a box, half of its width.
    left, top : int
    is_box : bool
        Whether it is a box, where arrows end.
    beside : list of _Item
        What its arrows lead to, in the rows above and below.
    """

    row: int
    width: int = _LANE
    height: int = 0
    lane: int = _LANE // 2
    left: int = 0
    top: int = 0
    is_box: bool = False
    beside: list[_Item] = field(default_factory=list["_Item"])

    @property
    def x(self) -> int:
        """Where its arrow runs; of a box, its middle."""
        return self.left + self.lane


class _Edge(NamedTuple):
    """An arrow before it is placed.

    Attributes
    ----------
    sources : tuple of str
        The first of several is the one that is farthest from the end; the arrows of the others join its arrow.
    dest : str
    lines : tuple of Line
    from_nowhere : bool
        Whether it leaves every state.
    """

    sources: tuple[str, ...]
    dest: str
    lines: tuple[Line, ...]
    from_nowhere: bool = False


class _Way(NamedTuple):
    """An arrow before it is drawn: what it passes, from its source to its end.

    Attributes
    ----------
    edge : _Edge
    items : list of _Item
        Its box at the start, unless it comes from nowhere; what it passes; and its box at the end.
    label : _Item
    joining : list of (_Item, _Item)
        The boxes of other sources, each with the item of this arrow that its own arrow joins.
    """

    edge: _Edge
    items: list[_Item]
    label: _Item
    joining: list[tuple[_Item, _Item]]

    @property
    def stretches(self) -> list[tuple[_Item, _Item]]:
        """Its parts between two rows, and after them those that join it."""
        return [*pairwise(self.items), *self.joining]

    @property
    def turns(self) -> bool:
        """Whether it leads to a box of the same row, and turns below its label, or above it."""
        return not self.edge.from_nowhere and self.items[0].row == self.items[-1].row


def layered(drawn: Drawing, room: int = 0, direction: Direction = Direction.DOWN) -> Arrangement:
    """Lay out any drawing, with room for this many letters before each call.

    With such room, which is for the numbers of a trace, no arrows join: a trace takes one of them.
    """
    stays = {node.name: _stays(drawn, node) for node in drawn.nodes}
    layers = _layers(drawn)
    edges = _merged(drawn)
    if not room:
        edges = _joined(edges, layers)
    turned = direction is Direction.RIGHT
    boxes = {name: _box(drawn, name, lines, room, turned=turned) for name, lines in stays.items()}
    labels = [_label(drawn, edge.lines, room, turned=turned) for edge in edges]
    ways = list(_ways(edges, layers, boxes, labels))
    rows = _rows([*boxes.values(), *(item for way in ways for item in way.items)])
    sweeps = _SWEEPS if sum(map(len, rows)) < _MANY else 2
    _order_rows(rows, sweeps)
    for row in rows:
        _pack(row)
    _align(rows, sweeps)
    routes = _Routes(rows, ways)
    arrows = tuple(_arrow(way, routes, turned=turned) for way in ways)
    places = tuple(
        Box(
            name,
            _point((item.x, item.top + item.height // 2), turned=turned),
            _point((item.width // 2, item.height // 2), turned=turned),
            stays[name],
        )
        for name, item in boxes.items()
    )
    right = max(item.left + item.width for row in rows for item in row) + MARGIN
    texts = (_EVERYWHERE,) if any(edge.from_nowhere for edge in edges) else ()
    size = (routes.bottom + MARGIN, right + 12) if turned else (max(right, routes.right), routes.bottom + 30)
    return Arrangement(drawn, places, arrows, size, texts, direction)


def least_size(drawn: Drawing) -> int:
    """At least how wide or high a layout without a trace is, in pixels: long before it is done."""
    layers = _layers(drawn)
    row = Counter({layer: count * (_BOX + _GAP) for layer, count in Counter(layers.values()).items()})
    for edge in _joined(_merged(drawn), layers):
        start, end = sorted((layers[edge.sources[0]], layers[edge.dest]))
        row.update(dict.fromkeys(() if edge.from_nowhere else range(start + 1, end), _LANE + _GAP))
    return max(len(set(layers.values())) * _BOX, *row.values())


def _point(point: Point, *, turned: bool) -> Point:
    return (point[1], point[0]) if turned else point


def _arrow(way: _Way, routes: _Routes, *, turned: bool) -> Arrow:
    """An arrow with its label, which is to the right of it, or above it in a drawing to the right."""
    sources, dest, lines, _ = way.edge
    points, *joining = ([_point(track, turned=turned) for track in some] for some in routes.points(way))
    label = way.label
    top = label.top + (_TURN if way.turns and label.row < way.items[0].row else 0)
    anchor = Anchor(top + 4, label.left, 0, 0) if turned else Anchor(label.x + 6, top, 0, 0)
    return Arrow(sources, dest, lines, points, anchor, tuple(joining))


# --- what there is to place


def _stays(drawn: Drawing, node: Node) -> tuple[Line, ...]:
    """The calls that leave a state as it is, each in one line of text."""
    lines = (line for edge in drawn.edges if edge.source == edge.dest == node.name for line in edge.lines)
    texts = ((line, " " if line.only_guarded else " / ", "; ".join(line.steps)) for line in lines)
    return tuple(
        line._replace(call=f"{line.call}{join}{text}" if text else line.call, steps=()) for line, join, text in texts
    )


def _merged(drawn: Drawing) -> list[_Edge]:
    """The arrows between states; calls that lead from every other state to one are an arrow of all of them."""
    names = [node.name for node in drawn.nodes]
    groups: dict[tuple[str, str], list[tuple[str, Line]]] = {}
    for edge in drawn.edges:
        for line in edge.lines:
            groups.setdefault((edge.dest, line.call), []).append((edge.source, line))
    everywhere = {
        (dest, call): lines
        for (dest, call), lines in groups.items()
        if len(names) > 3 and {source for source, _ in lines} | {dest} == set(names)  # noqa: PLR2004 -- fewer are read at once
    }
    merged = [
        _Edge(
            (edge.source,),
            edge.dest,
            tuple(_wrapped(line) for line in edge.lines if (edge.dest, line.call) not in everywhere),
        )
        for edge in drawn.edges
        if edge.source != edge.dest
    ]
    for (dest, call), lines in everywhere.items():
        of_all = [line for source, line in lines if source != dest]
        kind = min((line.kind for line in of_all), key=[*Kind].index)
        variants: dict[tuple[str, ...], list[str]] = {}
        for source, line in lines:
            if source != dest:
                variants.setdefault(line.steps, []).append(source)
        steps = next(iter(variants))
        if len(variants) > 1:
            named = (f"from {', '.join(some)}: {'; '.join(those) or 'nothing'}" for those, some in variants.items())
            fitted = TextWrapper(
                _LONG_NAMES, subsequent_indent="\N{NBSP}" * 2, break_long_words=False, break_on_hyphens=False
            )
            steps = tuple(text for line in named for text in fitted.wrap(line))
        identifiers = tuple(identifier for line in of_all for identifier in line.identifiers)
        sources = tuple(name for name in names if name != dest)
        line = Line(call, steps, kind, identifiers)
        merged.append(_Edge(sources, dest, (line if len(variants) > 1 else _wrapped(line),), from_nowhere=True))
    return [edge for edge in merged if edge.lines]


def _wrapped(line: Line) -> Line:
    """Long steps take several lines of text, which makes a drawing of many arrows narrower."""
    texts: list[str] = []
    for step in line.steps:
        first, *rest = step.split(" + ") if len(step) > _LONG else (step,)
        texts += [first, *(f"+ {part}" for part in rest)]
    return line._replace(steps=tuple(texts))


def _joined(edges: list[_Edge], layers: Mapping[str, int]) -> list[_Edge]:
    """The arrows, with those as one that lead to one state, from above or from below, and have equal labels."""
    groups: dict[object, list[_Edge]] = {}
    for number, edge in enumerate(edges):
        far = layers[edge.dest] - layers[edge.sources[0]]
        label = tuple(line._replace(identifiers=()) for line in edge.lines)
        alone = number if edge.from_nowhere or not far else None
        groups.setdefault((edge.dest, label, far > 0, alone), []).append(edge)
    joined: list[_Edge] = []
    for some in groups.values():
        apart = sorted(some, key=lambda edge: -abs(layers[edge.dest] - layers[edge.sources[0]]))
        lines = (
            line._replace(identifiers=tuple(identifier for edge in some for identifier in edge.lines[k].identifiers))
            for k, line in enumerate(some[0].lines)
        )
        sources = tuple(source for edge in apart for source in edge.sources)
        joined.append(some[0]._replace(sources=sources, lines=tuple(lines)))
    return joined


def _layers(drawn: Drawing) -> dict[str, int]:
    """The layer of each state: below all that lead to it, but for arrows that lead back.

    No state is above one that every way to it passes, so reading begins where the machine does.  Two states that are
    equally far from the first one, and lead to each other, need not be above each other.  What cannot be reached is
    below all others.
    """
    after: dict[str, list[str]] = {node.name: [] for node in drawn.nodes}
    for edge in drawn.edges:
        if edge.source != edge.dest:
            after[edge.source].append(edge.dest)
    first = drawn.nodes[0].name
    distances = _distances(first, after)
    order = _forwards(after, [first])
    passed = _passed(order, after)
    _sift(order, after, passed)
    layers = dict.fromkeys(order, 1) | {first: 0}
    rest = _forwards(
        {
            name: [neighbour for neighbour in after[name] if neighbour not in layers]
            for name in after
            if name not in layers
        },
        after,
    )
    for some in (order, rest):
        places = {name: k for k, name in enumerate(some)}
        start = max(layers.values()) + 1
        layers |= {name: layers.get(name, start) for name in some}
        for name in some:
            if name in passed:
                layers[name] = max(layers[name], layers[passed[name]] + 1)
            for dest in after[name]:
                beside = name in after[dest] and distances.get(name) == distances.get(dest)
                if places.get(dest, -1) > places[name] and not beside:
                    layers[dest] = max(layers[dest], layers[name] + 1)
    return {node.name: layers[node.name] for node in drawn.nodes}


def _distances(first: str, after: Mapping[str, list[str]]) -> dict[str, int]:
    """How many arrows lead from the first state to each that can be reached."""
    distances = {first: 0}
    for name in (waiting := [first]):
        for dest in after[name]:
            if dest not in distances:
                distances[dest] = distances[name] + 1
                waiting.append(dest)
    return distances


def _forwards(after: Mapping[str, list[str]], starts: Iterable[str]) -> list[str]:
    """What is reached, in an order in which only arrows that close a cycle lead back: by depth-first search."""
    order: list[str] = []
    seen = set[str]()
    for start in starts:
        if start in seen or start not in after:
            continue
        seen.add(start)
        path = [(start, iter(after[start]))]
        while path:
            name, dests = path[-1]
            dest = next((end for end in dests if end not in seen), None)
            if dest is None:
                order.append(name)
                path.pop()
            else:
                seen.add(dest)
                path.append((dest, iter(after[dest])))
    return order[::-1]


def _passed(order: list[str], after: Mapping[str, list[str]]) -> dict[str, str]:
    """Of each state but the first, the last one before it that every way to it passes: its immediate dominator."""
    places = {name: k for k, name in enumerate(order)}
    before: dict[str, list[str]] = {name: [] for name in order}
    for name in order:
        for dest in after[name]:
            before[dest].append(name)
    dominators = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for name in order[1:]:
            last, *others = (neighbour for neighbour in before[name] if neighbour in dominators)
            for other in others:
                while last != other:
                    if places[last] > places[other]:
                        last = dominators[last]
                    else:
                        other = dominators[other]  # noqa: PLW2901 -- both go back until they meet
            changed |= dominators.get(name) != last
            dominators[name] = last
    del dominators[order[0]]
    return dominators


def _sift(order: list[str], after: Mapping[str, list[str]], passed: Mapping[str, str]) -> None:
    """Move each state but the first to where the fewest arrows lead back, as long as that makes them fewer.

    It stays below what is passed on every way to it.
    """
    before: dict[str, set[str]] = {name: {row for row in order if name in after[row]} for name in order}
    better = True
    while better:
        better = False
        for name in order[1:]:
            here = order.index(name)
            rest = [row for row in order if row != name]
            # Where it is first, all arrows to it lead back but that of the first; each that it passes changes that.
            changes = [int(row in after[name]) - int(row in before[name]) for row in rest[1:]]
            costs = [*accumulate(changes, initial=0)]
            low = rest.index(passed[name])
            high = next((k for k, row in enumerate(rest) if passed.get(row) == name), len(rest))
            best = min(costs[low:high])
            if best < costs[here - 1]:
                place = costs.index(best, low) + 1
                order[:] = [*rest[:place], name, *rest[place:]]
                better = True


def _box(drawn: Drawing, name: str, stays: Sequence[Line], room: int, *, turned: bool) -> _Item:
    texts = [width_of(name, "name") + 20]
    texts += [
        indent_of(bullet=drawn.says(line.kind), mark=True) + width_of(f"{line.call}{'m' * room}", "brief") + 10
        for line in stays
    ]
    width, height = -(-max(texts) // 2) * 2, _BOX if not stays else 28 + 16 * len(stays)
    return _Item(0, *((height, width) if turned else (width, height)), is_box=True)


def _label(drawn: Drawing, lines: Iterable[Line], room: int, *, turned: bool) -> _Item:
    """The room for a label and its arrow, to the right of it, or above it in a drawing to the right."""
    width, height = 0, 4
    for line in lines:
        texts = [(f"{line.call}{'m' * room}", "call"), *((step, "step") for step in line.steps)]
        wide = max(width_of(text, look) for text, look in texts)
        width = max(width, indent_of(bullet=drawn.says(line.kind)) + wide)
        height += 4 + 13 * len(texts)
    if turned:
        return _Item(0, height + _LANE, width + 8, height + _LANE // 2)
    return _Item(0, _LANE + width, height, _LANE // 2)


def _ways(
    edges: list[_Edge], layers: Mapping[str, int], boxes: Mapping[str, _Item], labels: list[_Item]
) -> Iterator[_Way]:
    """Each arrow with what it passes.  Rows are numbered here, from the top: layers, and labels between them."""
    bands: dict[int, list[_Item]] = {layer: [] for layer in range(max(layers.values()) + 1)}
    for edge, label in zip(edges, labels, strict=True):
        bands[_band(edge, layers)].append(label)
        if not edge.from_nowhere and layers[edge.sources[0]] == layers[edge.dest]:
            # Its arrow turns below it or above it, and comes back beside it.
            label.height, label.width = label.height + _TURN, label.width + _LANE + 6
    starts, row = dict[int, int](), 0
    for layer, band in bands.items():
        starts[layer] = row
        many = min(max(1, -(-sum(box.width + _GAP for box in band) // _WIDE)), _MOST_ROWS) if band else 1
        for k, label in enumerate(band):
            label.row = row + 1 + k % many
        row += many + 1
    for name, box in boxes.items():
        box.row = starts[layers[name]]
    for edge, label in zip(edges, labels, strict=True):
        yield _way(edge, label, [] if edge.from_nowhere else [boxes[name] for name in edge.sources], boxes[edge.dest])
    for box in boxes.values():
        below = sum(item.row > box.row for item in box.beside)
        box.width = max(box.width, 16 + _GAP * max(below, len(box.beside) - below))
        box.lane = box.width // 2


def _band(edge: _Edge, layers: Mapping[str, int]) -> int:
    """Below which layer a label is: next to the source of its arrow, or to the end of one that has several."""
    start, end = layers[edge.sources[0]], layers[edge.dest]
    if start == end and not edge.from_nowhere:
        names = [*layers]  # of two that lead to each other, the one back is above
        return start if names.index(edge.sources[0]) < names.index(edge.dest) else start - 1
    if len(edge.sources) > 1:
        return max(end - 1, 0) if edge.from_nowhere or start < end else end
    return start if start < end else start - 1


def _way(edge: _Edge, label: _Item, starts: list[_Item], end: _Item) -> _Way:
    """What an arrow passes between two layers: lanes, and its label."""
    if starts and starts[0].row == end.row:
        step = 1 if label.row > end.row else -1
        down, up = (list(map(_Item, range(end.row + step, label.row, step))) for _ in range(2))
        items = [starts[0], *down, label, *reversed(up), end]
    else:
        step = 1 if end.row > (starts[0] if starts else label).row else -1
        begin = starts[0].row + step if starts else label.row
        passed = [label if row == label.row else _Item(row) for row in range(begin, end.row, step)]
        items = [*starts[:1], *passed, end]
    at = {item.row: item for item in items[1:-1]}
    joining = [(box, at[box.row + (1 if end.row > box.row else -1)]) for box in starts[1:]]
    way = _Way(edge, items, label, joining)
    for one, other in way.stretches:
        one.beside.append(other)
        other.beside.append(one)
    return way


# --- where it is


def _rows(items: Iterable[_Item]) -> list[list[_Item]]:
    rows: dict[int, list[_Item]] = {}
    for item in dict.fromkeys(items):
        rows.setdefault(item.row, []).append(item)
    return [rows[row] for row in sorted(rows)]


def _order_rows(rows: list[list[_Item]], sweeps: int) -> None:
    """Sort each row by where the neighbours are, down and up in turn; take the order with the fewest crossings.

    A small drawing is tried from several beginnings, always the same.
    """
    best, fewest = [list(row) for row in rows], _crossings(rows)
    shuffled = Random(0)  # noqa: S311 -- no secret, and always the same
    for attempt in range(_BEGINNINGS if sum(map(len, rows)) < _FEW else 1):
        if not fewest:
            break
        if attempt:
            for row in rows:
                shuffled.shuffle(row)
        since, before = 0, _crossings(rows)
        for sweep in range(2 * sweeps):
            _sweep(rows, down=(sweep + attempt) % 2 == 0)
            crossings = _crossings(rows)
            since, before = (0, crossings) if crossings < before else (since + 1, before)
            if crossings < fewest:
                best, fewest = [list(row) for row in rows], crossings
            if since == _IDLE:
                break
        _exchange(rows, sweeps)
        if (crossings := _crossings(rows)) < fewest:
            best, fewest = [list(row) for row in rows], crossings
    for row, order in zip(rows, best, strict=True):
        row[:] = order
    _exchange(rows, sweeps)


def _sweep(rows: list[list[_Item]], *, down: bool) -> None:
    """Sort each row by the neighbours in the row before."""
    places: dict[_Item, float] = {}
    for row in rows if down else reversed(rows):
        here = {item: (k + 0.5) / len(row) for k, item in enumerate(row)}
        wanted = {
            item: _mean([places[beside] for beside in item.beside if beside in places], here[item]) for item in row
        }
        row.sort(key=wanted.__getitem__)
        places = {item: (k + 0.5) / len(row) for k, item in enumerate(row)}


def _crossings(rows: list[list[_Item]]) -> int:
    """How often arrows cross between two rows."""
    places = {item: k for row in rows for k, item in enumerate(row)}
    total = 0
    for row in rows:
        passed: list[int] = []
        for item in row:
            below = sorted(places[beside] for beside in item.beside if beside.row > item.row)
            total += sum(len(passed) - bisect_right(passed, place) for place in below)
            for place in below:
                insort(passed, place)
    return total


def _exchange(rows: list[list[_Item]], sweeps: int) -> None:
    """Exchange neighbours of a row, where arrows cross less then."""
    places = {item: k for row in rows for k, item in enumerate(row)}
    better = True
    while better and sweeps:
        better, sweeps = False, sweeps - 1
        for row in rows:
            for k in range(len(row) - 1):
                one, other = row[k : k + 2]
                if _crossed(one, other, places) > _crossed(other, one, places):
                    row[k], row[k + 1] = other, one
                    places[one], places[other] = k + 1, k
                    better = True


def _crossed(one: _Item, other: _Item, places: Mapping[_Item, int]) -> int:
    """How often the arrows of an item cross those of the next one."""
    return sum(
        places[a] > places[b] for a in one.beside for b in other.beside if (a.row > one.row) == (b.row > other.row)
    )


def _mean(values: list[float], otherwise: float) -> float:
    return fsum(values) / len(values) if values else otherwise  # sum rounds in another way from Python 3.12 on


def _pack(row: list[_Item]) -> None:
    left = MARGIN
    for item in row:
        item.left = left
        left += item.width + _GAP


def _align(rows: list[list[_Item]], sweeps: int) -> None:
    """Move each item near its neighbours, as far as the others of its row let it; then straighten arrows."""
    right = max(row[-1].left + row[-1].width for row in rows)
    for sweep in range(2 * sweeps):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [_mean([float(beside.x) for beside in item.beside], float(item.x)) - item.lane for item in row]
            widths = [item.width + _GAP for item in row]
            last = right + _GAP - sum(widths)
            for item, place in zip(row, _spread(wanted, widths, (MARGIN, last)), strict=True):
                item.left = place
    for sweep in range(sweeps):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _straighten(row, -1 if sweep % 2 == 0 else 1, right)
    leftmost = min(item.left for row in rows for item in row)
    for row in rows:
        for item in row:
            item.left += MARGIN - leftmost


def _straighten(row: list[_Item], towards: int, right: int) -> None:
    """Put each lane in line with where its arrow comes from, if there is room between its neighbours."""
    for k, item in enumerate(row):
        from_there = [beside for beside in item.beside if beside.row == item.row + towards]
        if item.is_box or len(from_there) != 1:
            continue
        (other,) = from_there
        x = min(max(item.x, other.left + _TRACK), other.left + other.width - _TRACK) if other.is_box else other.x
        left = min(max(x - item.lane, MARGIN), right - item.width)
        if k + 1 < len(row):
            left = min(left, row[k + 1].left - _GAP - item.width)
        if k:
            left = max(left, row[k - 1].left + row[k - 1].width + _GAP)
        item.left = left


def _spread(wanted: list[float], widths: list[int], limits: Point | None = None) -> list[int]:
    """The places nearest to the wanted ones at which nothing overlaps: least squares, by pooling neighbours.

    The limits are the least place of the first, and the greatest at which all that follow it still have room.
    """
    offsets = [0, *accumulate(widths[:-1])]
    pools: list[tuple[float, int]] = []
    for place in (want - offset for want, offset in zip(wanted, offsets, strict=True)):
        pools.append((place, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, count), (other, more) = pools[-2:]
            pools[-2:] = [((one * count + other * more) / (count + more), count + more)]
    starts = [mean for mean, count in pools for _ in range(count)]
    if limits is not None:
        starts = [min(max(start, limits[0]), limits[1]) for start in starts]
    return [round(start) + offset for start, offset in zip(starts, offsets, strict=True)]


# --- where the arrows run


_Port = tuple[int, int, int]
"""An end of a stretch: the number of the arrow, that of the stretch, and 0 where it begins or 1 where it ends."""


class _Stretch(NamedTuple):
    """A part of an arrow between two rows.

    Attributes
    ----------
    number, k : int
        The arrow, and the stretch of it.
    rises : int
        1 if it begins in the lower row.
    """

    number: int
    k: int
    rises: int

    @property
    def upper(self) -> _Port:
        """Its end in the upper row."""
        return self.number, self.k, self.rises

    @property
    def lower(self) -> _Port:
        """Its end in the lower row."""
        return self.number, self.k, 1 - self.rises


class _Routes:
    """The stretches of all arrows between the rows, each with its tracks; makes the rows' heights final.

    Attributes
    ----------
    bottom, right : int
        Where the last row ends, and the arrow that is farthest to the right.
    """

    def __init__(self, rows: list[list[_Item]], ways: list[_Way]) -> None:
        ports = _Ports(rows, ways)
        between: dict[int, list[_Stretch]] = {row[0].row: [] for row in rows}
        for number, way in enumerate(ways):
            for k, (one, other) in enumerate(way.stretches):
                between[min(one.row, other.row)].append(_Stretch(number, k, int(one.row > other.row)))
        self._numbers = {id(way): number for number, way in enumerate(ways)}
        self._legs: dict[tuple[int, int], list[Point]] = {}
        self._spans: dict[int, Point] = {}
        self._ports = ports
        self.right = 0
        top = _TOP
        for row in rows:
            height = max(item.height for item in row)
            for item in row:
                item.top = top + (height - item.height) // 2 if item.is_box else top
            stretches = between[row[0].row]
            tracks = _tracks([(stretch.number, ports[stretch.upper], ports[stretch.lower]) for stretch in stretches])
            self.bottom: int = top + height
            self._spans[row[0].row] = (top, self.bottom)
            for (number, k, rises), legs in zip(stretches, tracks, strict=True):
                points = [(x, self.bottom + 14 + _TRACK * track) for start, end, track in legs for x in (start, end)]
                self._legs[number, k] = points[::-1] if rises else points
                self.right = max([self.right, *(x + MARGIN for x, _ in points)])
            top = self.bottom + 28 + _TRACK * max((track for legs in tracks for *_, track in legs), default=0)

    def points(self, way: _Way) -> list[list[Point]]:
        """The corners of an arrow, and those of the arrows that join it."""
        number = self._numbers[id(way)]
        points: list[Point] = []
        if way.edge.from_nowhere:
            start = way.items[0]
            points.append((start.x, start.top if way.items[1].row > start.row else start.top + start.height))
        for k, (one, other) in enumerate(pairwise(way.items)):
            if one.is_box:
                points.append((self._ports[number, k, 0], _border(one, other)))
            if one is way.label and way.turns:
                turn = one.top + one.height if one.row > other.row else one.top
                points += [(self._ports[number, k - 1, 1], turn), (self._ports[number, k, 0], turn)]
            points += self._legs[number, k]
        points.append((points[-1][0], _border(way.items[-1], way.items[-2])))
        joining = [
            [
                (self._ports[number, k, 0], _border(box, item)),
                *self._legs[number, k],
                (item.x, self._spans[item.row][item.row < box.row]),
            ]
            for k, (box, item) in enumerate(way.joining, len(way.items) - 1)
        ]
        return [_straightened(some) for some in (points, *joining)]


def _border(box: _Item, other: _Item) -> int:
    """The border of a box that is nearer to something in another row."""
    return box.top + box.height if other.row > box.row else box.top


class _Ports:
    """Where each stretch of each arrow begins and ends: on lanes, and side by side along the edges of boxes.

    Where an arrow would move aside a little, its lanes or its end at a box are moved so that it is straight.
    """

    def __init__(self, rows: list[list[_Item]], ways: list[_Way]) -> None:
        self._ways = ways
        self._neighbours: dict[_Item, tuple[_Item | None, _Item | None]] = {}
        for row in rows:
            for before, item, after in zip([None, *row], row, [*row[1:], None], strict=False):
                self._neighbours[item] = (before, after)
        self._ends: dict[_Item, list[_Port]] = {}
        self._at_boxes: dict[_Port, int] = {}
        self._edges: dict[_Port, list[_Port]] = {}
        edges: dict[tuple[_Item, int], list[tuple[int, _Port]]] = {}
        for number, way in enumerate(ways):
            for k, pair in enumerate(way.stretches):
                for end, item in enumerate(pair):
                    self._ends.setdefault(item, []).append((number, k, end))
                    if item.is_box:
                        other = pair[1 - end]
                        x = self._of_item(way, k, 1 - end) if not other.is_box else other.x
                        edges.setdefault((item, _side(item, other)), []).append((x, (number, k, end)))
        for (item, _), ends_here in edges.items():
            ends_here.sort()
            step = min(_GAP, (item.width - 16) // len(ends_here))
            first, last = item.left + 8, item.left + item.width - 8
            # The k-th must leave room for those before and after it.
            wanted = [
                float(min(max(x, first + step * k), last - step * (len(ends_here) - 1 - k)))
                for k, (x, _) in enumerate(ends_here)
            ]
            ports = [port for _, port in ends_here]
            self._at_boxes.update(zip(ports, _spread(wanted, [step] * len(wanted)), strict=True))
            self._edges |= dict.fromkeys(ports, ports)
        for _ in range(3):
            every = [(number, k) for number, way in enumerate(ways) for k in range(len(way.stretches))]
            snapped = [self._snap(*stretch) for stretch in every if self._jogs([stretch])]
            if True not in snapped:
                break

    def __getitem__(self, port: _Port) -> int:
        number, k, end = port
        way = self._ways[number]
        return self._at_boxes[port] if port in self._at_boxes else self._of_item(way, k, end)

    @staticmethod
    def _of_item(way: _Way, k: int, end: int) -> int:
        """Where an arrow runs in a row; beside a label below which it turns it does so twice."""
        item = way.stretches[k][end]
        if not (way.turns and item is way.label):
            return item.x
        leftwards = way.items[0].left > way.items[-1].left
        return item.x if (end == 0) == leftwards else item.left + item.width - 4

    def _jogs(self, stretches: Iterable[tuple[int, int]]) -> int:
        """How many of some stretches move aside a little."""
        return sum(0 < abs(self[number, k, 0] - self[number, k, 1]) < _JOG for number, k in stretches)

    def _snap(self, number: int, k: int) -> bool:
        """Move one end of a stretch or both, so that it is straight, or else so that it moves aside more."""
        far = self[number, k, 1] - self[number, k, 0]
        sign = 1 if far > 0 else -1
        start, end = (self._in_line((number, k), which) for which in (0, 1))
        parts = sorted(range(abs(far) + 1), key=lambda part: -abs(2 * part - abs(far)))
        away = sign * _JOG - far
        both = [*((sign * part, sign * part - far) for part in parts), (0, away), (-away, 0)]
        alone = [shift for part in range(-2 * _JOG, 2 * _JOG + 1) for shift in ((part, 0), (0, part))]
        return any(self._move(start, one, end, other) for one, other in both) or any(
            self._move(start[:1], one, end[:1], other)
            for one, other in sorted(alone, key=lambda shift: abs(sum(shift)))
        )

    def _move(self, some: list[_Item | _Port], far: int, others: list[_Item | _Port], as_far: int) -> bool:
        """Move lanes and ends at boxes, if there is room for it and fewer stretches move aside a little then."""
        moved = [(track, far) for track in some if far] + [(track, as_far) for track in others if as_far]
        if not all(self._has_room(track, far) for track, far in moved):
            return False
        touched = {
            port[:2] for track, _ in moved for port in (self._ends[track] if isinstance(track, _Item) else [track])
        }
        before = self._jogs(touched)
        for sign in (1, -1):
            for track, distance in moved:
                if isinstance(track, _Item):
                    track.left += sign * distance
                else:
                    self._at_boxes[track] += sign * distance
            if self._jogs(touched) < before:
                return True
        return False

    def _in_line(self, stretch: tuple[int, int], end: int) -> list[_Item | _Port]:
        """An end of a stretch, and what is joined to it by straight stretches but for this one."""
        joined: dict[_Item | _Port, None] = {}
        waiting: list[_Port] = [(*stretch, end)]
        while waiting:
            port = waiting.pop()
            item = self._ways[port[0]].stretches[port[1]][port[2]]
            what = port if item.is_box else item
            if what in joined:
                continue
            joined[what] = None
            for number, k, at in [] if item.is_box else self._ends[item]:
                if (number, k) != stretch and self[number, k, 0] == self[number, k, 1]:
                    waiting.append((number, k, 1 - at))
        return [*joined]

    def _has_room(self, place: _Item | _Port, far: int) -> bool:
        """Whether an item, or an end at a box, can be moved this far."""
        if isinstance(place, _Item):
            before, after = self._neighbours[place]
            return (
                (before is None or before.left + before.width + _space_after(before) <= place.left + far)
                and (after is None or place.left + far + place.width + _space_after(place) <= after.left)
                and place.left + far >= MARGIN
            )
        box = self._ways[place[0]].stretches[place[1]][place[2]]
        others = (self._at_boxes[port] for port in self._edges[place] if port != place)
        x = self._at_boxes[place] + far
        return box.left + 8 <= x <= box.left + box.width - 8 and all(abs(x - other) >= _TRACK for other in others)


def _space_after(item: _Item) -> int:
    """How much must be free to the right of an item at least; a mark before a call makes its label longer."""
    return 6 if item.is_box or item.width == _LANE else _GAP


def _side(item: _Item, other: _Item) -> int:
    return 1 if other.row > item.row else -1


_Place = tuple[int, int]
"""A part of an arrow between two rows that runs across: which arrow, and which step of it."""
_Leg = tuple[int, int, int]
"""Where an arrow runs across: from where, to where, and on which track."""


def _tracks(stretches: list[tuple[int, int, int]]) -> list[list[_Leg]]:
    """What runs across of each stretch, given as the number of its arrow, its upper and its lower end.

    None lies on another, and what leaves the upper row ends above what enters the lower row at the same place.  Where
    such arrows would all have to be above each other, one of them goes down in two steps.
    """
    legs = {(k, 0): (upper, lower) for k, (_, upper, lower) in enumerate(stretches) if upper != lower}
    uppers = sorted((stretches[k][1], k) for k, _ in legs)
    above: dict[_Place, set[_Place]] = {}
    for k, _ in legs:
        number, _, lower = stretches[k]
        near = uppers[bisect_left(uppers, (lower - _NEAR + 1, -1)) : bisect_left(uppers, (lower + _NEAR, -1))]
        above[k, 0] = {(other, 0) for _, other in near if stretches[other][0] != number}
    occupied = [x for _, *ends in stretches for x in ends]
    while True:
        sorter = TopologicalSorter(above)
        try:
            sorter.prepare()
        except CycleError as error:
            k, _ = max(error.args[1], key=lambda leg: abs(legs[leg][0] - legs[leg][1]))
            start, end = legs[k, 0]
            x = _free(occupied, (start + end) // 2)
            occupied.append(x)
            legs[k, 0], legs[k, 1] = (start, x), (x, end)
            above[k, 1], above[k, 0] = {*above[k, 0], (k, 0)}, set()
        else:
            break
    if len(legs) < _MANY_LEGS:
        _prefer(legs, above)
        sorter = TopologicalSorter(above)
        sorter.prepare()
    tracks: list[list[Point]] = []
    across: dict[_Place, int] = {}
    while sorter.is_active():
        ready = sorter.get_ready()
        for leg in sorted(ready, key=lambda leg: (abs(legs[leg][0] - legs[leg][1]), leg)):
            low, high = min(legs[leg]) - _TRACK, max(legs[leg]) + _TRACK
            track = max((across[edge] + 1 for edge in above[leg]), default=0)
            while track < len(tracks) and any(low < other[1] and other[0] < high for other in tracks[track]):
                track += 1
            tracks += [[] for _ in range(track + 1 - len(tracks))]
            tracks[track].append((low + _TRACK, high - _TRACK))
            across[leg] = track
        sorter.done(*ready)
    return [[(*legs[leg], across[leg]) for leg in ((k, 0), (k, 1)) if leg in legs] for k in range(len(stretches))]


def _prefer(legs: Mapping[_Place, Point], above: dict[_Place, set[_Place]]) -> None:
    """Put each part of an arrow above another if they cross less then, unless it must be below."""
    gains: list[tuple[int, _Place, _Place]] = []
    for one, other in combinations(legs, 2):
        fewer = _crossed_legs(legs[other], legs[one]) - _crossed_legs(legs[one], legs[other])
        if fewer:
            gains.append((-abs(fewer), one, other) if fewer > 0 else (-abs(fewer), other, one))
    for _, upper, lower in sorted(gains):
        seen, waiting = {upper}, [upper]
        while waiting and lower not in seen:
            more = above[waiting.pop()] - seen
            seen |= more
            waiting += more
        if lower not in seen:
            above[lower].add(upper)


def _crossed_legs(upper: Point, lower: Point) -> int:
    """How often two parts of arrows cross, if one runs across above the other."""
    return (min(upper) < lower[0] < max(upper)) + (min(lower) < upper[1] < max(lower))


def _free(occupied: Iterable[int], wanted: int) -> int:
    """The place nearest to a wanted one that no arrow is near."""
    return next(
        x
        for far in count()
        for x in (wanted + far, wanted - far)
        if x >= MARGIN and all(abs(x - other) >= _JOG for other in occupied)
    )


def _straightened(points: list[Point]) -> list[Point]:
    """The corners alone: without points on a straight stretch, and without points twice."""
    corners: list[Point] = []
    for point in points:
        if corners and corners[-1] == point:
            continue
        while len(corners) > 1 and (
            corners[-2][0] == corners[-1][0] == point[0] or corners[-2][1] == corners[-1][1] == point[1]
        ):
            corners.pop()
        corners.append(point)
    return corners
