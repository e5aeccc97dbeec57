/** Which cells of the matrix are marked: those that somebody has taken, or has missed. */

import { at, make } from "./element.js";
import { cellsOf } from "./exploration.js";
import { callsOf } from "./library.js";
import { markMatrix } from "./matrix.js";

const MISSED = "!";
const TESTS = [
  ["tests", "Caffe's seven tests take"],
  [`tests${MISSED}`, "Caffe's seven tests miss"],
];

export class Marks {
  constructor(session, library) {
    Object.assign(this, { session, library });
  }

  /** Offer what there is to mark in this edition. */
  draw() {
    const chosen = at("marks").value || "me";
    const suites = this.library.shelf.map(({ name }) => [name, `the suite ${name} takes`]);
    const sets = [
      ["me", "you have taken"],
      ...(this.library.hasTests ? TESTS : []),
      ...suites,
      ["none", "nobody has taken"],
    ];
    at("marks").replaceChildren(...sets.map(([value, text]) => make("option", { value }, text)));
    at("marks").value = chosen;
  }

  update() {
    const [by, missed] = at("marks").value.split(/(?=!)/);
    const marked = this.taken(by);
    const total = at("matrix").querySelectorAll("[data-cell]").length;
    const size = missed ? total - marked.size : marked.size;
    at("cells-note").textContent = `${size} of ${total} cells.`;
    markMatrix(at("matrix"), this.session, { marked, missed: Boolean(missed) });
  }

  /** The cells that somebody has taken. */
  taken(by) {
    const { session, library } = this;
    if (by === "me") return session.taken.get(library.edition) ?? new Set();
    if (by === "tests") return cellsOf(session.machine, library.tests.map(({ calls }) => calls));
    const suites = library.shelf.filter(({ name }) => name === by);
    return cellsOf(session.machine, suites.flatMap(callsOf));
  }

  show(value, more) {
    at("marks").value = value;
    this.update();
    at("cells-note").textContent += ` ${more}`;
    at("cells").scrollIntoView({ block: "start" });
  }

  listen() {
    at("marks").addEventListener("change", () => this.update());
    at("run-tests").addEventListener("click", () => this.show("tests", "That is all that Caffe's own tests look at."));
    at("show-missed").addEventListener("click", () => this.show(`tests${MISSED}`, "Press one to go there."));
  }
}
