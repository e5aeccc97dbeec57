/** A button for every call: what it would do now, or why it would be refused. */

import { at, make } from "./element.js";

const ROLES = { read: "Read", write: "Write", adopt: "Hand in memory", push: "Push ahead", release: "End", mode: "Caffe's mode" };
const CALL_KEYS = [..."1234567890qwertyuiop"];

/** The keys of the inputs, in the order of the buttons. */
export const keysOf = (machine) => new Map(ordered(machine).map((entry, k) => [CALL_KEYS[k], entry]));

const roleOf = (machine, entry) => machine.calls.get(entry.call)?.does ?? "mode";

const ordered = (machine) =>
  Object.keys(ROLES).flatMap((role) => [...machine.entries.values()].filter((entry) => roleOf(machine, entry) === role));

export const callText = ({ name, call }) => (call === null || name.includes("(") ? name : `${name}()`);

/** Make the buttons of an edition; they stay where they are, and only what they say changes. */
export function drawCalls(place, session) {
  const { machine } = session;
  const keys = new Map([...keysOf(machine)].map(([key, { name }]) => [name, key]));
  const groups = Object.entries(ROLES).map(([role, title]) => {
    const entries = ordered(machine).filter((entry) => roleOf(machine, entry) === role);
    if (!entries.length) return null;
    const buttons = entries.map((entry) => drawCall(session, entry, keys.get(entry.name)));
    return make("fieldset", { class: `group ${role}` }, make("legend", {}, title), make("div.group-calls", {}, buttons));
  });
  place.replaceChildren(...groups.filter(Boolean));
}

function drawCall(session, entry, key) {
  return make(
    "div.call",
    { "data-input": entry.name },
    make(
      "button.do",
      { type: "button", "data-do": entry.name, "aria-keyshortcuts": key, click: () => session.take(entry.name) },
      make("span.name.mono", {}, callText(entry), make("kbd", { "aria-hidden": "true" }, key)),
      make("span.effect", {}),
    ),
    make("div.fails", { role: "group", "aria-label": `Let an action of ${entry.name} fail` }),
  );
}

/** Say at each button what it would do now. */
export function updateCalls(place, session) {
  const failing = at("failing").checked;
  const { last } = session;
  for (const box of place.querySelectorAll(".call")) {
    const entry = session.machine.entries.get(box.dataset.input);
    const would = session.preview(entry);
    const nothing = !would.refusal && !would.actions.length;
    const button = box.querySelector(".do");
    if (last?.entry === entry) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
    box.classList.toggle("refused", Boolean(would.refusal));
    box.classList.toggle("idle", nothing && would.after.state.head === would.before.state.head);
    box.querySelector(".effect").replaceChildren(...effect(session, entry, would));
    const fails = would.actions.map(({ name }, k) =>
      make(
        "button.fail",
        { type: "button", "data-fail": k + 1, "aria-label": `${entry.name}, and ${name} fails`, click: () => session.take(entry.name, k + 1) },
        make("span", { "aria-hidden": "true" }, "✗ "),
        name,
      ),
    );
    box.querySelector(".fails").replaceChildren(...(failing ? fails : []));
    box.querySelector(".fails").hidden = !failing || !fails.length;
  }
}

function effect({ memory }, { mode }, would) {
  if (would.refusal) return [make("strong", {}, "refused: "), reasonOf(would)];
  if (mode) return [mode === memory.state.mode ? "as it is now" : `host memory from then on: ${mode.value ? "page-locked" : "pageable"}`];
  const { head, released } = would.after.state;
  const moves = released ? "the end" : head === would.before.state.head ? "" : head;
  const steps = would.actions.map(({ name }) => name).join(", ");
  if (!steps && !moves) return ["nothing to do"];
  return [steps, steps && moves ? " " : "", moves ? make("span.to", {}, `→ ${moves}`) : null].filter(Boolean);
}

/** Why a call is refused, without its own name in front, which the reader has just read. */
export const reasonOf = ({ entry, refusal }) => refusal.replace(new RegExp(`^${entry.call}(:| is| cannot)? ?`), (_, rest) => (rest === ":" || !rest ? "" : `${rest.trim()} `));
