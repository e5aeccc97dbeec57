/** The page: what is drawn after each change, and what its buttons and keys do. */

import { callText, drawCalls, keysOf, updateCalls } from "./calls.js";
import { drawDiagram, drawHeads, markDiagram } from "./diagram.js";
import { at, fill, make } from "./element.js";
import { Library } from "./library.js";
import { Marks } from "./marks.js";
import { drawMatrix } from "./matrix.js";
import { watchOverflow } from "./overflow.js";
import { Quiz } from "./quiz.js";
import { reasonsOf, sentenceOf } from "./reasons.js";
import { Session } from "./session.js";
import { drawSides, verdict } from "./sides.js";
import { drawBlocks, drawStep, drawSteps, summary } from "./steps.js";
import { Walk } from "./walk.js";

const BETWEEN_ADDRESSES = 400;

let ready = false;
let whole = false;
let drawn = null;
let writing = null;
let written = -Infinity;
let keepsAddress = true;

const material = await unpacked(at("material").textContent);
const session = new Session(material, () => ready && draw());
const walk = new Walk(session, drawWalk);
const quiz = new Quiz(session);
const library = new Library(session, material, () => walk.stop());
const marks = new Marks(session, library);

/** What `page.py` packed: JSON, compressed, in letters. */
async function unpacked(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k += 1) bytes[k] = letters.charCodeAt(k);
  const { body } = new Response(bytes);
  return new Response(body.pipeThrough(new DecompressionStream("deflate"))).json();
}

// --- drawing

function draw() {
  const { machine, memory, records, cursor } = session;
  drawSize();
  if (drawn !== machine.edition.name) drawEdition();
  const where = memory.state.released ? "released" : machine.configuration(memory.state).name;
  at("verdict").textContent = verdict(session);
  at("head").textContent = memory.state.released ? where : `${memory.state.head} · ${where}`;
  at("glance").textContent = glance();
  drawHeads(at("heads"), session);
  drawSides(at("sides"), session);
  drawStep(at("step"), session);
  updateCalls(at("call-list"), session);
  markDiagram(at("drawing"), session);
  drawSteps(at("steps"), session);
  drawBlocks(at("blocks"), at("balance"), session);
  drawBanner();
  drawUnclear();
  if (whole) marks.update();
  at("undo").disabled = cursor === 0;
  at("forward").disabled = cursor === records.length;
  at("reset").disabled = records.length === 0;
  at("walk").disabled = memory.state.released;
  at("failing").disabled = session.quizzing;
  drawWalk(Boolean(walk.timer));
  quiz.draw();
  tell();
  document.body.dataset.configuration = where;
  document.body.dataset.mode = memory.state.mode.name;
  writeAddress();
}

/** The size, also one that only an address or a trace asks for. */
function drawSize() {
  const { size } = session;
  const offered = [...at("size").options].some(({ value }) => Number(value) === size);
  if (!offered) at("size").append(make("option", { value: size }, `${size} bytes`));
  at("size").value = size;
}

/** What changes with the edition alone. */
function drawEdition() {
  const { machine } = session;
  drawn = machine.edition.name;
  at("edition").value = drawn;
  at("about").textContent = `${drawn}: ${machine.edition.about}. From syncedmem ${material.version}, document ${material.machine.digest.slice(0, 19)}.`;
  drawCalls(at("call-list"), session);
  drawDiagram(at("drawing"), material.drawings, drawn);
  if (whole) drawBelow();
}

/** What lies below the first sight; when the page opens it can wait. */
function drawBelow() {
  drawMatrix(at("matrix"), at("legend"), session);
  library.draw();
  marks.draw();
  drawKeys();
}

/** The last step in a line. */
function glance() {
  const { last, cursor } = session;
  return last ? `${cursor} ${callText(last.entry)}: ${summary(last)}` : verdict(session);
}

/** What was done so far, in a line; and the last step, for whoever listens. */
function tell() {
  const { machine, memory, cursor, records } = session;
  const copied = Object.entries(memory.moved).map(([side, bytes]) => `${bytes} B copied to the ${machine.titleOf(side)}`);
  at("totals").textContent = `${cursor} of ${records.length}; ${copied.join(", ")}`;
  at("live").textContent = told();
}

function told() {
  const { machine, memory, last, asked, answer } = session;
  if (asked) return `${callText(asked.record.entry)}: which side is fresh now?`;
  if (!last) return "A fresh memory.";
  const head = memory.state.released ? "" : ` ${memory.state.head}.`;
  const reasons = reasonsOf(machine, last).map(sentenceOf).join(" ");
  const said = answer ? `${answer.text} ${quiz.score}.` : `${callText(last.entry)}: ${summary(last)}.${head} ${verdict(session)}`;
  return `${said} ${reasons}`.trim();
}

function drawBanner() {
  const { title, note } = session;
  at("banner").hidden = !title;
  if (title) at("banner").replaceChildren(make("strong", {}, title), " ", note ?? "");
}

/** What was asked for and could not be understood. */
function drawUnclear() {
  const { unclear } = session;
  at("unclear").hidden = !unclear.length;
  fill(at("unclear"), make("strong", {}, "Not understood:"), make("ul", {}, unclear.map((text) => make("li", {}, `${text}.`))));
}

function drawWalk(walking) {
  at("walk").setAttribute("aria-pressed", String(walking));
  at("walk").lastChild.textContent = walking ? " Stop" : " Random";
}

function drawKeys() {
  const calls = [...keysOf(session.machine)].map(([key, entry]) => [key, callText(entry)]);
  const rows = [...calls, ...Object.entries(DEEDS).map(([key, { says }]) => [key, says])];
  const drawRow = ([key, says]) => make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, key)), make("td.mono", {}, says));
  at("keys").replaceChildren(make("table", {}, make("tbody", {}, rows.map(drawRow))));
}

// --- the address

/** Browsers refuse many changes of the address in a short time, so of a fast sequence only some are written, and the last. */
function writeAddress() {
  if (writing) return;
  const write = () => {
    writing = null;
    written = performance.now();
    if (location.hash !== session.address) replaceAddress(session.address);
  };
  const wait = written + BETWEEN_ADDRESSES - performance.now();
  if (wait > 0) writing = setTimeout(write, wait);
  else write();
}

/** In a frame that is a sandbox, browsers refuse every change of the address; the page works without. */
function replaceAddress(address) {
  try {
    if (keepsAddress) history.replaceState(null, "", address);
  } catch {
    keepsAddress = false;
  }
}

/** Go where the address says, as far as it can be understood. */
function followAddress() {
  if (!drawn || location.hash !== session.address) session.begin(session.traceOf(location.hash));
}

async function share() {
  const link = location.href.split("#")[0] + session.address;
  try {
    await navigator.clipboard.writeText(link);
  } catch {
    at("link-text").value = link;
    at("link").showModal();
    at("link-text").select();
    return;
  }
  at("share").textContent = "Copied";
  setTimeout(() => (at("share").textContent = "Copy link"), 2000);
}

// --- what buttons and keys do

const DEEDS = {
  u: { button: "undo", says: "undo", does: () => session.go(session.cursor - 1) },
  n: { button: "forward", says: "next step of a trace", does: () => session.forward() },
  x: { button: "reset", says: "reset", does: () => session.reset() },
  z: { button: "walk", says: "random walk, or stop it; in the quiz, one random step", does: () => walk.toggle() },
  a: { button: "quiz", says: "quiz: before a step is shown, say which side is fresh; 1, 2, ... answer", does: () => quiz.toggle() },
  "?": { button: "help-open", says: "this help", does: () => at("help").showModal() },
};

function press(event) {
  const { key, ctrlKey, metaKey, altKey, target } = event;
  const typing = target.closest("input:not([type=checkbox]), textarea, select, dialog");
  if (typing || metaKey || altKey) return;
  const undoing = ctrlKey && key === "z";
  const entry = keysOf(session.machine).get(key);
  const deed = undoing ? DEEDS.u : DEEDS[key];
  if (key === "Escape" && session.asked) quiz.drop();
  if ((ctrlKey || !at("shortcuts").checked) && !undoing) return;
  if (!ctrlKey && quiz.give(Number(key))) {
    event.preventDefault();
    return;
  }
  if (!entry && !deed) return;
  event.preventDefault();
  if (deed !== DEEDS.z) walk.stop();
  if (deed) deed.does();
  else session.take(entry.name);
}

function listen() {
  for (const [key, { button, does }] of Object.entries(DEEDS)) {
    at(button).addEventListener("click", () => {
      if (key !== "z") walk.stop();
      does();
    });
  }
  at("share").addEventListener("click", share);
  at("failing").addEventListener("change", draw);
  at("edition").addEventListener("change", () => session.reset({ edition: at("edition").value }));
  at("size").addEventListener("change", () => session.reset({ size: Number(at("size").value) }));
  document.addEventListener("keydown", press);
  addEventListener("hashchange", followAddress);
}

function open() {
  at("edition").replaceChildren(...material.machine.editions.map(({ name }) => make("option", { value: name }, name)));
  at("size").replaceChildren(...material.sizes.offered.map((size) => make("option", { value: size }, `${size} bytes`)));
  listen();
  ready = true;
  if (location.hash.length > 1) followAddress();
  else draw();
  if (material.opened) openTrace();
  performance.mark("interactive");
  (globalThis.requestIdleCallback ?? setTimeout)(complete);
}

/** Take up the trace that the page was made with; where it cannot be, say why in sight. */
function openTrace() {
  const problem = library.loadText(material.opened);
  if (!problem) return;
  session.unclear = [`The trace: ${problem.replace(/\.$/, "")}`];
  draw();
}

/** What is not needed at first sight: vectors, library and matrix. */
async function complete() {
  library.suites = await unpacked(at("vectors").textContent);
  whole = true;
  drawBelow();
  marks.update();
  library.listen();
  marks.listen();
  watchOverflow(["drawing", "blocks", "matrix"].map(at));
  document.body.dataset.complete = "";
  performance.mark("complete");
}

open();
