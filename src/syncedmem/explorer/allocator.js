/** The replay of a finding about an allocator: its program, step by step, with the blocks that are live. */

import { bytesOf, make } from "./element.js";

/**
 * Show a program.
 *
 * @param {HTMLElement} place
 * @param {object} operations the names of the numbers that each operation takes
 * @param {Choice} choice
 */
export function drawProgram(place, operations, { title, note, program }) {
  let at = 0;
  const go = (to) => {
    at = Math.max(0, Math.min(to, program.length));
    draw();
  };
  const back = make("button", { type: "button", click: () => go(at - 1) }, "Back");
  const next = make("button", { type: "button", click: () => go(at + 1) }, "Next step");
  const list = make("ol.program", {});
  const blocks = make("p", { role: "status" });
  place.replaceChildren(
    make("h3", {}, title),
    make("p.refusal", {}, note),
    make("div.buttons", {}, back, next),
    list,
    blocks,
  );
  place.hidden = false;
  go(program.length);

  function draw() {
    back.disabled = at === 0;
    next.disabled = at === program.length;
    list.replaceChildren(
      ...program.map((step, k) =>
        make(`li${k < at ? "" : ".ahead"}${k === program.length - 1 ? ".failed" : ""}`, { "aria-current": k + 1 === at ? "step" : null },
          make("span.mono", {}, spelled(operations, step))),
      ),
    );
    const live = [...liveAfter(operations, program.slice(0, at))];
    const sizes = live.map(([block, size]) => `block ${block} (${bytesOf(size)})`);
    blocks.textContent = `After ${at} of ${program.length}: ${sizes.length ? `live are ${sizes.join(", ")}` : "nothing is live"}.`;
  }
}

const named = (operations, [operation, ...numbers]) =>
  Object.fromEntries((operations[operation] ?? []).map((name, k) => [name, numbers[k] ?? 0]));

const spelled = (operations, step) =>
  `${step[0]}(${Object.entries(named(operations, step)).slice(0, step.length - 1).map(([name, value]) => `${name}=${value}`).join(", ")})`;

/** The blocks that are live after some steps: what takes a block and a size makes one, and `free` ends it. */
function liveAfter(operations, program) {
  const live = new Map();
  for (const step of program) {
    const { block, size } = named(operations, step);
    if (step[0] === "free") live.delete(block);
    else if (step[0] !== "free_wrong_size" && block !== undefined && size !== undefined) live.set(block, size);
  }
  return live;
}
