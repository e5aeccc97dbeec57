/** What was done to one memory: steps that can be taken back, taken again, and written into an address. */

import { counted } from "./element.js";
import { ENDED, cellOf } from "./machine.js";
import { freshMemory, perform } from "./memory.js";

/** A trace: names of inputs, and for each the action that is to fail, or 0. @typedef {{name: string, fail: number}[]} Calls */

export class Session {
  /**
   * @param {Machine} machine
   * @param {() => void} changed called after each change
   */
  constructor(machine, changed) {
    Object.assign(this, { machine, changed: () => {}, taken: new Set() });
    this.begin([]);
    this.changed = changed;
  }

  /** Start anew with a trace, of which some steps are taken and the others lie ahead. */
  begin(calls, { at = 0, title = "", note = "", unclear = [] } = {}) {
    Object.assign(this, { records: [], title, note, unclear: [...unclear] });
    for (const { name, fail } of calls) {
      const record = this.record(name, fail, this.records);
      this.records.push(record);
      if (record.fail !== fail) this.unclear.push(`${name}!${fail}: it has ${counted(record.actions.length, "action")}, so none fails`);
    }
    this.go(at);
  }

  record(name, fail, records) {
    const memory = records.at(-1)?.after ?? freshMemory(this.machine);
    return perform(this.machine, memory, this.machine.entries.get(name), records.length + 1, fail);
  }

  /** The step that was taken last, or nothing. */
  get last() {
    return this.records[this.cursor - 1];
  }

  /** The memory as it is now. */
  get memory() {
    return this.last?.after ?? freshMemory(this.machine);
  }

  /** What an input would do now. */
  preview(entry) {
    return perform(this.machine, this.memory, entry, this.cursor + 1);
  }

  /** Do something; what lay ahead is gone. */
  take(name, fail = 0) {
    const records = this.records.slice(0, this.cursor);
    records.push(this.record(name, fail, records));
    Object.assign(this, { records, title: "", note: "", unclear: [] });
    this.go(this.cursor + 1);
  }

  /** Stand behind some step; 0 is the fresh memory. */
  go(cursor) {
    this.cursor = Math.max(0, Math.min(cursor, this.records.length));
    for (const { entry, before, fail } of this.records.slice(0, this.cursor)) {
      if (!fail && before.state !== ENDED) this.taken.add(cellOf(this.machine, before.state, entry));
    }
    this.changed();
  }

  /** The inputs that are not refused now, without those that end the memory. */
  possible() {
    return [...this.machine.entries.values()].filter((entry) => !entry.ends && !this.preview(entry).reason);
  }

  /** The address of all this. */
  get address() {
    const calls = this.records.map(({ entry, fail }) => encodeURIComponent(entry.name) + (fail ? `!${fail}` : ""));
    const parts = [`machine=${encodeURIComponent(this.machine.name)}`];
    if (this.cursor !== this.records.length) parts.push(`at=${this.cursor}`);
    if (calls.length) parts.push(`calls=${calls.join(",")}`);
    return `#${parts.join("&")}`;
  }

  /** Go where an address says.  What cannot be understood in it is said, and the rest is used. */
  follow(address) {
    const { machine } = this;
    const said = new Map();
    const unclear = [];
    for (const part of address.replace(/^#/, "").split("&").filter(Boolean)) {
      const [key, value] = [part.split("=")[0], part.split("=").slice(1).join("=")];
      const setting = machine.settings.find(({ name }) => name === key);
      if (said.has(key)) unclear.push(`${key}: it is said twice, and the first counts`);
      else if (["machine", "edition", "at", "calls"].includes(key) || setting) said.set(key, value);
      else unclear.push(`${key}: there is no such thing to say; there are machine, at and calls`);
    }
    for (const name of ["machine", "edition"].map((key) => decoded(said.get(key) ?? machine.name))) {
      if (name !== machine.name) unclear.push(`${name}: this page is about ${machine.name}`);
    }
    const settings = machine.settings.filter(({ name, start }) => said.has(name) && said.get(name) !== start);
    const first = settings.map(({ name }) => `set_${name}(${decoded(said.get(name))})`);
    const asked = [...first, ...(said.get("calls") ?? "").split(",").filter(Boolean)];
    const words = asked.slice(0, machine.most);
    if (words.length < asked.length) unclear.push(`calls: there are ${asked.length}, and all after ${words.length} are left out`);
    const calls = words.map((word) => readCall(machine, word, unclear));
    let at = words.length;
    if (/^\d+$/.test(said.get("at") ?? "0") && Number(said.get("at") ?? at) <= at) at = Number(said.get("at") ?? at);
    else unclear.push(`at=${said.get("at")}: it has to be a number from 0 to ${at}, so it is ${at}`);
    this.begin(calls.filter(Boolean), { at: calls.slice(0, at).filter(Boolean).length, unclear });
  }
}

/** A call of an address, with the number of the action that is to fail; null if there is no such call. */
function readCall({ entries, name: machine }, word, unclear) {
  const [, name, fail] = decoded(word).match(/^(.+?)(?:!([^!]*))?$/s);
  if (!entries.has(name)) {
    unclear.push(`${decoded(word)}: ${machine} has no such call, so it is left out`);
    return null;
  }
  if (/^\d*$/.test(fail ?? "")) return { name, fail: Number(fail ?? 0) };
  unclear.push(`${name}!${fail}: behind ! has to be the number of an action, so none fails`);
  return { name, fail: 0 };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
