// The times of one item, in milliseconds of a monotonic clock (performance.now), from the first frame in which the item
// could be seen.

let frame = 0;

/** The measured time between two frames of this screen, in ms; 0 until it is known. */
export const frameInterval = () => frame;

export function measureFrames(count = 24) {
  const stamps = [];
  const step = (now) => {
    stamps.push(now);
    if (stamps.length <= count) requestAnimationFrame(step);
    else frame = Math.round(((stamps.at(-1) - stamps[0]) / count) * 100) / 100;
  };
  requestAnimationFrame(step);
}

export class Stopwatch {
  /** `before`: what this page had already measured before a reload. */
  constructor(before = {}) {
    this.begun = performance.now() - (before.total ?? 0);
    this.hidden = before.hidden ?? 0;
    this.hiddenSince = document.hidden ? performance.now() : null;
    this.first = { ...before.first };
    this.last = { ...before.last };
    this.changes = { ...before.changes };
    this.inputs = { ...before.inputs };
  }

  now() {
    return Math.round((performance.now() - this.begun) * 10) / 10;
  }

  answered(name, input) {
    const now = this.now();
    if (this.first[name] === undefined) {
      this.first[name] = now;
      this.changes[name] = 0;
    } else this.changes[name] += 1;
    this.last[name] = now;
    this.inputs[input] = (this.inputs[input] ?? 0) + 1;
  }

  visibility() {
    if (document.hidden) this.hiddenSince ??= performance.now();
    else if (this.hiddenSince !== null) {
      this.hidden += performance.now() - this.hiddenSince;
      this.hiddenSince = null;
    }
  }

  hiddenTime() {
    const still = this.hiddenSince === null ? 0 : performance.now() - this.hiddenSince;
    return Math.round((this.hidden + still) * 10) / 10;
  }

  /** For a reload: everything, to be handed to the next stopwatch. */
  kept() {
    const { first, last, changes, inputs } = this;
    return { total: this.now(), hidden: this.hiddenTime(), first, last, changes, inputs };
  }

  /** The fields of an answer that are about time, as the server reads them. */
  times() {
    const [input] = Object.entries(this.inputs).sort((a, b) => b[1] - a[1])[0] ?? ["mouse"];
    return {
      first: this.first,
      last: this.last,
      changes: this.changes,
      total_ms: this.now(),
      hidden_ms: this.hiddenTime(),
      input,
      window: [innerWidth, innerHeight, devicePixelRatio],
      frame_ms: frame,
    };
  }
}
