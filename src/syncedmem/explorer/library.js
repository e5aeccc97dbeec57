/** Traces that are at hand: the original's own tests, the vectors, what the page was made with, and calls by name. */

import { at, counted, make } from "./element.js";

export class Library {
  /**
   * @param {Session} session
   * @param {object[]} suites of vectors, which spell each call as a letter
   */
  constructor(session, suites) {
    const { machine } = session;
    Object.assign(this, { session, machine, suites, ids: new Map(suites.flatMap((suite) => suite.ids.split(" ").map((id, k) => [id, { suite, k }]))) });
    const { tests = [], testsFile, opened } = machine;
    at("shelf-tests").hidden = !tests.length;
    at("shelf-vectors").hidden = !suites.length;
    at("tests-note").textContent = `${testsFile}: ${counted(tests.length, "test")}, ${counted(tests.reduce((sum, { count }) => sum + count, 0), "call")}.`;
    const note = "One of the original's own tests, and the end.";
    at("tests").replaceChildren(...tests.map(({ name, calls }) => this.button({ title: name, note, calls: calls.map((it) => [it, 0]) })));
    at("vectors-note").textContent = `${counted(this.ids.size, "vector")}: ${suites.map(({ name, ids }) => `${name} ${ids.split(" ").length}`).join(", ")}.`;
    at("opened").replaceChildren(...(opened.length > 1 ? opened.map((walk) => this.button(walk)) : []));
    if (opened.length) this.load(opened[0]);
    at("vector-id").addEventListener("input", () => (at("vector-answer").textContent = this.saidOf(at("vector-id").value.trim())));
    at("vector-form").addEventListener("submit", (event) => {
      event.preventDefault();
      at("vector-answer").textContent = this.replay(at("vector-id").value.trim());
    });
    at("vector-any").addEventListener("click", () => (at("vector-answer").textContent = this.replay([...this.ids.keys()][Math.floor(Math.random() * this.ids.size)])));
    at("trace-load").addEventListener("click", () => (at("trace-answer").textContent = this.read(at("trace-text").value)));
  }

  button(walk) {
    return make("li", {}, make("button.link", { type: "button", "data-walk": walk.title, click: () => this.load(walk) }, walk.title));
  }

  /** Take up a walk of the machine, to step through from its beginning; or show the program of an allocator. */
  load({ title, note, calls, program }) {
    at("program").hidden = !program;
    if (calls) this.session.begin(calls.map(([name, fail]) => ({ name, fail })), { title, note });
    else at("program").replaceChildren(make("h3", {}, title), make("p.refusal", {}, note), make("ol", {}, program.map(([step, live]) => make("li", {}, make("span.mono", {}, step), make("span.soft", {}, ` ${live}`)))));
    at(program ? "program" : "memory").scrollIntoView({ block: "nearest" });
  }

  /** The vectors whose ids begin so, or that what is wanted goes on from: the page has not the whole of an id. */
  found(wanted) {
    return wanted ? [...this.ids.keys()].filter((id) => id.startsWith(wanted) || wanted.startsWith(id)) : [];
  }

  /** Take up the one vector whose id begins so; what is said of it, or of there being none, or several. */
  replay(wanted) {
    const [id, ...others] = this.found(wanted);
    if (!id || others.length) return this.saidOf(wanted);
    const { suite, k } = this.ids.get(id);
    const calls = [...suite.words.split(" ")[k]].map((letter) => suite.letters[letter].split("!")).map(([name, fail]) => [name, Number(fail ?? 0)]);
    this.load({ title: `vector ${id}`, note: `Suite ${suite.name}: ${suite.text}.`, calls });
    return `Loaded: ${counted(calls.length, "step")}.`;
  }

  saidOf(wanted) {
    if (!wanted) return "An id is needed, or how one begins.";
    const { length } = this.found(wanted);
    if (!length) return `No vector of ${this.machine.name} has an id that begins with ${wanted}.`;
    return length === 1 ? "One vector has an id that begins so." : `${counted(length, "vector")} have an id that begins with ${wanted}: more characters are needed.`;
  }

  /** Take up calls by name, one a line or between blanks and commas; what is said of them. */
  read(text) {
    const { entries, most, name: machine } = this.machine;
    const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
    const words = lines.every((line) => entries.has(line)) ? lines : text.split(/[\s,;]+/).filter(Boolean);
    const calls = words.map((word) => [word.replace(/(\(\))?(!\d+)?$/, ""), Number(word.match(/!(\d+)$/)?.[1] ?? 0)]);
    const unknown = calls.find(([name]) => !entries.has(name));
    if (unknown) return `${machine} has no call ${unknown[0]}.`;
    if (!calls.length || calls.length > most) return `There are ${calls.length.toLocaleString("en")} calls; it takes 1 to ${most.toLocaleString("en")}.`;
    this.load({ title: "a list of calls", note: "", calls });
    return `Loaded: ${counted(calls.length, "step")}.`;
  }
}
