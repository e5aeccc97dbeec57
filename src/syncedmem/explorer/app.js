/** The page: what is drawn after each change, and what its buttons and keys do. */

import { drawProgram } from "./allocator.js";
import { callText, drawCalls, keysOf, updateCalls } from "./calls.js";
import { drawDiagram, markDiagram } from "./diagram.js";
import { at, counted, make } from "./element.js";
import { drawMatrix, markMatrix } from "./matrix.js";
import { cellsOf, explore } from "./exploration.js";
import { Session } from "./session.js";
import { drawSides, verdict } from "./sides.js";
import { drawLedger, drawStep, drawSteps, summary } from "./steps.js";
import { readTraces } from "./traces.js";
import { Walk } from "./walk.js";

let ready = false;
let drawn = null;
let marks = { by: "me", missed: false };
let writing = null;
let written = -Infinity;
const BETWEEN_ADDRESSES = 400;
const material = JSON.parse(at("material").textContent);
const session = new Session(material, () => ready && draw());
const walk = new Walk(session, drawWalk);

// --- drawing

function draw() {
  const { machine, memory, records, cursor, last } = session;
  const { name } = machine.edition;
  at("size").value = session.size;
  if (drawn !== name) {
    drawn = name;
    at("edition").value = name;
    drawCalls(at("call-list"), session);
    drawDiagram(at("drawing"), material.drawings, name);
    drawMatrix(at("matrix"), at("legend"), session);
    drawTests();
    drawVectors();
    drawMarks();
    drawKeys();
  }
  at("verdict").textContent = verdict(session);
  at("head").textContent = memory.state.released ? "released" : `${memory.state.head} · ${machine.configuration(memory.state).name}`;
  at("glance").textContent = `${at("head").textContent}: ${verdict(session)}`;
  drawSides(at("sides"), session);
  drawStep(at("step"), session);
  updateCalls(at("call-list"), session);
  markDiagram(at("drawing"), session);
  drawSteps(at("steps"), session);
  drawLedger(at("ledger"), at("balance"), session);
  drawBanner();
  updateMarks();
  at("undo").disabled = cursor === 0;
  at("forward").disabled = cursor === records.length;
  at("reset").disabled = records.length === 0;
  at("walk").disabled = memory.state.released;
  const sums = Object.entries(memory.moved).map(([side, bytes]) => `${bytes} B copied to the ${side === "cpu" ? "host" : "device"}`);
  at("totals").textContent = `${cursor} of ${records.length}; ${sums.join(", ")}`;
  at("live").textContent = last ? `${callText(last.entry)}: ${summary(last)}. ${memory.state.released ? "" : memory.state.head}. ${verdict(session)}` : "A fresh memory.";
  document.body.dataset.configuration = memory.state.released ? "released" : machine.configuration(memory.state).name;
  document.body.dataset.mode = memory.state.mode.name;
  writeAddress();
}

/** Browsers refuse many changes of the address in a short time, so in a fast sequence only some are written, and the last. */
function writeAddress() {
  if (writing) return;
  const write = () => {
    writing = null;
    written = performance.now();
    if (location.hash !== session.address) history.replaceState(null, "", session.address);
  };
  const wait = written + BETWEEN_ADDRESSES - performance.now();
  if (wait > 0) writing = setTimeout(write, wait);
  else write();
}

function drawBanner() {
  const banner = at("banner");
  banner.hidden = !session.title;
  if (!session.title) return;
  banner.replaceChildren(make("strong", {}, session.title), session.note ? make("span", {}, ` ${session.note}`) : "");
}

function drawWalk(walking) {
  at("walk").setAttribute("aria-pressed", String(walking));
  at("walk").lastChild.textContent = walking ? " Stop" : " Random walk";
}

function drawKeys() {
  const rows = [
    ...[...keysOf(session.machine)].map(([key, entry]) => [key, callText(entry)]),
    ["u", "undo"],
    ["n", "next step of a trace"],
    ["x", "reset"],
    ["z", "random walk, or stop it"],
    ["?", "this help"],
  ].map(([key, text]) => make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, key)), make("td.mono", {}, text)));
  at("keys").replaceChildren(make("table", {}, make("tbody", {}, rows)));
}

// --- the library

const callsOf = (suite, word) => [...word].map((letter) => suite.letters[letter]);

const wordsOf = (suite) => suite.words.map((word) => callsOf(suite, word));

const edition = () => session.machine.edition.name;

const tests = () => material.tests.filter((test) => test.calls.every((name) => session.machine.entries.has(name)));

const traceOf = (calls, more = {}) => ({
  edition: edition(), size: session.size, mode: material.mode, calls: calls.map((name) => ({ name, fail: 0 })), ...more,
});

function drawTests() {
  const calls = material.tests.reduce((sum, test) => sum + test.calls.length, 0);
  at("tests-note").textContent = `${material.testsFile}: ${counted(material.tests.length, "test")}, ${counted(calls, "call")}.`;
  at("tests").replaceChildren(
    ...material.tests.map((test) => {
      const known = tests().includes(test);
      return make("li", {}, make("button.link.mono", { type: "button", disabled: !known, "data-test": test.name, click: () => load({ title: test.name, note: `Caffe's own test, ${counted(test.calls.length, "call")}, then the end.`, trace: testTrace(test) }) }, test.name),
        make("span.soft", {}, ` ${counted(test.calls.length, "call")}`));
    }),
  );
}

const testTrace = (test) => traceOf([...test.calls, ...releases()], { size: test.size, mode: material.testsMode });

const releases = () => [...session.machine.entries.values()].filter(({ call }) => session.machine.calls.get(call)?.role === "release").map(({ name }) => name);

function vectors() {
  return material.suites.filter((suite) => suite.edition === edition());
}

function drawVectors() {
  const text = vectors().map(({ title, words }) => `${words.length.toLocaleString("en")} of ${title}`);
  at("vectors-note").textContent = text.length ? `${text.join(", ")}.` : "This edition has none.";
  at("vector-ids").replaceChildren();
}

function fillVectorIds() {
  if (at("vector-ids").childElementCount) return;
  at("vector-ids").replaceChildren(...vectors().flatMap(({ ids }) => ids).map((id) => make("option", { value: id })));
}

function replayVector(wanted) {
  for (const suite of vectors()) {
    const k = suite.ids.findIndex((id) => id.startsWith(wanted));
    if (k >= 0) {
      const calls = callsOf(suite, suite.words[k]);
      at("vector-id").value = suite.ids[k];
      load({ title: `vector ${suite.ids[k]}`, note: `From ${suite.title}.`, trace: traceOf(calls) });
      return `Loaded: ${counted(calls.length, "step")}.`;
    }
  }
  return `No vector of the edition ${edition()} has an id that begins with ${wanted}.`;
}

/** Take up a choice: a trace to step through from its beginning, or the program of an allocator. */
function load({ title, note, trace, program }) {
  walk.stop();
  if (program) {
    drawProgram(at("allocator"), material.operations, { title, note, program });
    at("allocator").scrollIntoView({ block: "nearest" });
    return;
  }
  session.begin({ ...trace, at: 0, title, note });
  at("memory").scrollIntoView({ block: "start" });
}

function loadText(text) {
  at("trace-choices").replaceChildren();
  try {
    const usual = { edition: edition(), size: session.size, mode: material.mode };
    const choices = readTraces(text, usual, session);
    load(choices[0]);
    at("trace-answer").textContent = choices.length > 1 ? `${counted(choices.length, "trace")}; the first one is loaded.` : `Loaded: ${choices[0].title}.`;
    if (choices.length > 1) at("trace-choices").replaceChildren(...choices.slice(0, 200).map((choice) => make("button.link", { type: "button", click: () => load(choice) }, choice.title)));
  } catch (error) {
    at("trace-answer").textContent = error.message;
  }
}

function prove() {
  const began = performance.now();
  const { counts, contents, laws } = explore(session.machine);
  const spent = performance.now() - began;
  const said = session.machine.edition.counts;
  const rows = Object.entries(counts).map(([name, count]) =>
    make("tr", { "data-count": name }, make("th", { scope: "row" }, name), make("td.right", {}, count.toLocaleString("en")), make("td.right", {}, said[name].toLocaleString("en")), make("td", {}, count === said[name] ? "✓ the same" : "✗ not the same")),
  );
  const sentences = [...Object.entries(laws), [`fresh sides hold the same bytes, in all ${contents.states} states with ${contents.values} different contents`, contents.alike]];
  at("proof").replaceChildren(
    make("table", {}, make("thead", {}, make("tr", {}, make("td", {}), make("th.right", { scope: "col" }, "found here"), make("th.right", { scope: "col" }, "says the model"), make("td", {}))), make("tbody", {}, rows)),
    make("ul.laws", {}, sentences.map(([text, holds]) => make("li", { "data-holds": String(Boolean(holds)) }, holds ? "✓ " : "✗ ", text))),
    make("p.soft", {}, `Edition ${edition()}, in ${spent.toFixed(0)} ms.`),
  );
}

// --- the matrix

function drawMarks() {
  const sets = [["me", "you have taken"], ["tests", "Caffe's seven tests take"], ["tests!", "Caffe's seven tests miss"],
    ...vectors().flatMap(({ name, title }) => [[name, `${title} takes`]]), ["none", "nobody has taken"]];
  at("marks").replaceChildren(...sets.map(([value, text]) => make("option", { value }, text)));
  at("marks").value = marks.missed ? `${marks.by}!` : marks.by;
  if (!at("marks").value) at("marks").value = "me";
}

function updateMarks() {
  const [by, bang] = at("marks").value.split("!");
  marks = { by, missed: bang !== undefined };
  const marked = cellsTaken(by);
  const total = session.machine.cells().length;
  const size = marks.missed ? total - marked.size : marked.size;
  at("cells-note").textContent = by === "none" ? `${total} cells.` : `${size} of ${total} cells.`;
  at("cells-note").dataset.marked = by === "none" ? 0 : size;
  markMatrix(at("matrix"), session, { marked, missed: marks.missed });
}

function cellsTaken(by) {
  const { machine } = session;
  if (by === "me") return session.taken.get(edition()) ?? new Set();
  if (by === "none") return new Set();
  const words = by === "tests" ? tests().map(({ calls }) => calls) : vectors().filter(({ name }) => name === by).flatMap(wordsOf);
  return cellsOf(machine, words);
}

function showMarks(value) {
  at("marks").value = value;
  updateMarks();
  at("cells").scrollIntoView({ block: "start" });
  at("cells-note").textContent += value === "tests" ? " That is all that Caffe's own tests look at." : " Press one to go there.";
}

// --- what buttons and keys do

const DEEDS = {
  undo: () => session.go(session.cursor - 1),
  forward: () => session.go(session.cursor + 1),
  reset: () => session.reset(),
  walk: () => walk.toggle(),
  help: () => at("help").showModal(),
};

const KEYS = { u: "undo", n: "forward", x: "reset", z: "walk", "?": "help" };

function press(event) {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select, dialog");
  if (event.ctrlKey && event.key === "z" && !typing) {
    DEEDS.undo();
    event.preventDefault();
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !at("shortcuts").checked) return;
  const entry = keysOf(session.machine).get(event.key);
  if (!entry && !KEYS[event.key]) return;
  event.preventDefault();
  if (KEYS[event.key] !== "walk") walk.stop();
  if (entry) session.take(entry.name);
  else DEEDS[KEYS[event.key]]();
}

async function share() {
  try {
    await navigator.clipboard.writeText(location.href.split("#")[0] + session.address);
    at("share").textContent = "Copied";
  } catch {
    at("share").textContent = "Copy it from the address bar";
  }
  setTimeout(() => (at("share").textContent = "Copy link"), 2000);
}

/** What the address says; what it cannot say is said, and a fresh memory is there instead. */
function followAddress() {
  if (drawn && location.hash === session.address) return;
  try {
    session.begin(session.traceOf(decodeURI(location.hash)));
  } catch (error) {
    session.reset();
    Object.assign(session, { title: "The address cannot be followed:", note: `${error.message}.` });
    draw();
  }
}

function listen() {
  for (const name of ["undo", "forward", "reset"]) {
    at(name).addEventListener("click", () => {
      walk.stop();
      DEEDS[name]();
    });
  }
  at("walk").addEventListener("click", DEEDS.walk);
  at("help-open").addEventListener("click", DEEDS.help);
  at("share").addEventListener("click", share);
  at("failing").addEventListener("change", draw);
  at("marks").addEventListener("change", updateMarks);
  at("edition").addEventListener("change", () => session.reset({ edition: at("edition").value }));
  at("size").addEventListener("change", () => session.reset({ size: Number(at("size").value) }));
  at("run-tests").addEventListener("click", () => showMarks("tests"));
  at("show-missed").addEventListener("click", () => showMarks("tests!"));
  at("prove").addEventListener("click", prove);
  at("vector-id").addEventListener("focus", fillVectorIds);
  at("vector-form").addEventListener("submit", (event) => {
    event.preventDefault();
    at("vector-answer").textContent = replayVector(at("vector-id").value.trim());
  });
  at("vector-any").addEventListener("click", () => {
    const ids = vectors().flatMap((suite) => suite.ids);
    at("vector-answer").textContent = replayVector(ids[Math.floor(Math.random() * ids.length)]);
  });
  at("trace-load").addEventListener("click", () => loadText(at("trace-text").value));
  at("trace-file").addEventListener("change", async ({ target }) => target.files.length && loadText(await target.files[0].text()));
  document.addEventListener("keydown", press);
  addEventListener("hashchange", followAddress);
}

function open() {
  at("edition").replaceChildren(...material.machine.editions.map(({ name }) => make("option", { value: name }, name)));
  at("size").replaceChildren(...material.sizes.offered.map((size) => make("option", { value: size }, `${size} bytes`)));
  at("about").textContent = `syncedmem ${material.version}; the machine of document ${material.machine.digest.slice(0, 19)}.`;
  drawMarks();
  listen();
  ready = true;
  if (location.hash.length > 1) followAddress();
  else draw();
  if (material.opened) loadText(material.opened);
  performance.mark("interactive");
}

open();
