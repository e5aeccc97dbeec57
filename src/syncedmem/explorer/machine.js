/** The machine, a table of states and steps that Python computed and this page looks up; and what was done to a memory. */

/** The number of the state in which there is no memory any more. */
const ENDED = -1;
/** What a side can hold besides the number of the step in which somebody wrote it. */
const [NOTHING, UNDEFINED, ZEROS, START] = [null, "undefined bytes", "zeros", "what was there at first"];

/** What is in the side of an action afterwards, by what the action does. */
const LEAVES = {
  __proto__: null,
  allocate: () => UNDEFINED,
  zero: () => ZEROS,
  copy: (sides, { source }) => sides[source],
  adopt: (_, __, number) => number,
  free: () => NOTHING,
};
const WRITES = ["write", "overwrite"];

class Machine {
  /** @param {object} told what `material.py` says */
  constructor(told) {
    Object.assign(this, told);
    this.entries = told.inputs.map((input, number) => ({ ...input, number }));
    this.asks = told.heads.some(({ fresh }) => fresh.length);
    this.configurations = [...new Set(told.states.map(({ name }) => name))];
  }

  head(state) {
    return this.heads[this.states[state].head];
  }

  /** The name of a state as it is shown. */
  nameOf(state) {
    return state === ENDED ? "released" : this.states[state].name;
  }

  fresh(state) {
    return state === ENDED ? [] : this.head(state).fresh;
  }

  /** The names of the facts that are true in a state. */
  holding(state) {
    return state === ENDED ? [] : this.states[state].facts.map((number) => this.facts[number].name);
  }

  /** What an input does in a state; null where a call has no row. */
  step(state, { number }) {
    const found = this.steps[state][number];
    if (!found) return null;
    const [row, after, way, reason] = found;
    const actions = this.ways[way].map((action) => this.actions[action]);
    return { row: this.rows[row] ?? null, after, actions, reason: this.reasons[reason] ?? "" };
  }

  /** The fewest inputs that lead to a state; states are numbered breadth first. */
  way(state) {
    const names = [];
    for (let here = state; here !== 0; ) {
      const before = this.steps.findIndex((row) => row.some((step) => step && step[1] === here));
      names.unshift(this.entries[this.steps[before].findIndex((step) => step && step[1] === here)]);
      here = before;
    }
    return names;
  }

  /** A state of a configuration: with the settings of the beginning, if there is one. */
  stateOf(configuration) {
    const those = [...this.states.keys()].filter((state) => this.states[state].name === configuration);
    return those.find((state) => String(this.states[state].settings) === String(this.states[0].settings)) ?? those[0];
  }
}

/** The name of a cell of the table of all configurations and calls. */
const cellOf = (machine, state, entry) => `${machine.nameOf(state)} ${entry.name}`;

/** What was done to one memory, step by step. */
class Session {
  constructor(machine) {
    const { fresh } = machine.head(0);
    const sides = new Map(machine.sides.map((side) => [side, fresh.includes(side) ? START : NOTHING]));
    Object.assign(this, { machine, records: [], taken: new Set(), start: { state: 0, sides: Object.fromEntries(sides) } });
  }

  /** The step that was taken last, or nothing. */
  get last() {
    return this.records.at(-1);
  }

  /** The memory as it is now: its state, and what each side holds. */
  get memory() {
    return this.last?.after ?? this.start;
  }

  /** What an input would do now, if the action of a number, from 1, failed: a record of the step. */
  preview(entry, fail = 0) {
    const { machine, memory: before } = this;
    const [{ state }, number] = [before, this.records.length + 1];
    const record = { entry, number, before, fail, after: before, row: null, actions: [], reason: "", written: "" };
    if (state === ENDED) return { ...record, reason: entry.ends ? "" : endOf(machine) };
    const step = machine.step(state, entry);
    if (!step) return { ...record, reason: `there is no row for ${entry.name} in ${machine.head(state).name}` };
    const { row, actions, reason } = step;
    Object.assign(record, { row, actions, reason });
    if (reason || fail) return record;  // nothing has changed: a call of which an action fails is undone
    const sides = { ...before.sides };
    for (const action of actions) if (LEAVES[action.does]) sides[action.side] = LEAVES[action.does](sides, action, number);
    if (WRITES.includes(entry.does)) sides[(record.written = entry.side)] = number;
    return { ...record, after: { state: step.after, sides } };
  }

  take(entry, fail = 0) {
    const record = this.preview(entry, fail);
    if (!fail && record.before.state !== ENDED) this.taken.add(cellOf(this.machine, record.before.state, entry));
    this.records.push(record);
  }

  /** The inputs that are not refused now, without those that end the memory. */
  possible() {
    return this.machine.entries.filter((entry) => !entry.ends && !this.preview(entry).reason);
  }
}
