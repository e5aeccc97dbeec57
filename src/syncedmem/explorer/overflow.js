/** Boxes that are wider than the page: they say at which edge there is more, and that they can be slid. */

/** Watch boxes, and keep their `data-more` true: `left`, `right`, both, or nothing. */
export function watchOverflow(boxes) {
  const sizes = new ResizeObserver(() => boxes.forEach(mark));
  for (const box of boxes) {
    const watch = () => [box, ...box.children].forEach((it) => sizes.observe(it));
    watch();
    new MutationObserver(watch).observe(box, { childList: true });
    box.addEventListener("scroll", () => mark(box), { passive: true });
  }
}

function mark(box) {
  const left = box.scrollLeft > 1 ? "left" : "";
  const right = box.scrollLeft + box.clientWidth < box.scrollWidth - 1 ? "right" : "";
  box.dataset.more = `${left} ${right}`.trim();
}
