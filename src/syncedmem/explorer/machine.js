/**
 * The machine, interpreted from its exported document.
 *
 * No head, call, guard, action or flag is named here: which row answers a call, what its actions do to the facts and
 * what is refused all come out of the document, so the page cannot disagree with the model.
 */

export class Machine {
  /**
   * @param {object} document what `syncedmem diagram --format json` writes
   * @param {string} edition
   * @param {string} mode the name of the mode that a fresh memory starts in
   * @param {object} words what people call sides and actions; where it says nothing, they go by their names
   */
  constructor(document, edition, mode, words = {}) {
    this.words = words;
    this.edition = document.editions.find(({ name }) => name === edition);
    this.bits = new Map(document.facts.map(({ name, bit }) => [name, bit]));
    this.modes = new Map(document.modes.map((it) => [it.name, it]));
    this.calls = new Map(document.calls.map((it) => [it.name, it]));
    this.actions = new Map(document.actions.map((it) => [it.name, it]));
    this.guards = new Map(document.guards.map(({ name, fact }) => [name, fact && this.bits.get(fact)]));
    this.tracked = this.mask(this.edition.facts);
    this.sides = [...new Set(document.actions.map(({ side }) => side))].map((name) => this.side(name, document));
    this.rows = Map.groupBy(this.edition.transitions, ({ call, source }) => `${call}@${source}`);
    this.entries = new Map(this.alphabet().map((entry) => [entry.name, entry]));
    const [first] = this.edition.configurations;
    this.start = { head: first.head, facts: this.mask(first.facts), mode: this.modes.get(mode), released: false };
  }

  /** Everything that can be done: the calls, those with NULL, changes of mode, and the release. */
  alphabet() {
    const inputs = this.edition.inputs.map((input) => ({ ...input, mode: null }));
    const asked = new Set(inputs.map(({ call }) => call));
    const rest = this.edition.calls.filter((call) => !asked.has(call));
    return [
      ...inputs,
      ...[...this.modes.values()].map((mode) => ({ name: `set_mode(${mode.name})`, call: null, data: true, mode })),
      ...rest.map((call) => ({ name: call, call, data: true, mode: null })),
    ];
  }

  /** The inputs after which there is still a memory. */
  lively() {
    return [...this.entries.values()].filter(({ call, mode }) => mode || this.calls.get(call).role !== "release");
  }

  /** A side, and the facts about it: what adopting sets is its pointer, and what adopting clears its ownership. */
  side(name, document) {
    const adopt = document.actions.find(({ verb, side }) => verb === "adopt" && side === name);
    return { name, pointer: this.mask(adopt.sets), own: this.mask(adopt.clears) };
  }

  /** What people call a side. */
  titleOf(side) {
    return this.words.sides?.[side] ?? side;
  }

  mask(names) {
    return names.reduce((bits, name) => bits | this.bits.get(name), 0);
  }

  /** The names of the flags that objects of this edition have, and whether each is set. */
  flags(state) {
    return this.edition.flags.map((name) => ({ name: name.toLowerCase(), set: Boolean(state.facts & this.bits.get(name)) }));
  }

  holds(guard, facts, data) {
    const bit = this.guards.get(guard);
    return bit === null ? data : Boolean(facts & bit);
  }

  /** The one row that answers a call. */
  row(state, { call, data }) {
    const enabled = (this.rows.get(`${call}@${state.head}`) ?? []).filter(
      ({ conditions, unless }) =>
        conditions.every((guard) => this.holds(guard, state.facts, data)) &&
        !unless.some((guard) => this.holds(guard, state.facts, data)),
    );
    if (enabled.length !== 1) throw new Error(`${enabled.length} rows answer ${call} in ${state.head}`);
    return enabled[0];
  }

  /** What an input does: the row, its actions, and the state afterwards. */
  step(state, entry) {
    if (entry.mode) return { row: null, actions: [], after: { ...state, mode: entry.mode } };
    const row = this.row(state, entry);
    if (row.refusal) return { row, actions: [], after: state };
    const actions = row.actions.map((name) => this.actions.get(name));
    const facts = actions.reduce((found, action) => this.effect(found, action, state.mode), state.facts) & this.tracked;
    return { row, actions, after: { ...state, facts, head: row.dest ?? state.head, released: row.dest === null } };
  }

  /** Every configuration with every input that asks something of the memory. */
  cells() {
    const asked = this.lively().filter(({ mode }) => !mode);
    return this.edition.configurations.flatMap((before) => {
      const state = { ...this.start, head: before.head, facts: this.mask(before.facts) };
      return asked.map((entry) => ({ before, entry, ...this.step(state, entry) }));
    });
  }

  effect(facts, action, mode) {
    const byMode = this.mask(action.by_mode);
    const [sets, clears] = mode.value ? [byMode, 0] : [0, byMode];
    return (facts | this.mask(action.sets) | sets) & ~(this.mask(action.clears) | clears);
  }

  /** Whether there is no pointer on a side, an owned one, or an external one. */
  ownership({ facts }, side) {
    if (!(facts & side.pointer)) return "null";
    return facts & side.own ? "owned" : "external";
  }

  /** The configuration of a state, as the model names it. */
  configuration(state) {
    return this.edition.configurations.find(
      (it) => it.head === state.head && this.sides.every((side) => it[side.name] === this.ownership(state, side)),
    );
  }

  /** The side whose bytes a copy takes: the one that is fresh, of those that it does not go to. */
  sourceOf(state, { side: to }) {
    const others = this.sides.filter(({ name }) => name !== to);
    return (others.find((side) => this.fresh(state, side)) ?? others[0]).name;
  }

  /** The names of the sides that are fresh; of a released memory, none. */
  freshSides(state) {
    return state.released ? [] : this.sides.filter((side) => this.fresh(state, side)).map(({ name }) => name);
  }

  /** A side is fresh where reading it has nothing to do. */
  fresh(state, side) {
    const reads = [...this.calls.values()].find((call) => call.role === "read" && call.side === side.name);
    const { row, actions, after } = this.step(state, this.entries.get(reads.name));
    return !row.refusal && !actions.length && after.head === state.head;
  }
}

/** What tells states apart. */
export const keyOf = ({ head, facts, mode, released }) => `${head}/${facts}/${mode.name}/${released}`;

/** Every state that some inputs reach, breadth first, with a shortest word to each: a map from key to both. */
export function reach(machine, alphabet) {
  const found = new Map([[keyOf(machine.start), { state: machine.start, word: [] }]]);
  for (const { state, word } of found.values()) {
    for (const entry of alphabet) {
      const { after } = machine.step(state, entry);
      if (!found.has(keyOf(after))) found.set(keyOf(after), { state: after, word: [...word, entry] });
    }
  }
  return found;
}

/** The name of a cell of the matrix. */
export const cellOf = (machine, state, entry) => `${machine.configuration(state).name} ${entry.name}`;
