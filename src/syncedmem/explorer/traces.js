/**
 * Traces out of files: reports of `syncedmem verify`, programs of the kit, replays of `syncedmem fuzz`, vectors, names.
 *
 * Reading one gives a list of choices; each is a trace for the session, or the program of an allocator.
 */

/** @typedef {{title: string, note: string, trace?: object, program?: object[]}} Choice */

/**
 * What a text holds.
 *
 * @param {string} text
 * @param {object} usual what a trace is taken to say where it does not
 * @param {Session} session
 * @returns {Choice[]}
 * @throws {Error} with one sentence, if it holds nothing of the kind
 */
export function readTraces(text, usual, session) {
  refuseMore(text.length, session.material.most.bytes, "bytes");
  const whole = text.replace(/^\ufeff/, "");
  const data = asJson(whole);
  const found = data === null ? readLines(whole, usual, session) : [data].flat().flatMap((it) => readData(it, usual, session));
  if (!found.length) throw new Error("There is no trace in it.");
  return found;
}

/** @throws {Error} if there is more of something than the page can take */
export function refuseMore(count, most, what) {
  if (count > most) throw new Error(`It has ${count.toLocaleString("en")} ${what}; the most is ${most.toLocaleString("en")}.`);
}

/**
 * Whether the page can play a choice.
 *
 * @throws {Error} with one sentence, if it cannot
 */
export function checkChoice({ trace, program }, most) {
  refuseMore((trace?.calls ?? program).length, most.steps, "steps");
  if (!trace) return;
  if (!(Number.isInteger(trace.size) && trace.size >= 0)) throw new Error(`The size is no number of bytes: ${trace.size}.`);
  refuseMore(trace.size, most.size, "bytes of memory");
}

/**
 * A document, or one a line; null where it is neither.
 *
 * @throws {Error} if it begins as one does
 */
function asJson(text) {
  let problem = null;
  for (const read of [JSON.parse, (lines) => lines.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line))]) {
    try {
      const data = read(text);
      if (data !== null && typeof data === "object") return data;
    } catch (error) {
      problem ??= error; // Not this form: the next one is tried.
    }
  }
  if (!/^\s*[{[]/.test(text)) return null;
  const [, line, column] = problem.message.match(/line (\d+) column (\d+)/) ?? [];
  throw new Error(`This is broken JSON${line ? `: line ${line}, column ${column}` : ""}.`);
}

function readData(data, usual, session) {
  if (Array.isArray(data?.devices)) return readReport(data, usual, session);
  if (Array.isArray(data?.findings)) return data.findings.map((it) => readProgram({ target: data.target, ...it }));
  if (Array.isArray(data?.program)) return [readProgram(data)];
  if (Array.isArray(data?.steps)) return [readVector(data, usual, session)];
  if (data?.header || data?.manifest) return [];
  throw new Error("It is neither a report, nor a replay, nor a vector.");
}

/** The violations of a report of `syncedmem verify`. */
function readReport({ devices }, usual, session) {
  const found = devices.flatMap(({ name, edition, violations = [] }) =>
    violations.map(({ requirement, message, reproducer }) => ({
      title: `${name} breaks ${requirement}`,
      note: message,
      trace: readReproducer(reproducer, { ...usual, edition }, session),
    })),
  );
  if (!found.length) throw new Error("The report has no violations: everything passed.");
  return found;
}

/** The replay of a finding about an allocator. */
function readProgram(data) {
  const property = data.property ?? data.property_id;
  const program = data.program.flatMap(unrolled);
  return { title: `${data.target ?? "an allocator"} breaks ${property}`, note: data.message ?? "", program };
}

/** Operations whose first number is a block; the second number of a copy is one too. */
const ON_BLOCKS = new Set(
  ["allocate", "free", "check", "calloc", "resize", "copy", "free_again", "free_wrong_size", "resize_too_much", "work"],
);

/** The steps of a loop, `["repeat", times, steps, stride]`: each time adds the stride to the numbers of all blocks. */
function unrolled(step) {
  if (step[0] !== "repeat") return [step];
  const [, times, body, stride = 0] = step;
  const moved = (time) => ([operation, ...numbers]) => [
    operation,
    ...numbers.map((it, k) => (ON_BLOCKS.has(operation) && (k === 0 || (k === 1 && operation === "copy")) ? it + time * stride : it)),
  ];
  return Array.from({ length: times }, (_, time) => body.map(moved(time))).flat();
}

function readVector(data, usual, session) {
  if (data.shapes) throw new Error("It is a vector of blobs, and the page plays memories.");
  const size = data.sizes?.[0] ?? data.size ?? usual.size;
  const trace = { ...usual, ...pick(data, ["edition", "mode"]), size };
  const machine = session.machineOf(trace.edition, trace.mode);
  const armed = data.steps.filter(isInput).map((step) => ({ name: nameOf(machine, step), armed: step.fail ?? 0 }));
  const left = data.steps.length - armed.length;
  const note = left ? `Steps that are not the machine's are left out: ${left}.` : "";
  const unknown = armed.find(({ name }) => !machine.entries.has(name));
  if (unknown) throw new Error(`The edition ${trace.edition} has no call ${unknown.name}.`);
  return { title: `vector ${data.id ?? ""}`.trim(), note, trace: { ...trace, calls: toActions(machine, armed) } };
}

/** A buffer of the caller, a memory's own pointer, a look, and other memories than the first are not the machine's. */
const isInput = (step) =>
  typeof step === "string" || !(["write_buffer", "look"].includes(step.call) || step.argument?.own || step.memory);

const pick = (data, keys) => Object.fromEntries(keys.filter((key) => data[key] !== undefined).map((key) => [key, data[key]]));

/** The input of a step of a vector: a name, or an object with a call and its argument (docs/vectors.md). */
function nameOf(machine, step) {
  if (typeof step === "string") return step;
  const fits = [...machine.entries.values()].find(({ call, data, mode }) =>
    step.call === "set_mode" ? mode?.name === step.argument : call === step.call && data === (step.argument !== null),
  );
  return fits?.name ?? step.call;
}

/** A program of the kit, or names one a line. */
function readLines(text, usual, session) {
  if (/\.make\(|memory\w*\s*=|memory\w*\./.test(text)) {
    const last = text.trim().split("\n").at(-1);
    const note = last.startsWith("#") ? last.slice(1).trim() : "";
    return [{ title: "a program", note, trace: readReproducer(text, usual, session) }];
  }
  const { entries } = session.machineOf(usual.edition, usual.mode);
  const names = text.split(/[\s,;]+/).filter(Boolean).map((word) => word.replace(/\(\)$/, ""));
  const unknown = names.find((name) => !entries.has(name.split("!")[0]));
  if (unknown) throw new Error(`The edition ${usual.edition} has no call ${unknown}.`);
  const calls = names.map((name) => ({ name: name.split("!")[0], fail: Number(name.split("!")[1] ?? 0) }));
  return names.length ? [{ title: "a list of calls", note: "", trace: { ...usual, calls } }] : [];
}

/**
 * The calls of a program of the kit: those of the memory that the last one is made to.
 *
 * What it does to look, or to write as a caller would, is not a call.  An allocator call that is armed to fail is the
 * action that makes it; adopting makes none.
 */
function readReproducer(reproducer, usual, session) {
  const machine = session.machineOf(usual.edition, usual.mode);
  const lines = reproducer.split("\n");
  const sizes = new Map(lines.flatMap((line) => [...line.matchAll(/^(\w+) = [\w.]*(?:make|SyncedMemory)\((\d+)/g)].map(([, name, size]) => [name, Number(size)])));
  const made = lines.map((line) => callOf(machine, line)).filter(Boolean);
  const { memory } = made.findLast((it) => it.memory) ?? {};
  const calls = made.filter((it) => !it.memory || it.memory === memory).map(({ name, armed }) => ({ name, armed }));
  const size = sizes.get(memory) ?? usual.size;
  return { ...usual, size, calls: toActions(machine, calls) };
}

function callOf(machine, line) {
  const mode = line.match(/^set_mode\(Mode\.(\w+)\)/);
  if (mode) return { name: `set_mode(${mode[1]})`, armed: 0 };
  const match = line.match(/(?:^|[\s=])(\w+)\.(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*$/);
  if (!match || line.startsWith("#")) return null;
  const [, memory, method, argument] = match;
  const fits = [...machine.entries.values()].find(({ call, data }) =>
    (call === method || (method === "close" && machine.calls.get(call)?.does === "release")) && data === (argument !== "None"),
  );
  const armed = Number(line.match(/moves\.armed\((\d+)/)?.[1] ?? 0);
  return fits ? { memory, name: fits.name, armed } : null;
}

/** From the number of an allocator call to the number of an action. */
export function toActions(machine, calls) {
  let state = machine.start;
  return calls.map(({ name, armed }) => {
    const { actions, after } = state.released ? { actions: [], after: state } : machine.step(state, machine.entries.get(name));
    const moves = actions.map(({ verb }, k) => (verb === "adopt" ? 0 : k + 1)).filter(Boolean);
    const fail = armed ? (moves[armed - 1] ?? 0) : 0;
    if (!fail) state = after;
    return { name, fail };
  });
}
