// A mirrored memory in JavaScript that speaks the protocol of ports; its device is a buffer of Node too.

import { createInterface } from "node:readline";

const OTHER = { cpu: "gpu", gpu: "cpu" };
const HEAD = { cpu: "HEAD_AT_CPU", gpu: "HEAD_AT_GPU" };
const memories = new Map();
const buffers = new Map();

class Memory {
  constructor(size) {
    Object.assign(this, { size, head: "UNINITIALIZED", pinned: false, actions: [] });
    this.data = { cpu: null, gpu: null };
    this.own = { cpu: false, gpu: false };
  }

  // Zero or copy; the kit may want this to fail, also half-way.
  act(action, target, content = Buffer.alloc(0)) {
    const failed = --this.fail === 0;
    this.actions.push({ action, failed });
    const length = failed ? (this.partial ? content.length >> 1 : 0) : content.length;
    if (target) content.copy(target, 0, 0, length);
    if (failed) throw new Error(`${action} was told to fail`);
  }

  free(side) {
    if (!this.own[side]) return;
    this.act(`free_${side}`);
    this.data[side] = null;
    this.own[side] = false;
  }

  // Make a side fresh; if an action fails, undo those before it.
  bring(side, mode, copy) {
    const fresh = this.data[side] === null;
    const first = this.head === "UNINITIALIZED";
    if (fresh) this.act(`allocate_${side}`);
    const here = fresh ? Buffer.alloc(this.size, 0xee) : this.data[side];
    try {
      if (first) this.act(`zero_${side}`, here, Buffer.alloc(this.size));
      else this.act(copy, here, this.data[OTHER[side]].subarray(0, this.size));
    } catch (error) {
      if (fresh) this.act(`free_${side}`);
      throw error;
    }
    this.data[side] = here;
    this.own[side] ||= fresh;
    if (fresh && side === "cpu") this.pinned = mode === "GPU";
    this.head = first ? HEAD[side] : "SYNCED";
  }

  call({ op, mode, buffer, fail = 0, partial = false }) {
    Object.assign(this, { actions: [], fail, partial });
    const side = op.includes("gpu") ? "gpu" : "cpu";
    if (op === "release") {
      this.free("cpu");
      this.free("gpu");
    } else if (op.startsWith("set")) {
      if (buffer === null) throw new Error("there is no buffer");
      this.free(side);
      this.data[side] = buffers.get(buffer);
      this.head = HEAD[side];
    } else if (op === "async_gpu_push" && this.head !== "HEAD_AT_CPU") {
      throw new Error(`the head is ${this.head}`);
    } else {
      const copy = op === "async_gpu_push" ? "copy_to_gpu_async" : `copy_to_${side}`;
      if (this.head !== HEAD[side] && this.head !== "SYNCED") this.bring(side, mode, copy);
      if (op.startsWith("mutable")) this.head = HEAD[side];
    }
  }

  state(op) {
    const shown = (side) => this.data[side] && this.data[side].toString("hex", 0, this.size);
    const seen = { head: this.head, size: this.size, cpu: shown("cpu"), gpu: shown("gpu") };
    Object.assign(seen, { own_cpu_data: this.own.cpu, own_gpu_data: this.own.gpu, cpu_malloc_use_cuda: this.pinned });
    if (op === "state" || op === "write_view") return seen;
    return { ...seen, view: shown(op.includes("gpu") ? "gpu" : "cpu"), actions: this.actions };
  }
}

function answer(request) {
  const { op, memory, size, side, buffer } = request;
  const bytes = Buffer.from(request.bytes ?? "", "hex");
  if (op === "hello") return { version: 1, name: "port.mjs", level: "L3" };
  if (op === "synchronize") return {};
  if (op === "buffer") return buffers.set(buffer, bytes) && {};
  if (op === "write_buffer") return bytes.copy(buffers.get(buffer)), {};
  if (op === "read_buffer") return { bytes: buffers.get(buffer).toString("hex") };
  if (op === "new") memories.set(memory, new Memory(size));
  const it = memories.get(memory);
  try {
    if (op === "write_view") bytes.copy(it.data[side]);
    else if (op !== "new" && op !== "state") it.call(request);
  } catch (error) {
    return { refused: error.message, ...it.state(op) };
  }
  return it.state(op);
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  console.log(JSON.stringify({ id: request.id, ...answer(request) }));
}
