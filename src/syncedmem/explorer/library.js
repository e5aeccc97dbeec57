/** Traces that are at hand: Caffe's own tests, the vectors, and what somebody opens; and the proof. */

import { drawProgram } from "./allocator.js";
import { at, counted, make } from "./element.js";
import { explore } from "./exploration.js";
import { checkChoice, readTraces, refuseMore, toActions } from "./traces.js";

const MOST_CHOICES = 200;
const MOST_IDS = 100;

export class Library {
  /**
   * @param {Session} session
   * @param {object} material what the page was given
   * @param {() => void} loading called before a trace is taken up
   */
  constructor(session, material, loading) {
    Object.assign(this, { session, material, loading, suites: [] });
  }

  get edition() {
    return this.session.machine.edition.name;
  }

  /** Caffe's tests that this edition can run. */
  get tests() {
    return this.material.tests.filter((test) => test.calls.every((name) => this.session.machine.entries.has(name)));
  }

  /** The suites of this edition, each with the calls of its vectors. */
  get shelf() {
    return this.suites.filter(({ edition }) => edition === this.edition);
  }

  /** The ids that begin so, or that what is wanted goes on from: the page has not the whole of an id. */
  idsOf(wanted) {
    const ids = new Set(this.shelf.flatMap((suite) => suite.ids.split(" ")));
    return wanted ? [...ids].filter((id) => id.startsWith(wanted) || wanted.startsWith(id)) : [];
  }

  draw() {
    this.drawTests();
    const counts = this.shelf.map(({ name, ids }) => [name, ids.split(" ").length]);
    const sum = counts.reduce((all, [, count]) => all + count, 0);
    const parts = counts.map(([name, count]) => `${name} ${count.toLocaleString("en")}`);
    at("vectors-note").textContent = `${counted(sum, "vector")}: ${parts.join(", ")}.`;
    at("vector-ids").replaceChildren();
    at("proof").replaceChildren();
  }

  drawTests() {
    const { tests, testsFile } = this.material;
    const calls = tests.reduce((sum, test) => sum + test.calls.length, 0);
    at("tests-note").textContent = `${testsFile}: ${counted(tests.length, "test")}, ${counted(calls, "call")}.`;
    at("tests").replaceChildren(
      ...tests.map((test) => {
        const look = { type: "button", disabled: !this.tests.includes(test), "data-test": test.name };
        const button = make("button.link.mono", { ...look, click: () => this.loadTest(test) }, test.name);
        return make("li", {}, button, make("span.soft", {}, ` ${counted(test.calls.length, "call")}`));
      }),
    );
  }

  /** One of Caffe's tests, with the destructor at its end, in the mode that Caffe starts in. */
  loadTest({ name, size, calls }) {
    const { machine } = this.session;
    const end = [...machine.entries.values()].filter(({ call }) => machine.calls.get(call)?.does === "release");
    const trace = this.traceOf([...calls, ...end.map((entry) => entry.name)]);
    const note = `One of Caffe's own tests: ${counted(calls.length, "call")}, then the end.`;
    this.load({ title: name, note, trace: { ...trace, size, mode: this.material.testsMode } });
  }

  traceOf(calls) {
    return { ...this.usual(), calls: toActions(this.session.machine, calls.map(armedOf)) };
  }

  usual() {
    return { edition: this.edition, size: this.session.size, mode: this.material.mode };
  }

  /** Take up the one vector whose id begins so; what is said of it, or of there being none, or several. */
  replayVector(wanted) {
    const [id, ...others] = this.idsOf(wanted);
    if (!id || others.length) return this.saidOf(wanted);
    const suite = this.shelf.find(({ ids }) => ids.split(" ").includes(id));
    const number = suite.ids.split(" ").indexOf(id);
    const calls = callsOf(suite)[number];
    at("vector-id").value = id;
    const trace = { ...this.traceOf(calls), size: suite.sizes[number % suite.sizes.length] };
    this.load({ title: `vector ${id}`, note: `Suite ${suite.name}: ${suite.text}.`, trace });
    return `Loaded: ${counted(calls.length, "step")}.`;
  }

  replayAny() {
    const ids = this.shelf.flatMap((suite) => suite.ids.split(" "));
    return this.replayVector(ids[Math.floor(Math.random() * ids.length)]);
  }

  /** How many vectors there are with such an id, and what to do about it. */
  saidOf(wanted) {
    if (!wanted) return "An id is needed, or how one begins.";
    const count = this.idsOf(wanted).length;
    if (!count) return `No vector of the edition ${this.edition} has an id that begins with ${wanted}.`;
    if (count === 1) return "One vector has an id that begins so.";
    return `${counted(count, "vector")} have an id that begins with ${wanted}: more characters are needed.`;
  }

  /** Take up a choice: a trace to step through from its beginning, or the program of an allocator. */
  load({ title, note, trace, program }) {
    checkChoice({ trace, program }, this.material.most);
    this.loading();
    at("allocator").hidden = !program;
    if (program) {
      drawProgram(at("allocator"), this.material.operations, { title, note, program });
      at("allocator").scrollIntoView({ block: "nearest" });
      return;
    }
    this.session.begin({ ...trace, at: 0, title, note });
    at("memory").scrollIntoView({ block: "start" });
  }

  /** Take up what a text holds, or say what is wrong with it: nothing, if nothing is. */
  loadText(text) {
    at("trace-choices").replaceChildren();
    return this.saying(() => {
      const choices = readTraces(text, this.usual(), this.session);
      if (choices.length > 1) this.drawChoices(choices.slice(0, MOST_CHOICES));
      this.load(choices[0]);
      at("trace-answer").textContent =
        choices.length > 1 ? `${counted(choices.length, "trace")}; the first one is loaded.` : `Loaded: ${choices[0].title}.`;
    });
  }

  /** Take up what a file holds; one that is too large is not even read. */
  async loadFile(file) {
    const problem = this.saying(() => refuseMore(file.size, this.material.most.bytes, "bytes"));
    if (!problem) this.loadText(await file.text());
  }

  /** Do something, or say where traces are opened why it cannot be done: nothing, if it can. */
  saying(deed) {
    try {
      deed();
      return "";
    } catch (error) {
      at("trace-answer").textContent = error.message;
      return error.message;
    }
  }

  drawChoices(choices) {
    at("trace-choices").replaceChildren(
      ...choices.map((choice) => make("button.link", { type: "button", click: () => this.saying(() => this.load(choice)) }, choice.title)),
    );
  }

  /** Explore everything, and put it beside what the model counts of itself. */
  prove() {
    const began = performance.now();
    const { counts, contents, laws } = explore(this.session.machine);
    const spent = performance.now() - began;
    const said = this.session.machine.edition.counts;
    const bytes = `fresh sides hold the same bytes, in all ${contents.states} states with ${contents.values} different contents`;
    const sentences = [...Object.entries(laws), [bytes, contents.alike]].map(([text, holds]) =>
      make("li", { "data-holds": String(Boolean(holds)) }, holds ? "✓ " : "✗ ", text),
    );
    const head = ["found here", "says the model"].map((text) => make("th.right", { scope: "col" }, text));
    const rows = Object.entries(counts).map(([name, count]) => drawCount(name, count, said[name]));
    at("proof").replaceChildren(
      make("table", {}, make("thead", {}, make("tr", {}, make("td"), head, make("td"))), make("tbody", {}, rows)),
      make("ul.laws", {}, sentences),
      make("p.soft", {}, `Edition ${this.edition}, in ${spent.toFixed(0)} ms.`),
    );
  }

  listen() {
    at("prove").addEventListener("click", () => this.prove());
    at("vector-id").addEventListener("input", () => this.offerIds(at("vector-id").value.trim()));
    at("vector-form").addEventListener("submit", (event) => {
      event.preventDefault();
      at("vector-answer").textContent = this.replayVector(at("vector-id").value.trim());
    });
    at("vector-any").addEventListener("click", () => (at("vector-answer").textContent = this.replayAny()));
    at("trace-load").addEventListener("click", () => this.loadText(at("trace-text").value));
    at("trace-file").addEventListener("change", async ({ target }) => {
      if (target.files.length) await this.loadFile(target.files[0]);
    });
  }

  /** Some of the ids that begin so, and how many there are; there are too many to offer all. */
  offerIds(start) {
    const ids = this.idsOf(start);
    at("vector-answer").textContent = start ? this.saidOf(start) : "";
    at("vector-ids").replaceChildren(...ids.slice(0, MOST_IDS).map((id) => make("option", { value: id })));
  }
}

const drawCount = (name, count, said) =>
  make(
    "tr",
    { "data-count": name },
    make("th", { scope: "row" }, name),
    make("td.right", {}, count.toLocaleString("en")),
    make("td.right", {}, said.toLocaleString("en")),
    make("td", {}, count === said ? "✓ the same" : "✗ not the same"),
  );

/** The calls of the vectors of a suite: in its words each is a letter. */
export const callsOf = ({ words, letters }) => words.split(" ").map((word) => [...word].map((letter) => letters[letter]));

/** A call by its name, and which of its allocator calls is to fail. */
function armedOf(text) {
  const [name, armed = "0"] = text.split("!");
  return { name, armed: Number(armed) };
}
