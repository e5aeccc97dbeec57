/** A random walk, slow enough to watch; where motion is not wanted, all at once. */

const STEPS = 24;
const PAUSE = 420;

export class Walk {
  constructor(session, told) {
    this.session = session;
    this.told = told;
    this.timer = null;
  }

  toggle() {
    if (this.timer) this.stop();
    else if (this.session.quizzing) this.step();
    else if (matchMedia("(prefers-reduced-motion: reduce)").matches) for (let k = 0; k < STEPS; k += 1) this.step();
    else this.run(STEPS);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.told(false);
  }

  run(left) {
    if (!left || !this.step()) {
      this.stop();
      return;
    }
    this.told(true);
    this.timer = setTimeout(() => this.run(left - 1), PAUSE);
  }

  /** One step, of those that are not refused; whether there was one. */
  step() {
    const possible = this.session.possible();
    if (!possible.length) return false;
    this.session.take(possible[Math.floor(Math.random() * possible.length)].name);
    return true;
  }
}
