/** Every configuration with every call: what it does, where one stands, and which cells were taken. */

/** Make the table; a cell goes to a configuration by a shortest way, and makes the call. */
function drawMatrix(place, machine, visit) {
  const asked = machine.entries.filter(({ setting, ends }) => !setting && !ends);
  const rows = machine.configurations.map((name) => {
    const state = machine.stateOf(name);
    const cells = asked.map((entry) => make("td", {}, drawCell(machine, state, entry, visit)));
    return make("tr", { "data-row": name }, make("th.mono", { scope: "row", title: machine.head(state).name }, name), cells);
  });
  const head = asked.map(({ name }) => make("th", { scope: "col" }, breakable(name)));
  const look = { "aria-label": "Configurations and calls", keydown: move };
  fill(place, make("table.matrix", look, make("thead", {}, make("tr", {}, make("td"), head)), make("tbody", {}, rows)));
  place.querySelector("button")?.setAttribute("tabindex", 0);
}

function drawCell(machine, state, entry, visit) {
  const step = machine.step(state, entry);
  if (!step) return null;
  const [here, there] = [state, step.after].map((it) => machine.nameOf(it));
  const codes = step.actions.map(({ code, name }) => code || name).join(" ");
  const says = step.reason || `${listed(step.actions.map(({ name }) => name), "nothing to do")}, then ${there}`;
  const label = { title: says, "aria-label": `${entry.name} in ${here}: ${says}`, "data-cell": cellOf(machine, state, entry) };
  return make(`button.cell${step.reason ? ".refused" : ""}`, { type: "button", tabindex: -1, ...label, click: () => visit(state, entry) },
    step.reason ? "refused" : `${codes} ${there === here ? "=" : `→ ${there}`}`.trim());
}

const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** One cell at a time is a tab stop; arrows go from cell to cell. */
function move(event) {
  const [step, cell] = [ARROWS[event.key], event.target.closest("td")];
  if (!step || !cell) return;
  event.preventDefault();
  const rows = [...cell.closest("tbody").rows];
  const wanted = rows[rows.indexOf(cell.parentElement) + step[0]]?.cells[cell.cellIndex + step[1]]?.querySelector("button");
  if (!wanted) return;
  [event.target.tabIndex, wanted.tabIndex] = [-1, 0];
  wanted.focus();
}

/** Mark where one stands, the last step, and the cells that were taken. */
function markMatrix(place, { machine, memory, last, taken }) {
  const here = machine.nameOf(memory.state);
  for (const row of place.querySelectorAll("tr[data-row]")) row.classList.toggle("here", row.dataset.row === here);
  const done = last && last.before.state !== ENDED ? cellOf(machine, last.before.state, last.entry) : "";
  const cells = [...place.querySelectorAll("[data-cell]")];
  for (const { classList, dataset } of cells) {
    classList.toggle("taken", taken.has(dataset.cell));
    classList.toggle("last", dataset.cell === done);
  }
  at("cells-note").textContent = `${cells.filter(({ dataset }) => taken.has(dataset.cell)).length} of ${cells.length} taken`;
}
