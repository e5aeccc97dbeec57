// Reads {machine, cases: [{value, context, event}]} and prints what XState does in each case.
import { readFileSync } from "node:fs";
import { assign, createActor, setup } from "xstate";

const { machine: config, cases } = JSON.parse(readFileSync(0, "utf8"));
let actions = [];
let refusal = null;

const perform = assign(({ context }, { action, sets = {}, by_setting = {} }) => {
  if (action !== null) actions.push(action);
  const set = ([name, value]) => context[name] === value;
  const decided = Object.entries(by_setting).map(([fact, when]) => [fact, Object.entries(when).every(set)]);
  return { ...sets, ...Object.fromEntries(decided) };
});
const refuse = (_, params) => {
  refusal = params.refusal;
};
const met = ({ context, event }, asked) =>
  Object.entries(asked).every(([name, value]) => (name === "data" ? event.data === true : context[name]) === value);

const machine = setup({ actions: { perform, refuse }, guards: { met } }).createMachine(config);
const found = cases.map(({ value, context, event }) => {
  actions = [];
  refusal = null;
  const actor = createActor(machine, { snapshot: machine.resolveState({ value, context }) }).start();
  actor.send(event);
  const after = actor.getSnapshot();
  return { value: after.value, context: after.context, actions, refusal };
});
console.log(JSON.stringify({ initial: createActor(machine).start().getSnapshot().value, found }));
