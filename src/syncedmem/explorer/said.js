/** What is said of a step, in words of the machine. */

const DOES = {
  __proto__: null,
  allocate: ({ side }) => `allocates ${side}`,
  zero: ({ side }) => `fills ${side} with zeros`,
  copy: ({ side, source, queued }) => `${queued ? "queues a copy" : "copies"} from ${source} to ${side}`,
  adopt: ({ side }) => `takes the caller's buffer as ${side}`,
  free: ({ side }) => `frees ${side}`,
  wait: () => "waits for queued copies",
};

/** What a side holds, in a few words. */
const contentsOf = (held) => (held === null ? "nothing" : typeof held === "number" ? `what step ${held} wrote` : held);

/** A step in one line. */
function summary({ reason, fail, actions, entry, before, after }) {
  if (reason) return `refused: ${reason}`;
  if (fail) return `${actions[fail - 1].name} failed`;
  const done = actions.map(({ name }) => name).join(", ");
  return done || (entry.setting ? `${entry.setting} is ${entry.value}` : before.state === after.state ? "nothing to do" : "no action");
}

/** Only a machine with sides is about a memory. */
const endOf = ({ sides }) => (sides.length ? "the memory is released" : "this is the end");

/** Which head it is, and which sides are fresh, in a sentence. */
function verdict(machine, { state }) {
  if (state === ENDED) return `${endOf(machine)}.`.replace(/^t/, "T");
  const { name, fresh } = machine.head(state);
  return machine.asks ? `${name}. Fresh: ${listed(fresh, "no side")}.` : `${name}.`;
}

/** All that there is to say about the last step: what fired, because of what, and what became of it. */
function drawStep(place, machine, last) {
  if (!last) return fill(place, make("p.soft", {}, `The machine is in ${machine.head(0).name}. Make a call.`));
  const { entry, number, before, after, row, actions, reason, fail, written } = last;
  const path = [...new Set([before, after].map(({ state }) => machine.nameOf(state)))].join(" → ");
  return fill(
    place,
    make("p.headline", {}, make("span.soft", {}, `Step ${number}`), " ", make("strong.mono", {}, entry.name), " ", make("span.soft.mono", {}, path)),
    reason && make("p.refusal", {}, make("strong", {}, "Refused: "), `${reason}. Nothing has changed.`),
    make("p.because", {}, make("strong", {}, "Because "), because(machine, last), "."),
    actions.length > 0 && make("ol.actions", {}, actions.map((action, k) => drawAction(action, k + 1, fail))),
    !reason && !actions.length && !entry.setting && make("p.soft", {}, "No action is needed."),
    fail > 0 && make("p.failure", {}, make("strong", {}, `${actions[fail - 1].name} failed. `), "The call is undone: head, facts and contents are as they were."),
    !reason && !fail && make("ul.became", {}, became(machine, last).map((text) => make("li", {}, text))),
    written && !fail && make("p.soft", {}, `The caller writes to ${written}: it holds ${contentsOf(after.sides[written])}.`),
    row?.cite && drawSource(machine, row.cite),
  );
}

/** The row that fired, and why it did and no other. */
function because(machine, { entry, row, before }) {
  if (before.state === ENDED) return endOf(machine);
  if (entry.setting) return `${entry.setting} is set, which every state allows`;
  const head = ["the head is ", make("span.mono", {}, machine.head(before.state).name)];
  if (!row) return [head, ", where the machine has no row for the call"].flat();
  const holds = (name, value) => [make("span.mono", {}, name), value ? " is true" : " is false"];
  const met = [...row.when.map((name) => holds(name, true)), ...row.unless.map((name) => holds(name, false))];
  const conditions = met.flatMap((words, k) => [k + 1 === met.length ? " and " : ", ", ...words]);
  return [...head, ...conditions, " (row ", make("span.mono", { "data-row": row.id }, row.id), ")"];
}

function drawAction(action, number, fail) {
  const outcome = !fail || number < fail ? "done" : number === fail ? "failed" : "not tried";
  const says = outcome === "done" ? DOES[action.does]?.(action) : outcome;
  const look = { "data-action": action.name, "data-outcome": outcome };
  return make(`li.${outcome.replace(" ", "-")}`, look, make("span.mono", {}, action.name), says && make("span.soft", {}, ` ${says}`));
}

/** Which sides became fresh or stale, and which facts changed. */
function became(machine, { before, after }) {
  const [was, is] = [before, after].map(({ state }) => machine.fresh(state));
  const [had, has] = [before, after].map(({ state }) => machine.holding(state));
  const gone = machine.sides.filter((side) => before.sides[side] !== NOTHING && after.sides[side] === NOTHING);
  const groups = {
    "Now fresh": is.filter((side) => !was.includes(side)),
    "Still fresh": is.filter((side) => was.includes(side)),
    "Now stale": was.filter((side) => !is.includes(side) && !gone.includes(side)),
    "Now empty": gone,
    "Now true": has.filter((fact) => !had.includes(fact)),
    "Now false": had.filter((fact) => !has.includes(fact)),
  };
  const found = Object.entries(groups).filter(([, names]) => names.length);
  return found.map(([title, names]) => [`${title}: `, make("span.mono", {}, listed(names))]);
}

/** Where the original says so; with links, if it is known where its files are. */
function drawSource({ files = {} }, cite) {
  const places = [...cite.matchAll(/(\w+\.\w+):(\d[\d, -]*)/g)].filter(([, file]) => Object.hasOwn(files, file));
  const links = places.flatMap(([, file, lines]) =>
    [...lines.matchAll(/(\d+)(?:-(\d+))?/g)].map(([text, first, last]) =>
      make("a", { href: `${files[file]}#L${first}-L${last ?? first}`, target: "_blank", rel: "noreferrer" }, `${file}:${text}`)));
  return make("p.source", {}, make("span.soft", {}, "Source: "), links.length ? links.flatMap((link) => [link, " "]) : cite);
}
