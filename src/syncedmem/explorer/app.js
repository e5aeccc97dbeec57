/** The page: what is drawn after each change, and what its buttons and keys do. */

import { at, breakable, counted, fill, listed, make } from "./element.js";
import { Library } from "./library.js";
import { ENDED, Machine } from "./machine.js";
import { cellsOf, drawMatrix, markMatrix } from "./matrix.js";
import { blocksOf } from "./memory.js";
import { Quiz } from "./quiz.js";
import { contentsOf, drawStep, summary, verdict } from "./said.js";
import { Session } from "./session.js";

const WALK = { steps: 24, pause: 420 };
const BETWEEN_ADDRESSES = 400;

const machine = new Machine(JSON.parse(at("material").textContent));
const session = new Session(machine, draw);
const quiz = new Quiz(session);
const buttons = new Map();
let tested = null;
let walking = null;
let writing = null;
let written = -Infinity;

// --- drawing

function draw() {
  const { memory, records, cursor, last } = session;
  drawSides();
  for (const [entry, button] of buttons) drawCall(entry, button);
  drawStep(at("step"), session);
  markDrawing();
  drawSteps();
  drawBlocks();
  if (tested) markMatrix(at("matrix"), session, machine.tests && tested);
  fill(at("banner"), make("strong", {}, session.title), " ", session.note);
  at("banner").hidden = !session.title;
  fill(at("unclear"), make("strong", {}, "Not understood:"), make("ul", {}, session.unclear.map((text) => make("li", {}, `${text}.`))));
  at("unclear").hidden = !session.unclear.length;
  at("undo").disabled = cursor === 0;
  at("forward").disabled = cursor === records.length;
  at("reset").disabled = !records.length;
  at("walk").disabled = memory.state === ENDED;
  at("totals").textContent = `${cursor} of ${counted(records.length, "step")}`;
  at("glance").textContent = last ? `${cursor} ${last.entry.name}: ${summary(machine, last)}` : verdict(machine, memory);
  at("live").textContent = last ? `${last.entry.name}: ${summary(machine, last)}. ${verdict(machine, memory)}` : "A fresh memory.";
  document.body.dataset.configuration = machine.nameOf(memory.state);
  writeAddress();
}

/** The head, and for each side whether it is fresh, what it holds, and its facts. */
function drawSides() {
  const { state, sides } = session.memory;
  const [fresh, holding] = [machine.fresh(state), machine.holding(state)];
  at("verdict").textContent = verdict(machine, session.memory);
  at("head").textContent = machine.nameOf(state);
  const lamp = ({ name }) => make("li", { "data-fact": name, "data-set": String(holding.includes(name)) },
    make(`span.lamp${holding.includes(name) ? ".on" : ""}`, { "aria-hidden": "true" }), make("span.mono", {}, name), make("span.unseen", {}, holding.includes(name) ? " is true" : " is false"));
  const boxes = machine.sides.map((side) => {
    const badge = fresh.includes(side) ? "fresh" : sides[side] === null ? "empty" : machine.asks ? "stale" : "";
    const facts = machine.facts.filter((fact) => fact.side === side);
    return make("div.side", { "data-side": side, "data-fresh": String(fresh.includes(side)) },
      make("h3", {}, side, " ", badge && make(`span.badge.${badge}`, {}, badge)),
      make("p.holds", {}, make("span.soft", {}, "holds "), contentsOf(sides[side])),
      facts.length > 0 && make("ul.facts", {}, facts.map(lamp)));
  });
  const others = machine.facts.filter(({ side }) => !machine.sides.includes(side)).map(lamp);
  const settings = machine.settings.map(({ name }, k) => make("li", { "data-setting": name }, make("span.mono", {}, name), " is ", make("span.mono", {}, state === ENDED ? "gone" : machine.states[state].settings[k])));
  fill(at("sides"), boxes);
  fill(at("others"), others, settings);
}

/** The buttons of the calls, by side; they stay, and only what they say changes. */
function makeCalls() {
  const keys = [..."1234567890abcdefghijklmopqrstvwy"];
  const groups = Map.groupBy(machine.entries.values(), ({ setting, side }) => (setting ? `the ${setting}` : side || "all sides"));
  const titled = (title) => (groups.size === 1 ? "Calls" : title);
  const made = [...groups].map(([title, entries]) =>
    make("fieldset.group", { style: `--calls: ${entries.length}` }, make("legend", {}, titled(title)), make("div.group-calls", {}, entries.map((entry) => {
      const key = keys.shift() ?? null;
      const name = make("span.name.mono", {}, make("span", {}, breakable(entry.name)), key && make("kbd", { "aria-hidden": "true" }, key));
      const button = make("button.do", { type: "button", "data-do": entry.name, "aria-keyshortcuts": key, click: () => call(entry.name) }, name, make("span.effect"));
      buttons.set(entry, button);
      if (key) DEEDS[key] = { says: entry.name, does: () => call(entry.name) };
      return make("div.call", {}, button, make("div.fails"));
    }))));
  fill(at("call-list"), made);
}

/** What a call would do now, or why it would be refused; where the reader is asked first, nothing. */
function drawCall(entry, button) {
  const { reason, after, before, actions } = session.preview(entry);
  const hidden = quiz.on && !entry.setting && !entry.ends;
  button.classList.toggle("refused", Boolean(reason) && !hidden);
  button.toggleAttribute("aria-current", session.last?.entry === entry);
  const [to, from] = [after, before].map(({ state }) => machine.nameOf(state));
  const does = actions.map(({ name }) => name).join(", ");
  const says = reason ? [make("strong", {}, "refused"), `: ${reason}`] : [does, does && " ", to === from ? "stays" : `→ ${to}`];
  button.title = hidden ? "" : reason;
  fill(button.lastChild, hidden ? "which sides are fresh then?" : says);
  const fails = at("failing").checked && !reason && !hidden ? actions : [];
  fill(button.nextSibling, fails.map(({ name }, k) => make("button.fail", { type: "button", "data-fail": `${entry.name}!${k + 1}`, "aria-label": `${entry.name}, in which ${name} fails`, click: () => call(entry.name, k + 1) }, `✗ ${name}`)));
}

/** Mark the head, and the arrow of the last step, in the drawing that Python made. */
function markDrawing() {
  const { memory, last } = session;
  const place = at("drawing");
  const head = memory.state === ENDED ? "" : machine.head(memory.state).name;
  const title = place.querySelector("title");
  title.dataset.of ??= title.textContent.replace(/, at [^]*?$/, "");
  title.textContent = `${title.dataset.of}, at ${head || "the end"}`;
  const source = last && !last.fail && !last.reason && last.before.state !== ENDED ? machine.head(last.before.state).name : null;
  const isCalled = ({ textContent }) => textContent.split(" /")[0] === last.entry.name || textContent === last.entry.call;
  for (const text of place.querySelectorAll(".smd-name")) {
    const here = text.textContent === head;
    text.previousElementSibling.classList.toggle("here", here);
    if (here) requestAnimationFrame(() => slideTo(place, text));
    for (let line = text.nextElementSibling; line?.querySelector(".smd-brief"); line = line.nextElementSibling) {
      line.classList.toggle("called", here && source === head && isCalled(line.lastChild));
    }
  }
  for (const arrow of place.querySelectorAll("[data-source]")) {
    const taken = source !== null && head !== "" && arrow.dataset.dest === head && arrow.dataset.source.split(" ").includes(source);
    const names = [...arrow.querySelectorAll(".smd-call")].filter((it) => taken && isCalled(it));
    arrow.classList.toggle("taken", taken && names.length > 0);
    for (const name of arrow.querySelectorAll(".smd-call")) name.parentElement.classList.toggle("called", taken && names.includes(name));
  }
}

/** Slide a drawing that is wider than its place, so that a box is in its middle. */
function slideTo(place, text) {
  const [box, frame] = [text.getBoundingClientRect(), place.getBoundingClientRect()];
  if (box.left < frame.left || box.right > frame.right) place.scrollLeft += box.left + box.width / 2 - frame.left - frame.width / 2;
  if (box.top < frame.top || box.bottom > frame.bottom) place.scrollTop += box.top + box.height / 2 - frame.top - frame.height / 2;
}

/** The list of steps: items stay where they are, as long as their steps do. */
function drawSteps() {
  const { records, cursor } = session;
  const list = at("steps");
  const all = [null, ...records];
  let same = 0;
  while (same < list.children.length && same < all.length && list.children[same].record === all[same]) same += 1;
  while (list.children.length > same) list.lastChild.remove();
  list.append(...all.slice(same).map((record, k) => listStep(record, same + k)));
  for (const [k, { firstChild }] of [...list.children].entries()) {
    firstChild.classList.toggle("ahead", k > cursor);
    if (k === cursor) firstChild.setAttribute("aria-current", "step");
    else firstChild.removeAttribute("aria-current");
  }
  requestAnimationFrame(() => (list.scrollTop = list.children[cursor] ? list.children[cursor].offsetTop - list.clientHeight / 2 : 0));
}

function listStep(record, number) {
  const look = record?.fail ? ".failed" : record?.reason ? ".refused" : "";
  const what = record ? [make("span.mono", {}, record.entry.name), make("span.soft", {}, ` ${summary(machine, record)}`)] : make("span.soft", {}, "a fresh memory");
  const item = make("li", {}, make(`button.entry${look}`, { type: "button", "data-to": number, click: () => session.go(number) },
    make("span.number", {}, String(number)), make("span.what", {}, what), make("span.where.mono", {}, machine.nameOf(record ? record.after.state : 0))));
  item.record = record;
  return item;
}

function drawBlocks() {
  const blocks = blocksOf(session.records.slice(0, session.cursor));
  const live = blocks.filter(({ ours, end }) => ours && !end).length;
  at("balance").textContent = `${counted(live, "block")} of the memory's own live`;
  at("balance").dataset.live = live;
  const rows = blocks.map(({ side, ours, born, end }, k) => make("tr", {}, make("th", { scope: "row" }, `${k + 1}`), [side, ours ? "the memory" : "the caller", `step ${born}`, end || (ours ? "live" : "in use")].map((text) => make("td", {}, text))));
  const head = ["block", "side", "belongs to", "since", "state"].map((text) => make("th", { scope: "col" }, text));
  fill(at("blocks"), blocks.length ? make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)) : make("p.soft", {}, "Nothing was allocated or handed in yet."));
}

// --- the address

/** Browsers refuse many changes of the address in a short time, and some refuse all in pages of files. */
function writeAddress() {
  if (writing) return;
  const write = () => {
    [writing, written] = [null, performance.now()];
    try {
      if (location.hash !== session.address) history.replaceState(null, "", session.address);
    } catch {
      // The page works without; the link can still be copied.
    }
  };
  const wait = written + BETWEEN_ADDRESSES - performance.now();
  if (wait > 0) writing = setTimeout(write, wait);
  else write();
}

async function share() {
  const link = location.href.split("#")[0] + session.address;
  try {
    await navigator.clipboard.writeText(link);
    at("share").textContent = "Copied";
    setTimeout(() => (at("share").textContent = "Copy link"), 2000);
  } catch {
    prompt("Copy the link:", link);
  }
}

// --- what buttons and keys do

const DEEDS = {
  u: { button: "undo", says: "undo", does: () => session.go(session.cursor - 1) },
  n: { button: "forward", says: "next step of a trace, or redo", does: () => session.go(session.cursor + 1) },
  x: { button: "reset", says: "start again", does: () => session.begin([]) },
  z: { button: "walk", says: "random walk, or stop it", does: () => (walking ? stop() : walk(WALK.steps)) },
  "?": { button: "help-open", says: "this help", does: () => at("help").showModal() },
};

function call(name, fail = 0) {
  stop();
  quiz.forget();
  if (fail || !quiz.ask(name, at("call-list").querySelector(`[data-do="${CSS.escape(name)}"]`))) session.take(name, fail);
}

/** Some steps that are not refused, slow enough to watch; where motion is not wanted, all at once. */
function walk(left) {
  const possible = session.memory.state === ENDED ? [] : session.possible();
  if (!left || !possible.length) return stop();
  session.take(possible[Math.floor(Math.random() * possible.length)].name);
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return walk(left - 1);
  walking = setTimeout(() => walk(left - 1), WALK.pause);
  return showWalk();
}

function stop() {
  clearTimeout(walking);
  walking = null;
  showWalk();
}

function showWalk() {
  at("walk").setAttribute("aria-pressed", String(Boolean(walking)));
  at("walk").lastChild.textContent = walking ? " Stop" : " Random walk";
}

function press(event) {
  const { key, ctrlKey, metaKey, altKey, target } = event;
  if (metaKey || altKey || target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
  const undoing = ctrlKey && key === "z";
  const deed = undoing ? DEEDS.u : DEEDS[key];
  if (!deed || ((ctrlKey || !at("shortcuts").checked) && !undoing)) return;
  event.preventDefault();
  run(deed);
}

function run({ button, does }) {
  if (button !== "walk") stop();
  quiz.forget();
  does();
}

function listen() {
  for (const deed of Object.values(DEEDS)) if (deed.button) at(deed.button).addEventListener("click", () => run(deed));
  at("share").addEventListener("click", share);
  at("failing").addEventListener("change", draw);
  at("asking").addEventListener("change", () => run({ does: draw }));
  at("missed").addEventListener("click", () => {
    at("missed").setAttribute("aria-pressed", String(at("missed").getAttribute("aria-pressed") !== "true"));
    draw();
  });
  document.addEventListener("keydown", press);
  addEventListener("hashchange", () => location.hash !== session.address && session.follow(location.hash));
}

/** What does not change: what the machine cannot do is not offered. */
function open() {
  listen();
  makeCalls();
  at("asking").closest("label").hidden = !machine.asks;
  at("failing").closest("label").hidden = !machine.undoes;
  at("allocations").hidden = !machine.actions.some(({ does }) => does === "allocate" || does === "adopt");
  at("missed").hidden = !machine.tests?.length;
  at("about").textContent = `syncedmem ${machine.version}. ${machine.about ? `${machine.about}. ` : ""}${machine.cite ? `Source: ${machine.cite}.` : ""}`;
  const row = (key, says) => make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, key)), make("td.mono", {}, says));
  fill(at("keys"), make("table", {}, make("tbody", {}, Object.entries(DEEDS).map(([key, { says }]) => row(key, says)))));
  fill(at("counts"), listed(Object.entries(machine.counts).map(([name, count]) => `${count.toLocaleString("en")} ${name}`)), ".");
  fill(at("laws"), machine.laws.map((text) => make("li", {}, `✓ ${text}`)));
  if (location.hash.length > 1) session.follow(location.hash);
  else draw();
  performance.mark("interactive");
  complete();
}

/** What is not needed at first sight: the table of all cells, the vectors, and the trace that the page was made with. */
async function complete() {
  const visit = (state, name) => {
    const calls = [...machine.way(state), name].map((it) => ({ name: it, fail: 0 }));
    session.begin(calls, { at: calls.length });
  };
  const bytes = Uint8Array.from(atob(at("vectors").textContent), (letter) => letter.charCodeAt(0));
  const suites = await new Response(new Response(bytes).body.pipeThrough(new DecompressionStream("deflate"))).json();
  drawMatrix(at("matrix"), machine, visit);
  tested = cellsOf(machine, (machine.tests ?? []).map(({ calls }) => calls));
  markMatrix(at("matrix"), session, machine.tests && tested);
  new Library(session, suites);
  document.body.dataset.complete = "";
}

open();
