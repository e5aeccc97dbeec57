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

const present = (children) => children.flat().filter((child) => child !== null && child !== undefined && child !== false);

/** Do what asks where things are, when the page is laid out anyway: to ask earlier would lay it out twice. */
export const laidOut = (deed) => requestAnimationFrame(deed);

/** `3 bytes`, `1 byte`. */
export const bytesOf = (count) => counted(count, "byte");

/** A number with its noun. */
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** A text that begins with a capital letter. */
export const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

/** A name that may be broken after its underscores. */
export const breakable = (name) => name.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]);
