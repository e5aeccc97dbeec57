/** The steps that were taken and those that lie ahead, what the last one did, and the blocks. */

import { bytesOf, counted, fill, laidOut, make } from "./element.js";
import { callText, reasonOf } from "./calls.js";
import { titleOf } from "./sides.js";
import { live, unchanged } from "./memory.js";

const SOURCE = "https://github.com/BVLC/caffe/blob/9b8915401/";

/** A step in one line. */
export function summary(record) {
  const { refusal, fail, actions, after, before, entry } = record;
  if (refusal) return `refused: ${reasonOf(record)}`;
  if (fail) return `${actions[fail - 1].name} failed`;
  const done = actions.map(({ name }) => name).join(", ");
  if (entry.mode) return "";
  if (after.state.released) return done || "nothing to free";
  return done || (after.state.head === before.state.head ? "nothing to do" : "nothing to copy");
}

export function drawSteps(place, session) {
  if (listed !== session.records) listSteps(place, session);
  for (const entry of place.querySelectorAll(".entry.ahead, [aria-current]")) {
    entry.classList.remove("ahead");
    entry.removeAttribute("aria-current");
  }
  const entries = [...place.querySelectorAll(".entry")];
  for (const entry of entries.slice(session.cursor + 1)) entry.classList.add("ahead");
  const current = entries[session.cursor];
  current.setAttribute("aria-current", "step");
  laidOut(() => (place.scrollTop = Math.max(0, current.offsetTop - place.clientHeight / 2)));
}

/** The steps that are in the list: it is made anew only when there are others. */
let listed = null;

function listSteps(place, session) {
  const focused = place.contains(document.activeElement) ? Number(document.activeElement.dataset.to) : null;
  const { machine, records } = session;
  const name = ({ released, ...state }) => (released ? "–" : machine.configuration(state).name);
  const start = listStep(session, 0, [make("span.soft", {}, "a fresh memory")], "", name(machine.start));
  const rest = records.map((record, k) => {
    const what = [make("span.mono", {}, callText(record.entry)), " ", make("span.soft", {}, summary(record))];
    const look = `${record.refusal ? ".refused" : ""}${record.fail ? ".failed" : ""}`;
    return listStep(session, k + 1, what, look, name(record.after.state));
  });
  place.replaceChildren(start, ...rest);
  listed = records;
  if (focused !== null) place.querySelector(`[data-to="${Math.min(focused, records.length)}"]`).focus();
}

const listStep = (session, number, what, look, where) =>
  make(
    "li",
    {},
    make(
      `button.entry${look}`,
      { type: "button", "data-to": number, click: () => session.go(number) },
      make("span.number", {}, String(number)),
      make("span.what", {}, what),
      make("span.where.mono", {}, where),
    ),
  );

/** What the last step did, action by action, and where Caffe does it. */
export function drawStep(place, session) {
  const { last, machine, memory } = session;
  if (!last) {
    place.replaceChildren(make("p.soft", {}, "A fresh memory: call something. Nothing is allocated before somebody asks."));
    return;
  }
  const { state } = memory;
  fill(
    place,
    make(
      "p.headline",
      {},
      make("span.number", {}, `Step ${session.cursor}`), " ",
      make("strong.mono", {}, callText(last.entry)), " ",
      make("span.path.mono", {}, path(machine, last)),
    ),
    last.refusal && make("p.refusal", {}, make("strong", {}, "Refused: "), `${last.refusal}. Nothing has changed; Caffe would have ended the process.`),
    last.fail ? drawFailure(last) : null,
    last.actions.length > 0 && make("ol.actions", {}, last.actions.map(drawAction)),
    !last.refusal && !last.actions.length && make("p.soft", {}, explainNothing(last, state)),
    last.written && make("p.soft", {}, `Then the caller writes ${last.written.value.toString(16).padStart(2, "0")} into every byte of the ${titleOf(last.written.side).toLowerCase()} side.`),
    drawSource(last.row),
  );
}

function path(machine, { before, after }) {
  const name = ({ state }) => (state.released ? "released" : `${state.head} (${machine.configuration(state).name})`);
  return name(before) === name(after) ? name(before) : `${name(before)} → ${name(after)}`;
}

function explainNothing({ entry, before, after }, { head }) {
  if (entry.mode) return before.state.mode === after.state.mode ? "The mode is what it was." : "Caffe's mode: read when host memory is allocated, and at no other time.";
  if (after.state.released) return "The memory owns nothing, so there is nothing to free.";
  return before.state.head === head ? "Nothing to do: the side asked for is fresh." : "Nothing to copy: the side asked for is fresh, and the other one is stale from now on.";
}

function drawAction({ name, action, outcome, bytes }) {
  const done = outcome === "done";
  const queued = done && action.queued ? ", queued" : "";
  return make(
    `li.${action.side}.${outcome.replace(" ", "-")}`,
    { "data-action": name, "data-outcome": outcome, "data-bytes": bytes },
    make("span.mono", {}, name), " ",
    make("span.soft", {}, done ? `${bytesOf(bytes)}${queued}` : outcome),
  );
}

/** After a failure: that nothing has changed is not said but compared. */
function drawFailure(record) {
  const same = unchanged(record.before, record.after);
  const failed = record.actions[record.fail - 1].name;
  return make(
    "p.failure",
    { "data-unchanged": String(same) },
    make("strong", {}, `${failed} failed. `),
    same
      ? "Compared with the step before: head, flags, pointers, bytes and blocks are as they were. The next call works."
      : "What is freed cannot be unfreed: the memory is released, and another release frees what is left.",
  );
}

function drawSource(row) {
  if (!row) return null;
  const places = row.sources.map(({ file, first, last }) => {
    const lines = first === last ? `line ${first}` : `lines ${first} to ${last}`;
    const href = `${SOURCE}${file}#L${first}-L${last}`;
    return make("a.place", { href, target: "_blank", rel: "noreferrer" }, make("span.mono", {}, file.split("/").at(-1)), ` ${lines}`);
  });
  return make("p.source", { "data-row": row.id }, make("span.soft", {}, "Source: "), places);
}

export function drawBlocks(place, balance, { memory }) {
  const { blocks } = memory;
  const left = live(memory);
  const bytes = left.reduce((sum, block) => sum + block.bytes, 0);
  balance.textContent = `${counted(left.length, "block")} of ours live, ${bytesOf(bytes)}; ${memory.allocated} allocated, ${memory.allocated - left.length} freed`;
  balance.dataset.live = left.length;
  if (!blocks.length) {
    place.replaceChildren(make("p.soft", {}, "Nothing was allocated or handed in yet."));
    return;
  }
  const rows = blocks.map((block) => {
    const ours = block.kind !== "handed in";
    const state = block.freed !== null ? `freed in step ${block.freed}` : ours ? "live" : Object.values(memory.sides).some((it) => it.block === block.id) ? "in use" : "let go";
    return make(
      `tr${block.freed !== null ? ".freed" : ""}`,
      { "data-block": block.id, "data-live": String(ours && block.freed === null) },
      make("th.mono", { scope: "row" }, `#${block.id}`),
      make("td", {}, make(`span.dot.${block.side}`, { "aria-hidden": "true" }), titleOf(block.side)),
      make("td", {}, block.kind),
      make("td.right", {}, String(block.bytes)),
      make("td", {}, block.owner),
      make("td.right", {}, String(block.born)),
      make("td", {}, state),
    );
  });
  const head = [["block", ""], ["side", ""], ["kind", ""], ["bytes", ".right"], ["belongs to", ""], ["since step", ".right"], ["state", ""]];
  place.replaceChildren(
    make("table", {}, make("thead", {}, make("tr", {}, head.map(([text, look]) => make(`th${look}`, { scope: "col" }, text)))), make("tbody", {}, rows)),
  );
}
