/** The quiz: before a step is shown, the reader says which sides are fresh after it. */

import { callText } from "./calls.js";
import { at, capital, fill, make } from "./element.js";
import { verdict } from "./sides.js";

export class Quiz {
  constructor(session) {
    Object.assign(this, { session, right: 0, asked: 0, from: null });
  }

  /** Switch it on or off; the score begins anew when it is switched on. */
  toggle() {
    const { session } = this;
    if (!session.quizzing) Object.assign(this, { right: 0, asked: 0 });
    session.quizzing = !session.quizzing;
    session.go(session.cursor);
  }

  /** The answers that there are: every set of sides, with the words for it. */
  get answers() {
    const { machine } = this.session;
    const names = machine.sides.map(({ name }) => name);
    const sets = names.reduce((found, name) => [...found, ...found.map((it) => [...it, name])], [[]]);
    return sets.sort((a, b) => (a.length || Infinity) - (b.length || Infinity)).map((sides) => ({ sides, text: setText(machine, sides) }));
  }

  /** Answer what is asked, by the number of the answer from one; false if there is no such answer, or no question. */
  give(number) {
    const { session, answers } = this;
    const { record, show } = session.asked ?? {};
    const given = answers[number - 1];
    if (!record || !given) return false;
    const fresh = session.machine.freshSides(record.after.state);
    const right = setText(session.machine, fresh) === given.text;
    this.asked += 1;
    this.right += right ? 1 : 0;
    show();
    const truth = verdict(session);
    session.answer = { right, text: right ? `Right. ${truth}` : `Not so: you said ${given.text}. ${truth}` };
    session.changed();
    return true;
  }

  /** Take the question back; it does not count. */
  drop() {
    this.session.go(this.session.cursor);
  }

  /** The score so far, in words. */
  get score() {
    return `${this.right} of ${this.asked} right`;
  }

  draw() {
    const { session } = this;
    const { asked, quizzing } = session;
    at("quiz").setAttribute("aria-pressed", String(quizzing));
    at("score").hidden = !quizzing;
    fill(at("score"), session.answer && drawAnswer(session.answer), make("span.soft", {}, this.score));
    document.body.toggleAttribute("data-quiz", quizzing);
    const open = Boolean(asked);
    if (open) this.drawQuestion(asked.record);
    at("moves").hidden = open;
    if (open === !at("question").hidden) return;
    at("question").hidden = !open;
    if (open) this.from = document.activeElement;
    const target = open ? at("answers").querySelector("button") : this.from;
    target?.focus({ preventScroll: true });
  }

  drawQuestion({ entry }) {
    fill(at("asked"), make("span.mono", {}, callText(entry)), ": which side is fresh now?");
    const buttons = this.answers.map(({ text }, k) =>
      make("button", { type: "button", "data-answer": text, click: () => this.give(k + 1) }, capital(text), " ", make("kbd", { "aria-hidden": "true" }, String(k + 1))),
    );
    fill(at("answers"), buttons, make("button.link", { type: "button", id: "drop", click: () => this.drop() }, "Cancel"));
  }
}

const drawAnswer = ({ right, text }) => make(`strong${right ? "" : ".wrong"}`, { "data-right": String(right) }, right ? "✓ " : "✗ ", text);

/** A set of sides in words: of two sides, these are their names, both and neither. */
function setText(machine, sides) {
  const two = machine.sides.length === 2;
  if (!sides.length) return two ? "neither" : "none";
  if (sides.length === machine.sides.length && sides.length > 1) return two ? "both" : "all";
  return sides.map((name) => machine.titleOf(name)).join(" and ");
}
