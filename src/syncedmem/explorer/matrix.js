/** Every configuration with every call: what it does, where one stands, and which cells somebody has taken. */

import { make } from "./element.js";

/** `HA` allocates on the host, `h2d` copies to the device. */
const codeOf = ({ code, name }) => code || name;

/** The name of a cell. */
export const cellName = (configuration, entry) => `${configuration.name} ${entry.name}`;

/** Make the matrix of an edition. */
export function drawMatrix(place, legend, session) {
  const { machine } = session;
  const cells = machine.cells();
  const columns = new Map(cells.map(({ entry }) => [entry.name, entry]));
  const head = [...columns.keys()].map((name) => make("th", { scope: "col" }, name.replaceAll("_", "_\u200b")));
  const rows = [...Map.groupBy(cells, ({ before }) => before)].map(([before, row]) =>
    make(
      "tr",
      { "data-row": before.name },
      make("th.mono", { scope: "row", title: before.head }, before.name),
      row.map((cell) => drawCell(session, cell)),
    ),
  );
  const table = make(
    "table.matrix",
    { "aria-label": `Edition ${machine.edition.name}: configurations and calls`, keydown: move },
    make("thead", {}, make("tr", {}, make("td"), head)),
    make("tbody", {}, rows),
  );
  place.replaceChildren(table);
  table.querySelector("button").tabIndex = 0;
  const used = new Set(cells.flatMap(({ actions }) => actions));
  const codes = [...machine.actions.values()].filter((it) => used.has(it)).map((it) => `${codeOf(it)} ${it.name}`);
  legend.textContent = `${codes.join(", ")}. A configuration is a head and, for host and device, - no pointer, o an owned one, e an external one. A cell takes you there, and makes the call.`;
}

function drawCell(session, { before, entry, row, actions, after }) {
  const there = session.machine.configuration(after).name;
  const does = [actions.map(codeOf).join(" "), there === before.name ? "=" : `→ ${there}`].filter(Boolean).join(" ");
  const says = row.reason ?? `${row.actions.join(", ") || "nothing to do"}, then ${there}`;
  return make(
    "td",
    {},
    make(
      `button.cell${row.refusal ? ".refused" : ""}`,
      {
        type: "button",
        tabindex: -1,
        "data-cell": cellName(before, entry),
        "aria-label": `${entry.name} in ${before.name}: ${says}`,
        click: () => session.visit(before.name, entry.name),
      },
      row.refusal ? "refused" : does,
    ),
  );
}

const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** One cell at a time is a tab stop; arrows go from cell to cell. */
function move(event) {
  const step = ARROWS[event.key];
  const cell = event.target.closest("td");
  if (!step || !cell) return;
  event.preventDefault();
  event.stopPropagation();
  const row = cell.parentElement;
  const rows = [...row.parentElement.rows];
  const wanted = rows[rows.indexOf(row) + step[0]]?.cells[cell.cellIndex + step[1]]?.querySelector("button");
  if (!wanted) return;
  event.target.tabIndex = -1;
  wanted.tabIndex = 0;
  wanted.focus();
}

/** Mark where one stands, what was done last, and the cells that are in a set, or those that are not. */
export function markMatrix(place, session, { marked, missed }) {
  const { machine, memory, last } = session;
  const here = memory.state.released ? null : machine.configuration(memory.state).name;
  for (const row of place.querySelectorAll("tr[data-row]")) row.classList.toggle("here", row.dataset.row === here);
  const done = last && !last.entry.mode && !last.before.state.released ? `${machine.configuration(last.before.state).name} ${last.entry.name}` : null;
  for (const cell of place.querySelectorAll("[data-cell]")) {
    const within = marked.has(cell.dataset.cell) !== missed;
    cell.classList.toggle("marked", within);
    cell.classList.toggle("missed", within && missed);
    cell.classList.toggle("last", cell.dataset.cell === done);
  }
}
