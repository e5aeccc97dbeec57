/**
 * A memory with bytes in it, and the blocks that were allocated for it or handed in.
 *
 * A snapshot is never changed: a step makes a new one, so undoing is forgetting, and a call that fails has nothing to
 * put back.  What an action does to bytes is what the document says of its contents.
 */

/** @typedef {{id: number, side: string, kind: string, bytes: number, owner: string, born: number, freed: number|null}} Block */

const OURS = "the memory";
const CALLERS = "the caller";

/** A memory that nobody has used yet. */
export function freshMemory(machine, size) {
  return {
    state: machine.start,
    size,
    number: 0,
    sides: Object.fromEntries(machine.sides.map(({ name }) => [name, { block: null, bytes: null }])),
    blocks: [],
    moved: Object.fromEntries(machine.sides.map(({ name }) => [name, 0])),
    allocated: 0,
    owed: [],
  };
}

/** The value that the caller writes in a step: its number, and never zero, which is what fresh memory is filled with. */
export const valueOf = (number) => ((number - 1) % 255) + 1;

/**
 * Do one thing to a memory.
 *
 * @param {number} fail which of its actions fails, from one; zero for none
 * @returns a record: what happened, the snapshot before, and the snapshot after
 */
export function perform(machine, before, entry, fail = 0) {
  const numbered = { ...before, number: before.number + 1 };
  if (before.state.released) return performReleased(machine, before, numbered, entry, fail);
  const { row, actions, after } = machine.step(before.state, entry);
  const record = { entry, row, before, actions: [], fail: fail <= actions.length ? fail : 0, written: null };
  if (row?.refusal) return { ...record, refusal: row.reason, after: numbered };
  if (record.fail) return failed(record, actions, numbered);
  const memory = actions.reduce((found, action) => carryOut(found, action, before), numbered);
  record.actions = actions.map((action) => outcome(action, "done", before.size));
  const does = machine.calls.get(entry.call)?.does;
  const side = machine.calls.get(entry.call)?.side;
  const written = does === "write" ? { side, value: valueOf(numbered.number) } : null;
  return { ...record, written, after: { ...(written ? filled(memory, written) : memory), state: after } };
}

function outcome(action, what, size) {
  return { name: action.name, action, outcome: what, bytes: what === "done" ? size : 0 };
}

/**
 * A call of which an action fails: what came before it is undone, and nothing has changed.
 *
 * What is freed cannot be unfreed.  A call that goes on after a free prepares all of the rest first, so its free is
 * not reached; only a release frees twice, and is over when its second free fails.
 */
function failed(record, actions, numbered) {
  const at = record.fail - 1;
  const left = actions.slice(at);
  const gone = actions.slice(0, at).filter(({ does }) => does === "free");
  const released = gone.length > 0 && left.every(({ does }) => does === "free");
  record.actions = actions.map((action, k) => {
    if (k === at) return outcome(action, "failed", 0);
    if (k > at) return outcome(action, "not reached", 0);
    return outcome(action, released ? "done" : action.does === "free" ? "not reached" : "undone", 0);
  });
  if (!released) return { ...record, after: numbered };
  const memory = gone.reduce((found, action) => carryOut(found, action, record.before), numbered);
  return { ...record, after: { ...memory, owed: left, state: { ...memory.state, released: true } } };
}

/** After the release there is nothing left to ask; but what a failed release still owes can be freed by another one. */
function performReleased(machine, before, numbered, entry, fail) {
  const record = { entry, row: null, before, actions: [], fail: 0, written: null };
  const again = machine.calls.get(entry.call)?.does === "release" && before.owed.length;
  if (!again) return { ...record, refusal: `${entry.name}: the memory is released`, after: numbered };
  if (fail) {
    return { ...record, fail: 1, actions: before.owed.map((it) => outcome(it, "failed", 0)), after: numbered };
  }
  const after = before.owed.reduce((found, action) => carryOut(found, action, before), { ...numbered, owed: [] });
  return { ...record, actions: before.owed.map((action) => outcome(action, "done", before.size)), after };
}

/** A memory after one action. */
function carryOut(memory, action, before) {
  const done = { "other side": copied, argument: adopted, undefined: allocated, zero: zeroed, none: freed }[action.contents];
  return done(memory, action, before);
}

const withSide = (memory, name, change) => ({
  ...memory,
  sides: { ...memory.sides, [name]: { ...memory.sides[name], ...change } },
});

const withBlock = (memory, block, bytes) => ({
  ...withSide(memory, block.side, { block: block.id, bytes }),
  blocks: [...memory.blocks, block],
});

function allocated(memory, action, before) {
  const { side } = action;
  // Zero bytes are not allocated: there is no block.
  if (!memory.size) return withSide(memory, side, { block: null, bytes: [] });
  const kind = action.by_setting.length ? (before.state.mode.value ? "page-locked" : "pageable") : "device";
  const block = { ...blank(memory, side), kind, owner: OURS };
  return { ...withBlock(memory, block, Array(memory.size).fill(null)), allocated: memory.allocated + 1 };
}

const adopted = (memory, { side }) =>
  withBlock(memory, { ...blank(memory, side), kind: "handed in", owner: CALLERS }, constant(memory, valueOf(memory.number)));

const blank = (memory, side) => ({
  id: memory.blocks.length + 1,
  side,
  bytes: memory.size,
  born: memory.number,
  freed: null,
});

const constant = (memory, value) => Array(memory.size).fill(value);

const zeroed = (memory, { side }) => withSide(memory, side, { bytes: constant(memory, 0) });

function copied(memory, { side }) {
  const other = Object.keys(memory.sides).find((name) => name !== side);
  const moved = { ...memory.moved, [side]: memory.moved[side] + memory.size };
  return { ...withSide(memory, side, { bytes: [...memory.sides[other].bytes] }), moved };
}

function freed(memory, { side }) {
  const { block } = memory.sides[side];
  const blocks = memory.blocks.map((it) => (it.id === block ? { ...it, freed: memory.number } : it));
  return { ...withSide(memory, side, { block: null, bytes: null }), blocks };
}

/** A memory into one side of which the caller has written. */
const filled = (memory, { side, value }) => withSide(memory, side, { bytes: constant(memory, value) });

/** The blocks that are ours and not freed yet. */
export const live = (memory) => memory.blocks.filter(({ owner, freed: at }) => owner === OURS && at === null);

/** Whether two snapshots are the same memory: all but the count of steps. */
export const unchanged = (a, b) =>
  JSON.stringify({ ...a, number: 0 }) === JSON.stringify({ ...b, number: 0 });
