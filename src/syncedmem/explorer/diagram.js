/** The drawing of the heads, with the one that the memory is in, and the way it came. */

/** Put the drawing of an edition into the page. */
export function drawDiagram(place, drawings, edition) {
  place.innerHTML = drawings[edition];
}

/** Where a box is, in the drawing as it is scaled on the page. */
function middleOf(box) {
  const drawing = box.ownerSVGElement;
  const { x, width } = box.getBBox();
  return ((x + width / 2) * drawing.clientWidth) / drawing.viewBox.baseVal.width;
}

/** Light up the head, and the arrow of the last step. */
export function markDiagram(place, { memory, last }) {
  const { head, released } = memory.state;
  for (const box of place.querySelectorAll(".smd-box")) {
    const name = box.nextElementSibling?.textContent;
    const here = name === head && !released;
    box.classList.toggle("here", here);
    if (here) place.scrollLeft = middleOf(box) - place.clientWidth / 2;
  }
  const moved = last?.row?.dest && !last.fail;
  for (const arrow of place.querySelectorAll("[data-source]")) {
    const { source, dest } = arrow.dataset;
    arrow.classList.toggle("taken", Boolean(moved) && source === last.before.state.head && dest === head);
  }
}
