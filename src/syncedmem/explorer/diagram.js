/** The drawing of the heads, with the one that the memory is in, and the way it came. */

import { fill, laidOut, make } from "./element.js";

/** Put the drawing of an edition into the page. */
export function drawDiagram(place, drawings, edition) {
  place.innerHTML = drawings[edition];
}

/** The heads alone, in a line, for where the drawing is out of sight. */
export function drawHeads(place, { machine, memory }) {
  const names = [...new Set(machine.edition.configurations.map(({ head }) => head))];
  const here = memory.state.released ? null : memory.state.head;
  fill(place, names.map((name) => make(`li.mono${name === here ? ".here" : ""}`, {}, name)));
}

/** Where a box is, in the drawing as it is scaled on the page. */
function middleOf(box) {
  const drawing = box.ownerSVGElement;
  const { x, width } = box.getBBox();
  return ((x + width / 2) * drawing.clientWidth) / drawing.viewBox.baseVal.width;
}

/** Light up the head, and the arrow of the last step with its call; of a refusal, or the end, what is said of it below. */
export function markDiagram(place, { memory, last }) {
  const { head, released } = memory.state;
  for (const box of place.querySelectorAll(".smd-box")) {
    const name = box.nextElementSibling?.textContent;
    const here = name === head && !released;
    box.classList.toggle("here", here);
    if (here) laidOut(() => (place.scrollLeft = middleOf(box) - place.clientWidth / 2));
  }
  const moved = last?.row?.dest && !last.fail;
  for (const arrow of place.querySelectorAll("[data-source]")) {
    const { source, dest } = arrow.dataset;
    const taken = Boolean(moved) && source === last.before.state.head && dest === head;
    arrow.classList.toggle("taken", taken);
    for (const name of arrow.querySelectorAll(".smd-call")) {
      name.parentElement.classList.toggle("called", taken && name.textContent === last.entry.name);
    }
  }
  const ended = last?.row && !last.row.dest && !last.fail;
  for (const note of place.querySelectorAll(".smd-note")) {
    const [about] = note.textContent.split(" ");
    note.parentElement.classList.toggle("called", Boolean(ended) && [last.entry.name, last.entry.call].includes(about));
  }
}
