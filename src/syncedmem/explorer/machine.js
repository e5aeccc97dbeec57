/** The machine: a table of its states and steps, which Python computed and this page looks up. */

/** The number of the state in which there is no memory any more. */
export const ENDED = -1;

export class Machine {
  /** @param {object} told what `material.py` says */
  constructor(told) {
    Object.assign(this, told);
    this.entries = new Map(told.inputs.map((input, number) => [input.name, { ...input, number }]));
    this.asks = told.heads.some(({ fresh }) => fresh.length);
    this.configurations = [...new Set(told.states.map(({ name }) => name))];
  }

  /** The head of a state, with the sides that are fresh in it. */
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
    return {
      row: row < 0 ? null : this.rows[row],
      after,
      actions: this.ways[way].map((action) => this.actions[action]),
      reason: reason < 0 ? "" : this.reasons[reason],
    };
  }

  /** For each state the step that reaches it first, as a state and an input; states are numbered breadth first. */
  firstWays() {
    const from = new Map();
    for (const [state, row] of this.steps.entries()) {
      for (const [number, step] of row.entries()) {
        if (step && step[1] > 0 && !from.has(step[1])) from.set(step[1], [state, this.inputs[number].name]);
      }
    }
    return from;
  }

  /** The names of the fewest inputs that lead to a state. */
  way(state) {
    this.from ??= this.firstWays();
    const names = [];
    for (let here = state; here !== 0; ) {
      const [before, name] = this.from.get(here);
      names.unshift(name);
      here = before;
    }
    return names;
  }

  /** A state of a configuration: with the settings of the beginning, if there is one. */
  stateOf(configuration) {
    const first = String(this.states[0].settings);
    const those = [...this.states.keys()].filter((state) => this.states[state].name === configuration);
    return those.find((state) => String(this.states[state].settings) === first) ?? those[0];
  }
}

/** The name of a cell of the table of all configurations and calls. */
export const cellOf = (machine, state, entry) => `${machine.nameOf(state)} ${entry.name}`;
