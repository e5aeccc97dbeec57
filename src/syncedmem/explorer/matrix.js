/** Every configuration with every call: what it does, where one stands, and which cells somebody has taken. */

import { at, breakable, listed, make } from "./element.js";
import { ENDED, cellOf } from "./machine.js";

/** Make the table; a cell goes to a configuration by a shortest way, and makes the call. */
export function drawMatrix(place, machine, visit) {
  const asked = [...machine.entries.values()].filter(({ setting, ends }) => !setting && !ends);
  const rows = machine.configurations.map((name) => {
    const state = machine.stateOf(name);
    const cells = asked.map((entry) => make("td", {}, drawCell(machine, state, entry, visit)));
    return make("tr", { "data-row": name }, make("th.mono", { scope: "row", title: machine.head(state).name }, name), cells);
  });
  const head = asked.map(({ name }) => make("th", { scope: "col" }, breakable(name)));
  const table = make(
    "table.matrix", { "aria-label": "Configurations and calls", keydown: move },
    make("thead", {}, make("tr", {}, make("td"), head)),
    make("tbody", {}, rows),
  );
  place.replaceChildren(table);
  table.querySelector("button")?.setAttribute("tabindex", 0);
}

function drawCell(machine, state, entry, visit) {
  const step = machine.step(state, entry);
  if (!step) return null;
  const there = machine.nameOf(step.after);
  const codes = step.actions.map(({ code, name }) => code || name).join(" ");
  const does = step.reason ? "refused" : `${codes} ${there === machine.nameOf(state) ? "=" : `→ ${there}`}`.trim();
  const says = step.reason || `${listed(step.actions.map(({ name }) => name), "nothing to do")}, then ${there}`;
  const look = { type: "button", tabindex: -1, "data-cell": cellOf(machine, state, entry), title: says };
  look["aria-label"] = `${entry.name} in ${machine.nameOf(state)}: ${says}`;
  return make(`button.cell${step.reason ? ".refused" : ""}`, { ...look, click: () => visit(state, entry.name) }, does);
}

const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** One cell at a time is a tab stop; arrows go from cell to cell. */
function move(event) {
  const step = ARROWS[event.key];
  const cell = event.target.closest("td");
  if (!step || !cell) return;
  event.preventDefault();
  const rows = [...cell.closest("tbody").rows];
  const wanted = rows[rows.indexOf(cell.parentElement) + step[0]]?.cells[cell.cellIndex + step[1]]?.querySelector("button");
  if (!wanted) return;
  event.target.tabIndex = -1;
  wanted.tabIndex = 0;
  wanted.focus();
}

/** The cells that some traces take, each from a fresh memory. */
export function cellsOf(machine, words) {
  const cells = new Set();
  for (const word of words) {
    let state = 0;
    for (const entry of word.map((name) => machine.entries.get(name))) {
      if (!entry.setting && !entry.ends) cells.add(cellOf(machine, state, entry));
      state = machine.step(state, entry)?.after ?? state;
      if (state === ENDED) break;
    }
  }
  return cells;
}

/** Mark where one stands, the last step, and the cells that were taken, or those that some tests miss. */
export function markMatrix(place, { machine, memory, last, taken }, tested) {
  const missing = tested && at("missed").getAttribute("aria-pressed") === "true";
  const here = machine.nameOf(memory.state);
  for (const row of place.querySelectorAll("tr[data-row]")) row.classList.toggle("here", row.dataset.row === here);
  const done = last && last.before.state !== ENDED ? cellOf(machine, last.before.state, last.entry) : "";
  let count = 0;
  const cells = place.querySelectorAll("[data-cell]");
  for (const { classList, dataset } of cells) {
    const marked = missing ? !tested.has(dataset.cell) : taken.has(dataset.cell);
    count += marked;
    classList.toggle("marked", marked && !missing);
    classList.toggle("missed", marked && Boolean(missing));
    classList.toggle("last", dataset.cell === done);
  }
  at("cells-note").textContent = `${count} of ${cells.length} cells ${missing ? "are missed by the tests" : "were taken on this page"}.`;
}
