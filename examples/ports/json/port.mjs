// A mirrored memory in JavaScript that speaks the protocol of ports; its device is memory of Node too.

import { createInterface } from "node:readline";

const OTHER = { cpu: "gpu", gpu: "cpu" };
const HEAD = { cpu: "HEAD_AT_CPU", gpu: "HEAD_AT_GPU" };
const NEW = { head: "UNINITIALIZED", own_cpu_data: false, own_gpu_data: false, cpu_malloc_use_cuda: false };
const memories = new Map(); // a memory is what it answers, with its two sides
const buffers = new Map();
let failing = {}; // the number of the action that has to fail, and whether only half-way

Buffer.prototype.toJSON = function () {
  return this.toString("hex");
};

function act(it, action, target, content = Buffer.alloc(0)) {
  const failed = --failing.left === 0;
  it.actions.push({ action, failed });
  const length = failed ? (failing.half ? content.length >> 1 : 0) : content.length;
  if (target) content.copy(target, 0, 0, length);
  if (failed) throw new Error(`${action} was told to fail`);
}

function free(it, side) {
  if (!it[`own_${side}_data`]) return;
  act(it, `free_${side}`);
  it[`own_${side}_data`] = false;
  it[side] = null;
}

// Make a side fresh; if an action fails, undo those before it.
function bring(it, side, mode, copy) {
  const allocates = it[side] === null;
  const first = it.head === "UNINITIALIZED";
  if (allocates) act(it, `allocate_${side}`);
  const here = it[side] ?? Buffer.alloc(it.size, 0xee);
  try {
    act(it, first ? `zero_${side}` : copy, here, first ? Buffer.alloc(it.size) : it[OTHER[side]]);
  } catch (error) {
    if (allocates) act(it, `free_${side}`);
    throw error;
  }
  it[side] = here;
  it[`own_${side}_data`] ||= allocates;
  if (allocates && side === "cpu") it.cpu_malloc_use_cuda = mode === "GPU";
  it.head = first ? HEAD[side] : "SYNCED";
}

function call(it, side, { op, mode, buffer, fail = 0, partial = false }) {
  failing = { left: fail, half: partial };
  if (buffer === null || (op === "async_gpu_push" && it.head !== "HEAD_AT_CPU")) throw new Error(`${op} at ${it.head}`);
  if (op === "release") {
    free(it, "cpu");
    free(it, "gpu");
  } else if (op.startsWith("set")) {
    free(it, side);
    it[side] = buffers.get(buffer).subarray(0, it.size);
    it.head = HEAD[side];
  } else if (it.head !== HEAD[side] && it.head !== "SYNCED") {
    bring(it, side, mode, op === "async_gpu_push" ? "copy_to_gpu_async" : `copy_to_${side}`);
  }
  if (op.startsWith("mutable")) it.head = HEAD[side];
}

function answer(request) {
  const { op, memory, size, buffer, side = op.includes("gpu") ? "gpu" : "cpu" } = request;
  const bytes = Buffer.from(request.bytes ?? "", "hex");
  if (op === "hello") return { version: 1, name: "port.mjs", level: "L3" };
  if (op === "buffer") buffers.set(buffer, bytes);
  if (op === "write_buffer") bytes.copy(buffers.get(buffer));
  if (op === "read_buffer") return { bytes: buffers.get(buffer) };
  if (op === "new") memories.set(memory, { ...NEW, size, cpu: null, gpu: null });
  if (memory === undefined) return {};
  const it = Object.assign(memories.get(memory), { actions: [], refused: null });
  try {
    if (op === "write_view") bytes.copy(it[side]);
    else if (request.mode) call(it, side, request);
  } catch (error) {
    it.refused = error.message;
  }
  return { ...it, view: it[side] };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  console.log(JSON.stringify({ id: request.id, ...answer(request) }));
}
