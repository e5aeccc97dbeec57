/** Boxes that are wider than the page: they say at which edge there is more, and that they can be slid. */

/** Watch boxes, and keep their `data-more` true: `left`, `right`, both, or nothing. */
export function watchOverflow(boxes) {
  const watcher = new ResizeObserver((seen) => seen.forEach(({ target }) => mark(target.closest("[data-more]"))));
  for (const box of boxes) {
    box.dataset.more = "";
    watcher.observe(box);
    for (const inside of box.children) watcher.observe(inside);
    new MutationObserver(() => {
      for (const inside of box.children) watcher.observe(inside);
      mark(box);
    }).observe(box, { childList: true });
    box.addEventListener("scroll", () => mark(box), { passive: true });
  }
}

function mark(box) {
  const left = box.scrollLeft > 1 ? "left" : "";
  const right = box.scrollLeft + box.clientWidth < box.scrollWidth - 1 ? "right" : "";
  box.dataset.more = `${left} ${right}`.trim();
}
