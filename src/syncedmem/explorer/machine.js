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
   */
  constructor(document, edition, mode) {
    this.edition = document.editions.find(({ name }) => name === edition);
    this.bits = new Map(this.edition.facts.map(({ name }, k) => [name, 1 << k]));
    this.modes = modesOf(this.edition);
    this.calls = new Map(this.edition.calls.map((it) => [it.name, it]));
    this.actions = new Map(this.edition.actions.map((it) => [it.name, it]));
    this.sides = this.edition.sides.map((name) => this.side(name));
    this.rows = Map.groupBy(this.edition.transitions, ({ call, source }) => `${call}@${source}`);
    this.entries = new Map(this.alphabet().map((entry) => [entry.name, entry]));
    this.configured = this.edition.configurations.reduce((bits, { facts }) => bits | this.mask(facts), 0);
    const [first] = this.edition.configurations;
    this.start = { head: first.head, facts: this.mask(first.facts), mode: this.modes.get(mode), released: false };
  }

  /** Everything that can be done: the calls, those with NULL, changes of mode, and the release. */
  alphabet() {
    const inputs = this.edition.inputs.map((input) => ({ ...input, mode: null }));
    const asked = new Set(inputs.map(({ call }) => call));
    const rest = [...this.calls.keys()].filter((call) => !asked.has(call));
    return [
      ...inputs,
      ...[...this.modes.values()].map((mode) => ({ name: `set_mode(${mode.name})`, call: null, data: true, mode })),
      ...rest.map((call) => ({ name: call, call, data: true, mode: null })),
    ];
  }

  /** The inputs after which there is still a memory. */
  lively() {
    return [...this.entries.values()].filter(({ call, mode }) => mode || this.calls.get(call).does !== "release");
  }

  /** A side, and the facts about it: its pointer, and whether it is owned. */
  side(name) {
    const about = (meaning) => this.edition.facts.filter(({ means, side }) => means === meaning && side === name);
    const bits = (meaning) => this.mask(about(meaning).map((fact) => fact.name));
    return { name, pointer: bits("pointer"), own: bits("owned") };
  }

  mask(names) {
    return names.reduce((bits, name) => bits | this.bits.get(name), 0);
  }

  /** The names of the flags that objects of this edition have, and whether each is set. */
  flags(state) {
    return this.edition.facts.filter(({ flag }) => flag).map(({ name }) => ({ name, set: Boolean(state.facts & this.bits.get(name)) }));
  }

  holds(name, facts, { call, data }) {
    return name === this.calls.get(call).takes ? data : Boolean(facts & this.bits.get(name));
  }

  /** The one row that answers a call. */
  row(state, entry) {
    const { call } = entry;
    const enabled = (this.rows.get(`${call}@${state.head}`) ?? []).filter(
      ({ conditions, unless }) =>
        conditions.every((name) => this.holds(name, state.facts, entry)) &&
        !unless.some((name) => this.holds(name, state.facts, entry)),
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
    const facts = actions.reduce((found, action) => this.effect(found, action, state.mode), state.facts);
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
    const byMode = Map.groupBy(action.by_setting, ({ value }) => value === mode.name);
    const [sets, clears] = [true, false].map((is) => this.mask((byMode.get(is) ?? []).map(({ fact }) => fact)));
    return (facts | this.mask(action.sets) | sets) & ~(this.mask(action.clears) | clears);
  }

  /** Whether there is no pointer on a side, an owned one, or an external one. */
  ownership({ facts }, side) {
    if (!(facts & side.pointer)) return "null";
    return facts & side.own ? "owned" : "external";
  }

  /** The configuration of a state, as the model names it. */
  configuration(state) {
    const facts = state.facts & this.configured;
    return this.edition.configurations.find((it) => it.head === state.head && this.mask(it.facts) === facts);
  }

  /** Whether a side has the newest bytes. */
  fresh(state, side) {
    return this.edition.heads.find(({ name }) => name === state.head).fresh.includes(side.name);
  }
}

/** The values of the mode, the only setting, with their numbers. */
export const modesOf = ({ settings }) => new Map(settings[0].values.map((name, value) => [name, { name, value }]));

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
