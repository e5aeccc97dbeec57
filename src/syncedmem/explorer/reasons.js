/**
 * Why a step did what it did, out of the document: the guards that chose its row, the heads, the effects of its actions.
 *
 * A reason is said only where it is true of the memory before the step.  What no rule here explains has the reason that
 * its row says so.
 */

import { capital } from "./element.js";

/** @typedef {{what: string, because: string, kind: string, action: string|null, done: boolean}} Reason */

/** A reason as a sentence. */
export const sentenceOf = ({ what, because }) => `${capital(what)}, because ${because}.`;

/**
 * Why a step did what it did: a reason for each action, then for what was left out, and for what became stale.
 *
 * @param {Machine} machine
 * @param {object} record what `perform` returned
 * @returns {Reason[]} none for a step that was refused or that failed, which has words of its own
 */
export function reasonsOf(machine, record) {
  if (record.refusal || record.fail) return [];
  if (record.entry.mode) return [modeReason(machine)];
  const done = record.actions.map(({ action }) => doneReason(machine, record, action));
  const left = leftOut(machine, record).map((action) => leftReason(machine, record, action));
  const found = [...done, ...left, ...staleReasons(machine, record)];
  return found.length ? found : [nothingReason(machine, record)];
}

const wordOf = (machine, action) => machine.words.done?.[action.name] ?? `${action.name} is done`;

const sideOf = (machine, name) => machine.sides.find((side) => side.name === name);

const rowSays = ({ row, before }) => ["row", `the row of ${row?.call ?? "the end"} in ${before.state.head} says so`];

function doneReason(machine, record, action) {
  const rule = { undefined: allocatedBecause, zero: zeroedBecause, "other side": copiedBecause, argument: adoptedBecause, none: freedBecause };
  const [kind, because] = rule[action.contents]?.(machine, record, action) ?? rowSays(record);
  return { what: `${wordOf(machine, action)}${action.asynchronous ? " (queued)" : ""}`, because, kind, action: action.name, done: true };
}

function allocatedBecause(machine, { before: { state } }, action) {
  if (machine.ownership(state, sideOf(machine, action.side)) !== "null") return null;
  return ["no memory", `the ${machine.titleOf(action.side)} has no memory yet`];
}

function zeroedBecause(machine, { before: { state } }) {
  return machine.freshSides(state).length ? null : ["no data", "there is nothing to copy yet"];
}

/** What was done last to the side that a copy comes from, with the number of the step. */
function copiedBecause(machine, { before }, action) {
  const from = machine.sourceOf(before.state, action);
  const fresh = machine.freshSides(before.state);
  if (!fresh.includes(from) || fresh.includes(action.side)) return null;
  const title = machine.titleOf(from);
  const { deed, side, step } = before.sides[from].origin ?? {};
  const last = { write: `the ${title} wrote last`, zero: `the ${title} was zeroed last`, argument: `memory on the ${title} was handed in last` };
  if (side === from) return [deed, `${last[deed]} (step ${step})`];
  return ["only fresh", `only the ${title} is fresh`];
}

function adoptedBecause(machine, { entry }) {
  return machine.calls.get(entry.call).takes_data ? ["handed in", "the caller hands this memory in"] : null;
}

function freedBecause(machine, { before: { state } }, action) {
  if (machine.ownership(state, sideOf(machine, action.side)) !== "owned") return null;
  return ["ours", "that memory is ours"];
}

/** Actions of the rows that would have answered the same call in the same head, if the guards had been others. */
function leftOut(machine, { row, actions }) {
  if (!row) return [];
  const done = new Set(actions.map(({ name }) => name));
  const others = machine.rows.get(`${row.call}@${row.source}`).filter(({ refusal }) => !refusal);
  return [...new Set(others.flatMap((other) => other.actions))].filter((name) => !done.has(name)).map((name) => machine.actions.get(name));
}

function leftReason(machine, record, action) {
  const ownership = machine.ownership(record.before.state, sideOf(machine, action.side));
  const title = machine.titleOf(action.side);
  const reasons = {
    null: ["nothing there", `the ${title} has no memory`],
    owned: ["there already", `the ${title} has memory already`],
    external: action.contents === "none" ? ["not ours", "that memory is the caller's"] : ["there already", `the ${title} has memory already`],
  };
  const fits = ownership === "owned" ? action.contents !== "none" : ownership === "external" || action.contents === "none";
  const [kind, because] = fits ? reasons[ownership] : rowSays(record);
  return { what: `not ${wordOf(machine, action)}`, because, kind, action: action.name, done: false };
}

/** A reason that is not about an action. */
const beside = (what, kind, because) => ({ what, because, kind, action: null, done: false });

/** Sides that were fresh and are not any more, where there is still a memory. */
function staleReasons(machine, { entry, before, after }) {
  if (after.state.released) return [];
  const { role, side } = machine.calls.get(entry.call);
  const title = machine.titleOf(side);
  const because = { write: `the caller may write on the ${title} now`, adopt: `the ${title} has other memory now` }[role];
  const fresh = machine.freshSides(after.state);
  const stale = machine.freshSides(before.state).filter((name) => name !== side && !fresh.includes(name));
  return stale.map((name) =>
    beside(`the ${machine.titleOf(name)} is stale from now on`, "stale", because ?? `the head is ${after.state.head}`),
  );
}

function nothingReason(machine, record) {
  const { entry, before, after } = record;
  const { side } = machine.calls.get(entry.call);
  if (machine.freshSides(before.state).includes(side)) return beside("nothing to do", "fresh", `the ${machine.titleOf(side)} is fresh`);
  if (after.state.released) return beside("nothing to free", "owns nothing", "the memory owns nothing");
  return beside("nothing to do", ...rowSays(record));
}

/** The mode is for the actions that have effects by it. */
function modeReason(machine) {
  const readers = [...machine.actions.values()].filter(({ by_mode: byMode }) => byMode.length).map(({ name }) => name);
  return beside("nothing happens yet", "mode", readers.length ? `only ${readers.join(", ")} reads the mode` : "nothing reads the mode");
}
