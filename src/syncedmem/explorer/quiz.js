/** The mode that asks first: which sides are fresh after a call?  The call is made when there is an answer. */

class Quiz {
  constructor(machine) {
    Object.assign(this, { machine, asked: 0, right: 0 });
  }

  /** Whether a call is one to ask about. */
  asks(entry) {
    return at("asking").checked && !entry.setting && !entry.ends;
  }

  /** Ask, and then make the call by what is given, which returns the sides that are fresh. */
  ask(entry, button, take) {
    const boxes = this.machine.sides.map((side) => make("label.switch", {}, make("input", { type: "checkbox", value: side }), side));
    const leave = () => (this.forget(), button.focus());
    const answer = (event) => {
      event.preventDefault();
      const said = boxes.map((label) => label.firstChild).filter(({ checked }) => checked).map(({ value }) => value);
      this.judge(entry, said, take());
      button.focus();
    };
    fill(at("question"), make("form", { submit: answer }, make("fieldset", {},
      make("legend", {}, "Which sides are fresh after ", make("span.mono", {}, entry.name), "?"),
      make("div.buttons", {}, boxes, make("button", {}, "Answer"), make("button", { type: "button", click: leave }, "Never mind")))));
    at("question").hidden = false;
    boxes[0].firstChild.focus();
  }

  judge(entry, said, fresh) {
    const right = said.length === fresh.length && said.every((side) => fresh.includes(side));
    this.asked += 1;
    this.right += right;
    const truth = right ? "Right" : `Not so: you said ${listed(said, "no side")}`;
    fill(at("question"), make(`p.${right ? "right-answer" : "refusal"}`, { "data-right": String(right) },
      make("strong", {}, `${truth}. `), `Fresh after ${entry.name}: ${listed(fresh, "no side")}. ${this.right} of ${this.asked} right.`));
    at("question").hidden = false;
    at("live").textContent = `${truth}. ${at("live").textContent}`;
  }

  forget() {
    at("question").hidden = true;
    fill(at("question"));
  }
}
