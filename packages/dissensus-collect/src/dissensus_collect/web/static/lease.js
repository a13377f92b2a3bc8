// How long an item belongs to this person. Only signs of a person prolong it: a page that was left open must not keep an
// item from everybody else for ever.

const SIGNS = ["keydown", "click", "pointerdown", "pointermove", "wheel", "touchmove"];
const AHEAD = 60_000;

export class LeaseClock {
  /** `beat()` tells the server; `warn(state)` hears "held", "ending" and "over". */
  constructor(beat, warn) {
    this.beat = beat;
    this.warn = warn;
    this.state = "held";
    this.stop();
    for (const sign of SIGNS) addEventListener(sign, () => this.#stirred(), { passive: true, capture: true });
    document.addEventListener("visibilitychange", () => document.hidden || this.#stirred());
  }

  /** The item is held for `seconds`; signs of life are sent at least `apart` seconds apart. */
  start(seconds, apart) {
    this.running = true;
    this.apart = 1000 * Math.min(apart, seconds / 2);
    this.beaten = performance.now();
    this.#until(seconds);
  }

  stop() {
    this.running = false;
    clearTimeout(this.timer);
    this.#say("held");
  }

  #until(seconds) {
    clearTimeout(this.timer);
    const left = seconds * 1000;
    const ahead = Math.min(AHEAD, left / 2);
    this.#say("held");
    this.timer = setTimeout(() => {
      this.#say("ending");
      this.timer = setTimeout(() => this.#say("over"), ahead);
    }, left - ahead);
  }

  #say(state) {
    if (state !== this.state) this.warn(state);
    this.state = state;
  }

  async #stirred() {
    if (!this.running || this.beating) return;
    if (performance.now() - this.beaten < this.apart) return;
    this.beating = true;
    this.beaten = performance.now();
    const lease = await this.beat();
    this.beating = false;
    if (!this.running || lease === null) return;
    if (lease.held) this.#until(lease.expires_in);
    else {
      clearTimeout(this.timer);
      this.#say("over");
    }
  }
}
