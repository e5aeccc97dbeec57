/** Elements of the page, made in one expression. */

/** The element with an id. */
export const at = (id) => document.getElementById(id);

/**
 * Make an element.
 *
 * @param {string} tag with classes after dots: `p.soft`
 * @param {object} attributes functions are listeners; true, false and null are there or not
 * @param {...(Node|string|null|undefined|false)} children
 */
export function make(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...present(children));
  return element;
}

/** Put children into an element in place of what is there. */
export const fill = (element, ...children) => element.replaceChildren(...present(children));

const present = (children) => children.flat(2).filter((child) => child !== null && child !== undefined && child !== false && child !== "");

/** A number with its noun. */
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** `a`, `a and b`, `a, b and c`; of no words, what stands for none. */
export const listed = (words, none = "none") =>
  words.length ? [words.slice(0, -1).join(", "), words.at(-1)].filter(Boolean).join(" and ") : none;

/** A name that may be broken where a word of it ends. */
export const breakable = (name) => name.replace(/_|[a-z](?=[A-Z])/g, "$&\u200b");
