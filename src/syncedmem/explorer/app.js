/** The page: what is drawn after each change, and what its buttons and keys do. */

const WALK = { steps: 24, pause: 420 };
const machine = new Machine(JSON.parse(at("material").textContent));
const quiz = new Quiz(machine);
const buttons = new Map();
/** What single keys do; the calls get those that are left. */
const DEEDS = new Map([["u", undo], ["x", restart], ["z", () => (walking ? stop() : walk(WALK.steps))]]);
const KEYS = [..."1234567890abcdefghijklmnopqrstvwy"];
let session = new Session(machine);
let walking = null;

// --- drawing

function draw() {
  const { memory, records, last } = session;
  drawSides();
  for (const [entry, button] of buttons) drawCall(entry, button);
  foldCalls();
  drawStep(at("step"), machine, last);
  markDrawing();
  drawSteps();
  markMatrix(at("matrix"), session);
  for (const id of ["undo", "restart"]) at(id).disabled = !records.length;
  at("walk").disabled = memory.state === ENDED;
  at("glance").textContent = last ? `${last.number} ${last.entry.name}: ${summary(last)}` : verdict(machine, memory);
  at("live").textContent = last ? `${last.entry.name}: ${summary(last)}. ${verdict(machine, memory)}` : verdict(machine, memory);
  document.body.dataset.configuration = machine.nameOf(memory.state);
}

/** The head, and for each side whether it is fresh, what it holds, and its facts. */
function drawSides() {
  const { state, sides } = session.memory;
  const [fresh, holding] = [machine.fresh(state), machine.holding(state)];
  at("verdict").textContent = verdict(machine, session.memory);
  at("head").textContent = machine.nameOf(state);
  const lamp = ({ name }) => {
    const on = holding.includes(name);
    return make("li", { "data-fact": name, "data-set": String(on) }, make(`span.lamp${on ? ".on" : ""}`, { "aria-hidden": "true" }),
      make("span.mono", {}, breakable(name)), make("span.unseen", {}, on ? " is true" : " is false"));
  };
  const boxes = machine.sides.map((side) => {
    const badge = fresh.includes(side) ? "fresh" : sides[side] === NOTHING ? "empty" : machine.asks ? "stale" : "";
    return make("div.side", { "data-side": side, "data-fresh": String(fresh.includes(side)) },
      make("h3", {}, side, " ", badge && make(`span.badge.${badge}`, {}, badge)),
      make("p.holds", {}, make("span.soft", {}, "holds "), contentsOf(sides[side])),
      make("ul.facts", {}, machine.facts.filter((fact) => fact.side === side).map(lamp)));
  });
  const others = machine.facts.filter(({ side }) => !machine.sides.includes(side)).map(lamp);
  const settings = machine.settings.map(({ name }, k) => make("li", { "data-setting": name }, make("span.mono", {}, name), "is",
    make("span.mono", {}, state === ENDED ? "gone" : machine.states[state].settings[k])));
  fill(at("sides"), boxes);
  fill(at("others"), others, settings);
}

/** The buttons of the calls, by side; they stay, and only what they say changes. */
function makeCalls() {
  const groups = Map.groupBy(machine.entries, ({ setting, side }) => (setting ? `the ${setting}` : side || "all sides"));
  const alone = groups.size === 1; // the heading above says enough
  fill(at("call-list"), [...groups].map(([title, entries]) => make("fieldset.group",
    { style: `--calls: ${entries.length}`, "aria-labelledby": alone ? "calls-title" : null },
    alone ? null : make("legend", {}, title), make("div.group-calls", {}, entries.map(makeCall)))));
}

function makeCall(entry) {
  const key = KEYS.shift() ?? null;
  const name = make("span.name.mono", {}, make("span", {}, breakable(entry.name)), key && make("kbd", { "aria-hidden": "true" }, key));
  const look = { type: "button", "data-do": entry.name, "aria-keyshortcuts": key, click: () => call(entry) };
  const button = make("button.do", look, name, make("span.effect"));
  buttons.set(entry, button);
  if (key) DEEDS.set(key, () => call(entry));
  return make("div.call", {}, button, make("div.fails"));
}

/** What a call would do now, or why it would be refused; where the reader is asked first, nothing. */
function drawCall(entry, button) {
  const { reason, after, before, actions } = session.preview(entry);
  const hidden = quiz.asks(entry);
  button.classList.toggle("refused", Boolean(reason) && !hidden);
  button.toggleAttribute("aria-current", session.last?.entry === entry);
  const [to, from] = [after, before].map(({ state }) => machine.nameOf(state));
  const does = actions.map(({ name }) => name).join(", ");
  const says = reason ? [make("strong", {}, "refused"), `: ${breakable(reason)}`] : [does, " ", to === from ? "stays" : `→ ${to}`];
  button.title = hidden ? "" : reason;
  fill(button.lastChild, hidden ? "which sides are fresh then?" : says);
  const fails = at("failing").checked && !reason && !hidden && !entry.ends ? actions : [];
  fill(button.nextSibling, fails.map(({ name }, k) => make("button.fail", { type: "button", "data-fail": `${entry.name}!${k + 1}`,
    "aria-label": `${entry.name}, in which ${name} fails`, click: () => act(() => session.take(entry, k + 1)) }, `✗ ${name}`)));
}

/** Calls that have no row here are no buttons, but are named. */
function foldCalls() {
  const { state } = session.memory;
  const folded = [...buttons].filter(([entry]) => state !== ENDED && !machine.step(state, entry));
  const names = new Map(folded.map(([entry, button]) => [button, entry.name]));
  if (names.has(document.activeElement)) at("calls").focus();
  for (const button of buttons.values()) button.parentElement.hidden = names.has(button);
  for (const group of at("call-list").children) group.hidden = !group.querySelector(".call:not([hidden])");
  fill(at("folded"), names.size > 0 && make("details", {},
    make("summary", {}, `${names.size} ${names.size === 1 ? "call has" : "calls have"} no row here`),
    make("p.mono", {}, [...names.values()].map(breakable).join(", "))));
}

/** Mark the head, and the arrow of the last step, in the drawing that Python made. */
function markDrawing() {
  const { memory, last } = session;
  const place = at("drawing");
  const head = memory.state === ENDED ? null : machine.head(memory.state).name;
  const title = place.querySelector("title");
  title.dataset.of ??= title.textContent.replace(/, at [^]*?$/, "");
  title.textContent = `${title.dataset.of}, at ${head ?? "the end"}`;
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
    const goes = source !== null && arrow.dataset.dest === head && arrow.dataset.source.split("\n").includes(source);
    const names = [...arrow.querySelectorAll(".smd-call")];
    for (const name of names) name.parentElement.classList.toggle("called", goes && isCalled(name));
    arrow.classList.toggle("taken", goes && names.some(isCalled));
  }
}

/** Slide a drawing that is wider than its place, so that a box is in its middle. */
function slideTo(place, text) {
  const [box, frame] = [text.getBoundingClientRect(), place.getBoundingClientRect()];
  if (box.left < frame.left || box.right > frame.right) place.scrollLeft += box.left + box.width / 2 - frame.left - frame.width / 2;
  if (box.top < frame.top || box.bottom > frame.bottom) place.scrollTop += box.top + box.height / 2 - frame.top - frame.height / 2;
}

/** The list of steps: items stay, as long as their steps do. */
function drawSteps() {
  const [list, { records }] = [at("steps"), session];
  for (const item of [...list.children]) if (item.record !== records[item.record.number - 1]) item.remove();
  list.append(...records.slice(list.children.length).map(makeStep));
  at("history").hidden = !records.length;
  requestAnimationFrame(() => (list.scrollTop = list.scrollHeight));
}

function makeStep(record) {
  const item = make(`li${record.fail ? ".failed" : record.reason ? ".refused" : ""}`, {},
    make("span.number", {}, String(record.number)),
    make("span.what", {}, make("span.mono", {}, record.entry.name), make("span.soft", {}, ` ${summary(record)}`)),
    make("span.mono", {}, machine.nameOf(record.after.state)));
  return Object.assign(item, { record });
}

// --- what buttons and keys do

/** Do something, after a walk and a question have ended. */
function act(does) {
  stop();
  quiz.forget();
  does();
  draw();
}

function call(entry) {
  const take = () => (act(() => session.take(entry)), machine.fresh(session.memory.state));
  if (!quiz.asks(entry) || session.memory.state === ENDED) return void take();
  stop();
  return quiz.ask(entry, buttons.get(entry), take);
}

function undo() {
  act(() => session.records.pop());
}

function restart() {
  act(() => (session.records = []));
}

/** Go to a state by a shortest way, and make a call there. */
function visit(state, entry) {
  act(() => {
    session.records = [];
    for (const each of [...machine.way(state), entry]) session.take(each);
  });
}

/** Some steps that are not refused, slow enough to watch; where motion is not wanted, all at once. */
function walk(left) {
  const possible = session.possible();
  if (!left || !possible.length) return stop();
  act(() => session.take(possible[Math.floor(Math.random() * possible.length)]));
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return walk(left - 1);
  return showWalk(setTimeout(() => walk(left - 1), WALK.pause));
}

function stop() {
  clearTimeout(walking);
  showWalk(null);
}

function showWalk(timer) {
  walking = timer;
  at("walk").setAttribute("aria-pressed", String(Boolean(timer)));
  at("walk").querySelector(".says").textContent = timer ? "Stop" : "Random walk";
}

function press(event) {
  const { key, ctrlKey, metaKey, altKey, target } = event;
  if (ctrlKey || metaKey || altKey || !at("shortcuts").checked || target.closest("#question") || !DEEDS.has(key)) return;
  event.preventDefault();
  const button = [...document.querySelectorAll("[aria-keyshortcuts]")].find((it) => it.getAttribute("aria-keyshortcuts") === key);
  if (!button.disabled && !button.closest("[hidden]")) DEEDS.get(key)();
}

for (const button of document.querySelectorAll("#controls button")) {
  button.addEventListener("click", () => DEEDS.get(button.getAttribute("aria-keyshortcuts"))());
}
for (const id of ["failing", "asking"]) at(id).addEventListener("change", () => act(() => {}));
document.addEventListener("keydown", press);
// What the machine cannot do is not offered.
at("asking").closest("label").hidden = !machine.asks;
at("failing").closest("label").hidden = !machine.undoes;
makeCalls();
drawMatrix(at("matrix"), machine, visit);
draw();
