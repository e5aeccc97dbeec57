/** Everything that can happen, found by trying it: states, cells, and sentences that hold in all of them. */

import { cellOf, keyOf, reach } from "./machine.js";

/** The cells that some words take, each from a fresh memory; calls of which an action fails take none. */
export function cellsOf(machine, words) {
  const cells = new Set();
  const lively = new Map(machine.lively().map((entry) => [entry.name, entry]));
  for (const word of words) {
    let state = machine.start;
    for (const entry of word.map((name) => lively.get(name)).filter(Boolean)) {
      if (!entry.mode) cells.add(cellOf(machine, state, entry));
      ({ after: state } = machine.step(state, entry));
    }
  }
  return cells;
}

/**
 * Everything, explored: what was counted, and whether what has to hold everywhere does.
 *
 * Contents are counted too, with `values` different ones: of a side that is fresh or stale, which of them it holds.
 */
export function explore(machine, values = 2) {
  const calls = machine.lively();
  const inputs = calls.filter(({ data }) => data);
  const states = [...reach(machine, inputs).values()].map(({ state }) => state);
  const configurations = new Set(states.map((state) => machine.configuration(state).name));
  const asked = calls.filter(({ mode }) => !mode);
  const seen = new Map(states.map((state) => [machine.configuration(state).name, state]));
  const refused = [...seen.values()].flatMap((state) => asked.filter((entry) => machine.step(state, entry).row.refusal));
  const edges = states.flatMap((state) => inputs.map((entry) => ({ state, ...machine.step(state, entry) })));
  return {
    counts: {
      configurations: configurations.size,
      cells: configurations.size * asked.length,
      refusals: refused.length,
      states: states.length,
      transitions: edges.length,
    },
    contents: contents(machine, inputs, values),
    laws: laws(machine, states, edges),
  };
}

/** Named sentences about all states and all transitions, and whether they hold. */
function laws(machine, states, edges) {
  const pointers = ({ facts }) => machine.sides.filter(({ pointer }) => facts & pointer).map(({ name }) => name);
  const isStart = ({ head }) => head === machine.start.head;
  const zeroes = ({ actions }) => actions.some(({ contents: left }) => left === "zero");
  const every = (list, test) => list.every(test);
  const sides = (test) => every(states, (state) => every(machine.sides, (side) => test(state, side)));
  return {
    "a fresh side has a pointer": sides((state, side) => !machine.fresh(state, side) || state.facts & side.pointer),
    "what is owned has a pointer": sides((state, side) => !(state.facts & side.own) || state.facts & side.pointer),
    [`the head is ${machine.start.head} exactly while there is no pointer`]: every(
      states,
      (state) => isStart(state) === !pointers(state).length,
    ),
    [`${machine.start.head} is never entered again`]: every(edges, ({ state, after }) => isStart(state) || !isStart(after)),
    "a pointer, once there, stays": every(edges, ({ state, after }) =>
      every(pointers(state), (name) => pointers(after).includes(name)),
    ),
    "ownership, once given up, never returns": every(edges, ({ state, after }) =>
      every(machine.sides, ({ own, pointer }) => !(state.facts & pointer) || state.facts & own || !(after.facts & own)),
    ),
    "memory is zeroed only on the way out of the first head": every(edges, (edge) => !zeroes(edge) || isStart(edge.state)),
  };
}

/** States with contents: how many there are, and whether all fresh sides always hold the same. */
function contents(machine, inputs, values) {
  const all = [...Array(values).keys()];
  const key = ({ state, held }) => `${keyOf(state)} ${JSON.stringify(held)}`;
  const start = { state: machine.start, held: {} };
  const found = new Map([[key(start), start]]);
  let alike = true;
  for (const { state, held } of found.values()) {
    const fresh = machine.sides.filter((side) => machine.fresh(state, side)).map(({ name }) => held[name]);
    alike &&= new Set(fresh).size <= 1;
    for (const entry of inputs) {
      const { row, actions, after } = machine.step(state, entry);
      const { does, side } = machine.calls.get(entry.call) ?? {};
      const free = !row?.refusal && (does === "write" || does === "adopt");
      for (const value of free ? all : [null]) {
        const next = { state: after, held: heldAfter(machine, held, actions) };
        if (free) next.held = byName({ ...next.held, [side]: value });
        if (!found.has(key(next))) found.set(key(next), next);
      }
    }
  }
  return { values, states: found.size, alike };
}

function heldAfter(machine, held, actions) {
  const after = { ...held };
  for (const { contents: left, side } of actions) {
    if (left === "zero") after[side] = 0;
    if (left === "other side") after[side] = held[machine.sides.find(({ name }) => name !== side).name];
  }
  return byName(after);
}

const byName = (held) => Object.fromEntries(Object.entries(held).sort());
