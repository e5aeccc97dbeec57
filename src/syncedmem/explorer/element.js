/** Elements of the page, made in one expression. */

/** The element with an id. */
const at = (id) => document.getElementById(id);

/**
 * Make an element.
 *
 * @param {string} tag with classes after dots: `p.soft`
 * @param {object} attributes functions are listeners; null is left out
 * @param {...(Node|string|null|undefined|false)} children
 */
function make(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== null) element.setAttribute(key, value);
  }
  return fill(element, ...children);
}

/** Put children into an element in place of what is there. */
function fill(element, ...children) {
  element.replaceChildren(...children.flat(2).filter((child) => child || child === 0));
  return element;
}

/** `a`, `a and b`, `a, b and c`; of no words, what stands for none. */
const listed = (words, none = "none") =>
  words.length ? [words.slice(0, -1).join(", "), words.at(-1)].filter(Boolean).join(" and ") : none;

/** A name that may be broken where a word of it ends. */
const breakable = (name) => name.replace(/_|[a-z](?=[A-Z(])/g, "$&\u200b");
