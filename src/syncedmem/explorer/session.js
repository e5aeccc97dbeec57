/** What was done to one memory: steps that can be taken back, taken again, and written into an address. */

import { Machine, keyOf, reach } from "./machine.js";
import { freshMemory, perform } from "./memory.js";

/** A trace: what to do to a fresh memory, as names, and which action of a step is to fail. */
/** @typedef {{edition: string, size: number, mode: string, calls: {name: string, fail: number}[], at?: number}} Trace */

const FAIL = "!";

export class Session {
  /**
   * @param {object} material what the page was given
   * @param {() => void} changed called after each change
   */
  constructor(material, changed) {
    this.material = material;
    this.changed = changed;
    this.taken = new Map();
    this.begin({ edition: material.machine.editions[0].name, size: material.sizes.default, mode: material.mode, calls: [] });
  }

  /**
   * Start anew with a trace; its steps lie ahead, up to where it says that it stands.
   *
   * @throws {Error} if it names something that the machine does not have; then all is as it was
   */
  begin({ edition, size, mode, calls, at = 0, title = null, note = null }) {
    const machine = this.machineOf(edition, mode);
    const unknown = calls.find(({ name }) => !machine.entries.has(name));
    if (unknown) throw new Error(`${edition} has no call ${unknown.name}`);
    const records = [];
    let memory = freshMemory(machine, size);
    for (const { name, fail } of calls) {
      records.push(perform(machine, memory, machine.entries.get(name), fail));
      memory = records.at(-1).after;
    }
    Object.assign(this, { machine, size, mode, records, title, note, cursor: 0 });
    this.start = freshMemory(machine, size);
    this.go(at);
  }

  /** @throws {Error} if there is no such edition or mode */
  machineOf(edition, mode) {
    const { machine } = this.material;
    if (!machine.editions.some(({ name }) => name === edition)) throw new Error(`there is no edition ${edition}`);
    if (!machine.modes.some(({ name }) => name === mode)) throw new Error(`there is no mode ${mode}`);
    return new Machine(machine, edition, mode);
  }

  /** The memory as it is now. */
  get memory() {
    return this.cursor ? this.records[this.cursor - 1].after : this.start;
  }

  /** The step that was taken last, or nothing. */
  get last() {
    return this.cursor ? this.records[this.cursor - 1] : null;
  }

  /** What an input would do now. */
  preview(entry) {
    return perform(this.machine, this.memory, entry);
  }

  /** Do something; what lay ahead is gone. */
  take(name, fail = 0) {
    const record = perform(this.machine, this.memory, this.machine.entries.get(name), fail);
    this.records = [...this.records.slice(0, this.cursor), record];
    this.title = this.note = null;
    this.go(this.cursor + 1);
  }

  /** Stand behind some step; 0 is the fresh memory. */
  go(cursor) {
    this.cursor = Math.max(0, Math.min(cursor, this.records.length));
    for (const record of this.records.slice(0, this.cursor)) this.mark(record);
    this.changed();
  }

  /** Remember which cell a step took: a failed step takes none. */
  mark({ entry, before, fail }) {
    if (fail || before.state.released || entry.mode) return;
    const { name } = this.machine.edition;
    if (!this.taken.has(name)) this.taken.set(name, new Set());
    this.taken.get(name).add(cellOf(this.machine, before.state, entry));
  }

  /** A fresh memory of the same kind, and nothing ahead. */
  reset(changes = {}) {
    this.begin({ edition: this.machine.edition.name, size: this.size, mode: this.mode, calls: [], ...changes });
  }

  /** A shortest trace to a configuration, and one input more. */
  visit(configuration, input) {
    const words = [...reach(this.machine, this.machine.lively()).values()];
    const { word } = words.find(({ state }) => this.machine.configuration(state).name === configuration);
    const calls = [...word.map(({ name }) => name), input].map((name) => ({ name, fail: 0 }));
    this.reset({ calls, at: calls.length });
  }

  /** The inputs that are not refused now. */
  possible() {
    return this.memory.state.released ? [] : this.machine.lively().filter((entry) => !this.preview(entry).refusal);
  }

  /** The address of all this. */
  get address() {
    const calls = this.records.map(({ entry, fail }) => (fail ? `${entry.name}${FAIL}${fail}` : entry.name));
    const parts = [`edition=${this.machine.edition.name}`, `size=${this.size}`, `mode=${this.mode}`];
    if (this.cursor !== this.records.length) parts.push(`at=${this.cursor}`);
    if (calls.length) parts.push(`calls=${calls.join(",")}`);
    return `#${parts.join("&")}`;
  }

  /**
   * The trace of an address; what it does not say is as it usually is.
   *
   * @throws {Error} if a number is none
   * @returns {Trace}
   */
  traceOf(address) {
    const said = new URLSearchParams(address.replace(/^#/, "").replaceAll("+", "%2B"));
    const calls = (said.get("calls") ?? "").split(",").filter(Boolean).map((text) => {
      const [name, fail = "0"] = text.split(FAIL);
      return { name, fail: natural(fail) };
    });
    return {
      edition: said.get("edition") ?? this.material.machine.editions[0].name,
      size: Math.min(natural(said.get("size") ?? `${this.material.sizes.default}`), this.material.sizes.most),
      mode: said.get("mode") ?? this.material.mode,
      calls,
      at: said.has("at") ? natural(said.get("at")) : calls.length,
    };
  }
}

function natural(text) {
  if (!/^\d+$/.test(text)) throw new Error(`${text} is no number`);
  return Number(text);
}

/** The name of a cell of the matrix. */
export const cellOf = (machine, state, entry) => `${machine.configuration(state).name} ${entry.name}`;

/** The cells that some words take, each from a fresh memory. */
export function cellsOf(machine, words) {
  const cells = new Set();
  for (const word of words) {
    let state = machine.start;
    for (const name of word) {
      const entry = machine.entries.get(name);
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
      const { role, side } = machine.calls.get(entry.call) ?? {};
      const free = !row?.refusal && (role === "write" || role === "adopt");
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
