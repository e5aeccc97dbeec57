/** Both sides of the memory, with their bytes, and what the last step did to them. */

import { bytesOf, make } from "./element.js";

const TITLES = { cpu: ["Host", "CPU"], gpu: ["Device", "GPU"] };
const OWNERSHIP = { null: "no memory", owned: "ours to free", external: "handed in, never freed by us" };
const MOST = 64;

export const titleOf = (side) => TITLES[side][0];

/** A sentence that says which side is fresh. */
export function verdict({ machine, memory }) {
  const { state } = memory;
  if (state.released) return memory.owed.length ? "Released, but a block could not be freed." : "Released: nothing is left.";
  const fresh = machine.sides.filter((side) => machine.fresh(state, side)).map(({ name }) => titleOf(name).toLowerCase());
  if (!fresh.length) return "Nothing is allocated yet.";
  return fresh.length === machine.sides.length ? "Both sides are fresh." : `The ${fresh[0]} side is fresh.`;
}

export function drawSides(place, session) {
  const { machine, memory, last } = session;
  const [first, second] = machine.sides;
  place.replaceChildren(drawSide(session, first), drawFlow(machine, last), drawSide(session, second));
  place.dataset.head = memory.state.head;
}

function drawSide({ machine, memory, last }, side) {
  const { state, sides, blocks } = memory;
  const { block, bytes } = sides[side.name];
  const ownership = state.released ? "null" : machine.ownership(state, side);
  const fresh = !state.released && machine.fresh(state, side);
  const there = bytes !== null;
  const found = blocks.find(({ id }) => id === block);
  const queued = last?.actions.some(({ action, outcome }) => action.queued && action.side === side.name && outcome === "done");
  const [title, short] = TITLES[side.name];
  return make(
    `article.side.${side.name}`,
    { "aria-label": `${title} side`, "data-side": side.name, "data-ownership": ownership, "data-fresh": String(fresh) },
    make(
      "header",
      {},
      make("h3", {}, title, " ", make("span.soft", {}, short)),
      there && make(`span.badge.${fresh ? "fresh" : "stale"}`, {}, fresh ? "fresh" : "stale"),
      queued && make("span.badge.queued", { title: "The copy is queued on the caller's stream." }, "push queued"),
    ),
    drawBytes(memory, bytes, short),
    make(
      "dl.about",
      {},
      make("div", {}, make("dt", {}, "Pointer"), make("dd.mono", {}, found ? `#${found.id} · ${found.kind}` : there ? "of no bytes" : "NULL")),
      make("div", {}, make("dt", {}, "Memory"), make("dd", { "data-of": "ownership" }, OWNERSHIP[ownership])),
      flagsOf(machine, state, side),
    ),
  );
}

/** The flags of Caffe's that are about a side: those that an action on it sets, clears or freezes. */
function flagsOf(machine, state, side) {
  const about = new Set(
    [...machine.actions.values()]
      .filter((action) => action.side === side.name)
      .flatMap(({ sets, clears, by_setting: bySetting }) => [...sets, ...clears, ...bySetting.map(({ fact }) => fact)]),
  );
  return machine.flags(state).filter(({ name }) => about.has(name)).map(({ name, set }) =>
    make(
      "div",
      {},
      make("dt", {}, make("code", {}, breakable(name))),
      make("dd", { "data-flag": name, "data-set": String(set) }, make(`span.lamp${set ? ".on" : ""}`, { "aria-hidden": "true" }), String(set)),
    ),
  );
}

function drawBytes(memory, bytes, short) {
  if (bytes === null) return make("p.bytes.empty", {}, "nothing allocated");
  if (!bytes.length) return make("p.bytes.empty", {}, "zero bytes: nothing to allocate");
  const shown = bytes.slice(0, MOST).map((value) =>
    make("span", { class: value === null ? "byte unset" : value ? "byte" : "byte zero", style: value ? `--hue:${hueOf(value)}` : null }, value === null ? "··" : hex(value)),
  );
  return make("div.bytes.mono", { role: "img", "aria-label": `${short} bytes: ${spoken(bytes)}`, "data-bytes": bytes.map((it) => (it === null ? "··" : hex(it))).join("") }, shown);
}

/** A name that may be broken after its underscores. */
const breakable = (name) => name.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]);

/** Neighbouring numbers are far apart on the wheel, so that each write looks different. */
const hueOf = (value) => Math.round((value * 137.5 + 170) % 360);

const hex = (value) => value.toString(16).padStart(2, "0");

function spoken(bytes) {
  const [first] = bytes;
  const all = bytes.every((value) => value === first);
  const value = first === null ? "undefined" : first === 0 ? "zero" : `the value ${first}`;
  return all ? `${bytes.length} times ${value}` : bytes.map((it) => (it === null ? "undefined" : hex(it))).join(" ");
}

/** Between the sides: the copy of the last step, if it made one. */
function drawFlow(machine, last) {
  const copy = last?.actions.find(({ action, outcome }) => action.contents === "other side" && outcome === "done");
  if (!copy) return make("div.flow", { "aria-hidden": "true" }, make("span.wire"));
  const right = machine.sides.at(-1).name === copy.action.side;
  return make(
    `div.flow.copy.${copy.action.side}`,
    { "data-copied-to": copy.action.side },
    make("span.amount", {}, `${copy.bytes} B`),
    make("span.wire", { "aria-hidden": "true" }, right ? "⟶" : "⟵"),
    make("span.unseen", {}, `${bytesOf(copy.bytes)} copied to the ${titleOf(copy.action.side).toLowerCase()}`),
    copy.action.queued && make("span.amount", {}, "queued"),
  );
}
