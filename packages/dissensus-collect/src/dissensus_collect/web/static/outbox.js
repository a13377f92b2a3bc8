// Answers that the server has not acknowledged yet. They are kept on this device before they are sent, so that a lost
// connection, a reload or a crash of the tab loses nothing; the server knows each by its uuid and stores it once.

import { post } from "./connection.js";

const SLOWEST = 15_000;

export class Outbox {
  /** `tell({waiting, state, data})` hears of every change; `state` is "saving", "offline" or "saved". */
  constructor(session, tab, tell) {
    this.key = `dissensus-outbox-${session}`;
    this.tab = tab;
    this.tell = tell;
    this.running = null;
    this.tries = 0;
    addEventListener("online", () => this.wake?.());
  }

  waiting() {
    try {
      return JSON.parse(localStorage.getItem(this.key) ?? "[]");
    } catch {
      return [];
    }
  }

  put(body) {
    localStorage.setItem(this.key, JSON.stringify([...this.waiting(), body]));
  }

  remove(uuid) {
    localStorage.setItem(this.key, JSON.stringify(this.waiting().filter((each) => each.uuid !== uuid)));
  }

  /** Send everything, for as long as it takes; resolves to the last answer of the server, or null for none. */
  flush() {
    this.running ??= this.#sendAll().finally(() => (this.running = null));
    return this.running;
  }

  async #sendAll() {
    let last = null;
    for (let [body] = this.waiting(); body !== undefined; [body] = this.waiting()) {
      this.#say("saving");
      let answer = null;
      try {
        answer = await post("/api/save", { ...body, tab: this.tab });
      } catch {
        answer = null;
      }
      if (answer === null || answer.status === 429 || answer.status >= 500) {
        this.tries += 1;
        this.#say("offline", answer?.data);
        await this.#pause(Math.min(SLOWEST, 500 * 2 ** Math.min(this.tries, 6)));
        continue;
      }
      this.tries = 0;
      if (answer.status === 401) return answer;
      this.remove(body.uuid);
      last = answer;
    }
    this.#say("saved");
    return last;
  }

  #say(state, data = {}) {
    this.tell({ state, waiting: this.waiting().length, data, tries: this.tries });
  }

  #pause(milliseconds) {
    return new Promise((resume) => {
      const timer = setTimeout(resume, milliseconds);
      this.wake = () => {
        clearTimeout(timer);
        resume();
      };
    });
  }
}
