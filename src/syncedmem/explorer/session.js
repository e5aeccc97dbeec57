/** What was done to one memory: steps that can be taken back, taken again, and written into an address. */

import { counted } from "./element.js";
import { Machine, cellOf, modesOf, reach } from "./machine.js";
import { FAIL, readAddress, writtenAddress } from "./address.js";
import { freshMemory, perform } from "./memory.js";

/** A trace: what to do to a fresh memory, as names, and which action of a step is to fail. */
/** @typedef {{edition: string, size: number, mode: string, calls: {name: string, fail: number}[], at?: number, unclear?: string[]}} Trace */

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
  begin({ edition, size, mode, calls, at = 0, title = null, note = null, unclear = [] }) {
    const machine = this.machineOf(edition, mode);
    const unknown = calls.find(({ name }) => !machine.entries.has(name));
    if (unknown) throw new Error(`${edition} has no call ${unknown.name}`);
    const records = [];
    let memory = freshMemory(machine, size);
    for (const { name, fail } of calls) {
      records.push(perform(machine, memory, machine.entries.get(name), fail));
      memory = records.at(-1).after;
    }
    const without = records.flatMap((record, k) => (record.fail === calls[k].fail ? [] : [withoutAction(record, calls[k])]));
    Object.assign(this, { machine, size, mode, records, title, note, unclear: [...unclear, ...without], cursor: 0 });
    this.start = freshMemory(machine, size);
    this.go(at);
  }

  /** @throws {Error} if there is no such edition or mode */
  machineOf(edition, mode) {
    const { machine } = this.material;
    if (!machine.editions.some(({ name }) => name === edition)) throw new Error(`there is no edition ${edition}`);
    if (!modesOf(machine.editions[0]).has(mode)) throw new Error(`there is no mode ${mode}`);
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
    this.unclear = [];
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
    return writtenAddress(this);
  }

  /** The trace of an address, as far as it can be understood. */
  traceOf(address) {
    return readAddress(address, this.material, (edition, mode) => this.machineOf(edition, mode));
  }
}

/** A step that was to fail in an action that it does not have. */
const withoutAction = ({ entry, fail, actions }, asked) =>
  `${entry.name}${FAIL}${asked.fail}: it has ${counted(actions.length, "action")}, so ${fail ? `number ${fail}` : "none"} fails`;
