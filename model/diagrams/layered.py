"""A drawing of any machine in layers: the head of a new memory on top, and below it what takes one call more.

The method is Sugiyama's: layers, then an order within each that has few crossings, then positions.  Labels have rows of
their own between the layers, in which every arrow that passes has a lane.  So within a row nothing lies on anything
else.  Between two rows there are only arrows, which leave a row straight, run across on a track of their own, and enter
the next row straight.  A call that stays is written into its box.  A call that leads from every state to one is a
single arrow from nowhere.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import accumulate, combinations, pairwise
from textwrap import TextWrapper
from typing import TYPE_CHECKING, NamedTuple

from .arrangement import Arrangement, Arrow, Box
from .drawing import Kind, Line
from .layout import MARGIN, Anchor, indent_of, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .drawing import Drawing, Node
    from .layout import Point

__all__ = ["layered"]

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
_LANE = 12
"""The width of an arrow that passes a row."""
_TRACK = 10
"""Between two arrows that run across, and between two that leave one box."""
_NEAR = 5
"""Arrows that are nearer than this look like one."""
_SWEEPS = 8
_TOP = 34
"""The room for the dot before the first box."""


@dataclass(eq=False, slots=True)
class _Item:
    """Something in a row: a box, a label with the lane of its arrow, or the lane of an arrow that passes.

    Attributes
    ----------
    row, width, height : int
    lane : int
        How far to the right of its left edge its arrow runs; of a box, half of its width.
    left, top : int
    beside : list of _Item
        What its arrows lead to, in the rows above and below.
    """

    row: int
    width: int = _LANE
    height: int = 0
    lane: int = _LANE // 2
    left: int = 0
    top: int = 0
    beside: list[_Item] = field(default_factory=list["_Item"])

    @property
    def x(self) -> int:
        """Where its arrow runs; of a box, its middle."""
        return self.left + self.lane

    @property
    def is_box(self) -> bool:
        """Whether it is a box, where arrows end."""
        return self.height > 0 and self.lane != _LANE // 2


class _Way(NamedTuple):
    """An arrow before it is drawn: what it passes, from its source to its end.

    Attributes
    ----------
    sources : tuple of str
    dest : str
    lines : tuple of Line
    items : list of _Item
        Its box at the start, unless it comes from nowhere; what it passes; and its box at the end.
    label : _Item
    """

    sources: tuple[str, ...]
    dest: str
    lines: tuple[Line, ...]
    items: list[_Item]
    label: _Item

    @property
    def from_nowhere(self) -> bool:
        """Whether it leaves every state."""
        return len(self.sources) > 1

    @property
    def turns(self) -> bool:
        """Whether it leads to a box of the same row, and turns below its label."""
        return not self.from_nowhere and self.items[0].row == self.items[-1].row


def layered(drawn: Drawing, room: int = 0) -> Arrangement:
    """Lay out any drawing, with room for this many letters before each call."""
    stays = {node.name: _stays(drawn, node) for node in drawn.nodes}
    edges = _merged(drawn)
    layers = _layers(drawn)
    boxes = {name: _box(drawn, name, lines, room) for name, lines in stays.items()}
    labels = [_label(drawn, lines, room) for _, _, lines in edges]
    ways = list(_ways(edges, layers, boxes, labels))
    rows = _rows([*boxes.values(), *(item for way in ways for item in way.items)])
    for row in _in_order(rows):
        _pack(row)
    _align(rows)
    routes = _Routes(rows, ways)
    arrows = tuple(Arrow(way.sources, way.dest, way.lines, routes.points(way), _anchor(way)) for way in ways)
    places = tuple(
        Box(name, (item.x, item.top + item.height // 2), (item.width // 2, item.height // 2), stays[name])
        for name, item in boxes.items()
    )
    right = max(item.left + item.width for row in rows for item in row) + MARGIN
    texts = (_EVERYWHERE,) if any(way.from_nowhere for way in ways) else ()
    return Arrangement(drawn, places, arrows, (right, routes.bottom + 30), texts)


# --- what there is to place


def _stays(drawn: Drawing, node: Node) -> tuple[Line, ...]:
    """The calls that leave a state as it is, each in one line of text."""
    lines = (line for edge in drawn.edges if edge.source == edge.dest == node.name for line in edge.lines)
    return tuple(
        line._replace(call=f"{line.call} / {'; '.join(line.steps)}" if line.steps else line.call, steps=())
        for line in lines
    )


_Arrow = tuple[tuple[str, ...], str, tuple[Line, ...]]
"""The states from which calls lead, that to which they lead, and the calls."""


def _merged(drawn: Drawing) -> list[_Arrow]:
    """The arrows between states; calls that lead from every other state to one are an arrow of all of them."""
    names = [node.name for node in drawn.nodes]
    found: dict[tuple[str, str], list[tuple[str, Line]]] = {}
    for edge in drawn.edges:
        for line in edge.lines:
            found.setdefault((edge.dest, line.call), []).append((edge.source, line))
    everywhere = {
        (dest, call): lines
        for (dest, call), lines in found.items()
        if len(names) > 3 and {source for source, _ in lines} | {dest} == set(names)  # noqa: PLR2004 -- fewer are read at once
    }
    merged: list[_Arrow] = [
        (
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
        identifiers = tuple(it for line in of_all for it in line.identifiers)
        sources = tuple(name for name in names if name != dest)
        line = Line(call, steps, kind, identifiers)
        merged.append((sources, dest, (line if len(variants) > 1 else _wrapped(line),)))
    return [arrow for arrow in merged if arrow[2]]


def _wrapped(line: Line) -> Line:
    """Long steps take several lines of text, which makes a drawing of many arrows narrower."""
    texts: list[str] = []
    for step in line.steps:
        first, *rest = step.split(" + ") if len(step) > _LONG else (step,)
        texts += [first, *(f"+ {part}" for part in rest)]
    return line._replace(steps=tuple(texts))


def _layers(drawn: Drawing) -> dict[str, int]:
    """How many calls it takes to each state; what cannot be reached is below all others."""
    found = {drawn.nodes[0].name: 0}
    waiting = deque(found)
    while waiting:
        name = waiting.popleft()
        for edge in drawn.edges:
            if edge.source == name and edge.dest not in found:
                found[edge.dest] = found[name] + 1
                waiting.append(edge.dest)
    lowest = max(found.values()) + 1
    return {node.name: found.get(node.name, lowest) for node in drawn.nodes}


def _box(drawn: Drawing, name: str, stays: Sequence[Line], room: int) -> _Item:
    texts = [width_of(name, "name") + 20]
    texts += [
        indent_of(bullet=drawn.says(line.kind), mark=True) + width_of(f"{line.call}{'m' * room}", "brief") + 10
        for line in stays
    ]
    width = -(-max(texts) // 2) * 2
    return _Item(0, width, 36 if not stays else 28 + 16 * len(stays), width // 2)


def _label(drawn: Drawing, lines: Iterable[Line], room: int) -> _Item:
    """The room for a label to the right of its arrow."""
    width, height = 0, 4
    for line in lines:
        texts = [(f"{line.call}{'m' * room}", "call"), *((step, "step") for step in line.steps)]
        wide = max(width_of(text, look) for text, look in texts)
        width = max(width, indent_of(bullet=drawn.says(line.kind)) + wide)
        height += 4 + 13 * len(texts)
    return _Item(0, _LANE + width, height, _LANE // 2)


def _ways(
    edges: list[_Arrow],
    layers: dict[str, int],
    boxes: dict[str, _Item],
    labels: list[_Item],
) -> Iterator[_Way]:
    """Each arrow with what it passes.  Rows are numbered here, from the top: layers, and labels between them."""
    bands: dict[int, list[_Item]] = {layer: [] for layer in range(max(layers.values()) + 1)}
    for (sources, dest, _), label in zip(edges, labels, strict=True):
        bands[_band(sources, dest, layers)].append(label)
        if (
            len(sources) == 1 and layers[sources[0]] == layers[dest]
        ):  # its arrow turns below it, and comes back beside it
            label.height, label.width = label.height + 6, label.width + _LANE + 6
    starts, row = dict[int, int](), 0
    for layer, band in bands.items():
        starts[layer] = row
        count = min(max(1, -(-sum(it.width + _GAP for it in band) // _WIDE)), _MOST_ROWS) if band else 1
        for k, label in enumerate(band):
            label.row = row + 1 + k % count
        row += count + 1
    for name, box in boxes.items():
        box.row = starts[layers[name]]
    for (sources, dest, lines), label in zip(edges, labels, strict=True):
        end = boxes[dest]
        begin = [boxes[sources[0]]] if len(sources) == 1 else []
        if begin and begin[0].row == end.row:
            down, up = (list(map(_Item, range(end.row + 1, label.row))) for _ in range(2))
            items = [*begin, *down, label, *reversed(up), end]
        else:
            items = [*begin, *_passed(begin[0].row if begin else None, label, end.row), end]
        for one, other in pairwise(items):
            one.beside.append(other)
            other.beside.append(one)
        yield _Way(sources, dest, lines, items, label)
    for box in boxes.values():
        below = sum(item.row > box.row for item in box.beside)
        box.width = max(box.width, 16 + _GAP * max(below, len(box.beside) - below))
        box.lane = box.width // 2


def _band(sources: tuple[str, ...], dest: str, layers: dict[str, int]) -> int:
    """Below which layer a label is: next to the source of its arrow, or above the end of one from nowhere."""
    if len(sources) > 1:
        return max(layers[dest] - 1, 0)
    start = layers[next(iter(sources))]
    return start if layers[dest] >= start else start - 1


def _passed(start: int | None, label: _Item, end: int) -> list[_Item]:
    """What an arrow passes between two layers: lanes, and its label."""
    begin = label.row if start is None else start
    step = 1 if end > begin else -1
    rows = range(begin if start is None else begin + step, end, step)
    return [label if row == label.row else _Item(row) for row in rows]


# --- where it is


def _rows(items: Iterable[_Item]) -> list[list[_Item]]:
    found: dict[int, list[_Item]] = {}
    for item in dict.fromkeys(items):
        found.setdefault(item.row, []).append(item)
    return [found[row] for row in sorted(found)]


def _in_order(rows: list[list[_Item]]) -> list[list[_Item]]:
    """Sort each row by where the neighbours are, down and up in turn, so that few arrows cross; return the rows."""
    places = {item: k / len(row) for row in rows for k, item in enumerate(row)}
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = {item: _mean([places[it] for it in item.beside], places[item]) for item in row}
            row.sort(key=wanted.__getitem__)
            places.update({item: (k + 0.5) / len(row) for k, item in enumerate(row)})
    return rows


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _pack(row: list[_Item]) -> None:
    left = MARGIN
    for item in row:
        item.left = left
        left += item.width + _GAP


def _align(rows: list[list[_Item]]) -> None:
    """Move each item near its neighbours, as far as the others of its row let it; then straighten arrows."""
    right = max(row[-1].left + row[-1].width for row in rows)
    for sweep in range(2 * _SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [_mean([float(it.x) for it in item.beside], float(item.x)) - item.lane for item in row]
            widths = [item.width + _GAP for item in row]
            last = right + _GAP - sum(widths)
            for item, place in zip(row, _spread(wanted, widths, (MARGIN, last)), strict=True):
                item.left = place
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _straighten(row, -1 if sweep % 2 == 0 else 1, right)
    leftmost = min(item.left for row in rows for item in row)
    for row in rows:
        for item in row:
            item.left += MARGIN - leftmost


def _straighten(row: list[_Item], towards: int, right: int) -> None:
    """Put each lane in line with where its arrow comes from, if there is room between its neighbours."""
    for k, item in enumerate(row):
        from_there = [it for it in item.beside if it.row == item.row + towards]
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


def _anchor(way: _Way) -> Anchor:
    """The upper left corner of the text, to the right of the arrow."""
    return Anchor(way.label.x + 6, way.label.top, 0, 0)


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
    """The stretches of all arrows between the rows, each with its track; makes the rows' heights final.

    Parameters
    ----------
    rows : list of list of _Item
    ways : list of _Way

    Attributes
    ----------
    bottom : int
        Where the last row ends.
    """

    def __init__(self, rows: list[list[_Item]], ways: list[_Way]) -> None:
        self._ports = _ports(ways)
        between: dict[int, list[_Stretch]] = {row[0].row: [] for row in rows}
        for number, way in enumerate(ways):
            for k, (one, other) in enumerate(pairwise(way.items)):
                between[min(one.row, other.row)].append(_Stretch(number, k, int(one.row > other.row)))
        self._numbers = {id(way): number for number, way in enumerate(ways)}
        self._levels: dict[tuple[int, int], int] = {}
        top = _TOP
        for row in rows:
            height = max(item.height for item in row)
            for item in row:
                item.top = top + (height - item.height) // 2 if item.is_box else top
            self._untangle(between[row[0].row])
            ends = [(self._ports[it.upper], self._ports[it.lower]) for it in between[row[0].row]]
            tracks = _tracks(ends)
            for (number, k, _), track in zip(between[row[0].row], tracks, strict=True):
                self._levels[number, k] = top + height + 14 + _TRACK * track
            self.bottom: int = top + height
            top = self.bottom + 28 + _TRACK * max(tracks, default=0)

    def _untangle(self, stretches: list[_Stretch]) -> None:
        """Move an arrow aside that would change places with another: no track is above and below another."""
        for one, other in combinations(stretches, 2):
            ends = [self._ports[it] for it in (one.upper, other.lower, other.upper, one.lower)]
            if abs(ends[0] - ends[1]) < _NEAR and abs(ends[2] - ends[3]) < _NEAR:
                number, k, end = other.lower
                onwards = (number, k + 1, 0) if end else (number, k - 1, 1)
                if self._ports.get(onwards) == self._ports[other.lower]:
                    self._ports[onwards] -= _NEAR
                self._ports[other.lower] -= _NEAR

    def points(self, way: _Way) -> list[Point]:
        """The corners of an arrow."""
        number = self._numbers[id(way)]
        found: list[Point] = []
        if way.from_nowhere:
            start = way.items[0]
            found.append((start.x, start.top if way.items[1].row > start.row else start.top + start.height))
        for k, (one, other) in enumerate(pairwise(way.items)):
            level = self._levels[number, k]
            here, there = self._ports[number, k, 0], self._ports[number, k, 1]
            if k == 0 and not way.from_nowhere:
                found.append((here, _edge(one, other)))
            found += [(here, level), (there, level)]
            if one is way.label and way.turns:
                turn = one.top + one.height
                found[-2:-2] = [(self._ports[number, k - 1, 1], turn), (here, turn)]
        last, before = way.items[-1], way.items[-2]
        found.append((found[-1][0], _edge(last, before)))
        return _straightened(found)


def _edge(box: _Item, other: _Item) -> int:
    """The edge of a box that is nearer to something in another row."""
    return box.top + box.height if other.row > box.row else box.top


def _ports(ways: list[_Way]) -> dict[_Port, int]:
    """Where each stretch of each arrow begins and ends: on lanes, and side by side along the edges of boxes."""
    found: dict[_Port, int] = {}
    edges: dict[tuple[_Item, int], list[tuple[_Port, int]]] = {}
    for number, way in enumerate(ways):
        ends = None if way.from_nowhere else way.items[0], way.items[-1]
        for k, pair in enumerate(pairwise(way.items)):
            for end, item in enumerate(pair):
                other = pair[1 - end]
                if item in ends:
                    edges.setdefault((item, _side(item, other)), []).append(((number, k, end), other.x))
                elif way.turns and item is way.label:
                    leftwards = way.items[0].left > way.items[-1].left
                    found[number, k, end] = item.x if (end == 0) == leftwards else item.left + item.width - 4
                else:
                    found[number, k, end] = item.x
    for (item, _), ends_here in edges.items():
        ends_here.sort(key=lambda it: it[1])
        step = min(_GAP, (item.width - 16) // len(ends_here))
        first, last = item.left + 8, item.left + item.width - 8
        # The k-th must leave room for those before and after it.
        wanted = [
            float(min(max(x, first + step * k), last - step * (len(ends_here) - 1 - k)))
            for k, (_, x) in enumerate(ends_here)
        ]
        found.update(zip((key for key, _ in ends_here), _spread(wanted, [step] * len(wanted)), strict=True))
    return found


def _side(item: _Item, other: _Item) -> int:
    return 1 if other.row > item.row else -1


def _tracks(stretches: list[Point]) -> list[int]:
    """A track for each stretch, given as its upper and its lower end.

    None lies on another, and what leaves the upper row ends above what enters the lower row at the same place.
    """
    order = sorted(range(len(stretches)), key=lambda k: abs(stretches[k][0] - stretches[k][1]))
    above = {
        k: [n for n, (upper, _) in enumerate(stretches) if n != k and abs(upper - stretches[k][1]) < _NEAR]
        for k in order
    }
    found: dict[int, int] = {}

    def place(k: int, path: tuple[int, ...]) -> None:
        for before in above[k]:
            if before not in found and before not in path:
                place(before, (*path, k))
        track = max((found[n] + 1 for n in above[k] if n in found), default=0)
        while any(found[n] == track and _meet(stretches[k], stretches[n]) for n in found):
            track += 1
        found[k] = track

    for k in order:
        if k not in found:
            place(k, ())
    return [found[k] for k in range(len(stretches))]


def _meet(one: Point, other: Point) -> bool:
    return min(one) < max(other) + _TRACK and min(other) < max(one) + _TRACK


def _straightened(points: list[Point]) -> list[Point]:
    """The corners alone: without points on a straight stretch, and without points twice."""
    found: list[Point] = []
    for point in points:
        if found and found[-1] == point:
            continue
        while len(found) > 1 and (found[-2][0] == found[-1][0] == point[0] or found[-2][1] == found[-1][1] == point[1]):
            found.pop()
        found.append(point)
    return found
