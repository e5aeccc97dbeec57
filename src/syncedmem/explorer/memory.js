/** One memory: the state of the machine, and what each side holds as far as the actions say. */

import { ENDED } from "./machine.js";

/** What a side can hold besides the number of the step in which somebody wrote it. */
export const NOTHING = null;
const UNDEFINED = "undefined bytes";
const ZEROS = "zeros";
const START = "what was there at first";

/** What is in the side of an action afterwards, by what the action does. */
const LEAVES = {
  allocate: () => UNDEFINED,
  zero: () => ZEROS,
  copy: (sides, { source }) => sides[source],
  adopt: (_, __, number) => number,
  free: () => NOTHING,
};
const WRITES = ["write", "overwrite"];

/** A memory to which nothing was done. A side is there at first if it is fresh then. */
export function freshMemory(machine) {
  const { fresh } = machine.head(0);
  const sides = Object.fromEntries(machine.sides.map((side) => [side, fresh.includes(side) ? START : NOTHING]));
  return { state: 0, sides, rest: [] };
}

/**
 * Do something to a memory.
 *
 * @param {number} number of the step
 * @param {number} fail the number of the action that fails, from 1; 0 for none
 * @returns {object} the record of the step: what was done, and the memory before and after it
 */
export function perform(machine, memory, entry, number, fail = 0) {
  const { state } = memory;
  const step = state === ENDED ? afterEnd(memory, entry) : machine.step(state, entry);
  const before = { entry, number, before: memory, fail: 0, after: memory, row: null, actions: [], reason: "", written: "" };
  if (!step) return { ...before, reason: `there is no row for ${entry.name} in ${machine.head(state).name}` };
  const { row, actions, reason } = step;
  const record = { ...before, row, actions, reason };
  if (reason) return record;
  record.fail = fail <= actions.length ? fail : 0;
  // A failed call is undone.  The end is not: what is freed stays freed, and the rest can be freed later.
  if (record.fail && !(entry.ends && record.fail > 1)) return record;
  const done = record.fail ? actions.slice(0, record.fail - 1) : actions;
  const sides = { ...memory.sides };
  for (const action of done) if (LEAVES[action.does]) sides[action.side] = LEAVES[action.does](sides, action, number);
  if (WRITES.includes(entry.does)) sides[(record.written = entry.side)] = number;
  record.after = { state: step.after, sides, rest: record.fail ? actions.slice(record.fail - 1) : [] };
  return record;
}

function afterEnd({ rest }, entry) {
  return { row: null, after: ENDED, actions: entry.ends ? rest : [], reason: entry.ends ? "" : "the memory is released" };
}

/** The actions of a step that were done. */
const doneOf = ({ actions, fail, after, before }) => (!fail ? actions : after === before ? [] : actions.slice(0, fail - 1));

/** Every block that was allocated or handed in by some steps, and what became of it. */
export function blocksOf(records) {
  const blocks = [];
  const held = {};
  for (const record of records) {
    if (record.reason) continue;
    for (const { does, side } of doneOf(record)) {
      if (does === "free" && held[side]) held[side].end = `freed in step ${record.number}`;
      if (does === "free") delete held[side];
      if (does !== "allocate" && does !== "adopt") continue;
      if (held[side] && !held[side].ours) held[side].end = `let go in step ${record.number}`;
      held[side] = { side, ours: does === "allocate", born: record.number, end: "" };
      blocks.push(held[side]);
    }
    if (record.after.state === ENDED) for (const block of Object.values(held)) if (!block.ours) block.end ||= `let go in step ${record.number}`;
  }
  return blocks;
}
