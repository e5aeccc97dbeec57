/** The drawing of the heads, with the one that the memory is in, and the way it came. */

/** Put the drawing of an edition into the page. */
export function drawDiagram(place, drawings, edition) {
  place.innerHTML = drawings[edition];
}

/** Light up the head, and the arrow of the last step. */
export function markDiagram(place, { memory, last }) {
  const { head, released } = memory.state;
  for (const box of place.querySelectorAll("rect")) {
    const name = box.nextElementSibling?.textContent;
    box.classList.toggle("here", name === head && !released);
  }
  const moved = last?.row?.dest && !last.fail;
  for (const arrow of place.querySelectorAll("[data-source]")) {
    const { source, dest } = arrow.dataset;
    arrow.classList.toggle("taken", Boolean(moved) && source === last.before.state.head && dest === head);
  }
}
