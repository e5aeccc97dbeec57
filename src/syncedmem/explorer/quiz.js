/** The mode that asks first: which sides are fresh after a call?  The call is made when there is an answer. */

import { at, fill, listed, make } from "./element.js";
import { ENDED } from "./machine.js";

export class Quiz {
  constructor(session) {
    Object.assign(this, { session, asked: 0, right: 0 });
  }

  get on() {
    return this.session.machine.asks && at("asking").checked;
  }

  /** Ask about a call, if it is one to ask about; whether it is. */
  ask(name, button) {
    const { machine } = this.session;
    const entry = machine.entries.get(name);
    if (!this.on || entry.setting || entry.ends || this.session.memory.state === ENDED) return false;
    const boxes = machine.sides.map((side) => make("label.switch", {}, make("input", { type: "checkbox", value: side }), ` ${side}`));
    const form = make(
      "form", { submit: (event) => this.answer(event, name, boxes, button) },
      make("fieldset", {},
        make("legend", {}, "Which sides are fresh after ", make("span.mono", {}, name), "?"),
        make("div.buttons", {}, boxes, make("button", {}, "Answer"), make("button", { type: "button", click: () => this.leave(button) }, "Never mind"))),
    );
    fill(at("question"), form);
    at("question").hidden = false;
    boxes[0].firstChild.focus();
    return true;
  }

  answer(event, name, boxes, button) {
    event.preventDefault();
    const { session } = this;
    const said = boxes.map((label) => label.firstChild).filter(({ checked }) => checked).map(({ value }) => value);
    session.take(name);
    const fresh = session.machine.fresh(session.memory.state);
    const right = String(said) === String(session.machine.sides.filter((side) => fresh.includes(side)));
    this.asked += 1;
    this.right += right;
    const truth = right ? "Right" : `Not so: you said ${listed(said, "no side")}`;
    const score = `${this.right} of ${this.asked} right.`;
    fill(at("question"), make(`p.${right ? "right-answer" : "refusal"}`, { "data-right": String(right) },
      make("strong", {}, `${truth}. `), `Fresh after ${name}: ${listed(fresh, "no side")}. ${score}`));
    at("live").textContent = `${truth}. ${at("live").textContent}`;
    button?.focus();
  }

  leave(button) {
    this.forget();
    button?.focus();
  }

  forget() {
    at("question").hidden = true;
    at("question").replaceChildren();
  }
}
