// The item screen: shows an item, takes its answers, and says when all of them are there. Practice and work share it.

import { layoutOf } from "./layouts.js";
import { Several } from "./several.js";
import { Stopwatch } from "./stopwatch.js";
import { say } from "./words.js";
import { zoomable } from "./zoom.js";

const at = (id) => document.getElementById(id);
const PHONE = matchMedia("(max-width: 52rem)");
const SIZE = { desktop: 352, phone: 168 };

export const project = JSON.parse(at("main").dataset.project);
/** A text of the project in the language of the page. */
export const told = (text) => project.told[text] ?? text;

/** A text or an image, under its name for those who do not see it; `label` is written above it. */
async function part(item, name, label = "") {
  const whole = document.createElement("div");
  whole.className = "look";
  if (label) whole.append(Object.assign(document.createElement("b"), { textContent: label }));
  if (item.src) {
    const image = new Image();
    image.alt = name;
    image.src = item.src;
    image.draggable = false;
    await image.decode();
    whole.append(zoomable(image));
  } else {
    const text = document.createElement("div");
    Object.assign(text, { className: "text", dir: "auto", tabIndex: 0, textContent: item.text });
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", name);
    whole.append(text);
  }
  return whole;
}

export class Screen {
  /** `next(answers)` and `changed()` are the owner's; answers are as the server reads them. */
  constructor({ next, changed = () => {}, problem = null, back = null }) {
    this.owner = { next, changed };
    this.layout = null;
    this.busy = true;
    this.shortcuts = project.shortcuts && localStorage.getItem("dissensus-shortcuts") !== "off";
    this.#keyboard();
    at("next").addEventListener("click", () => this.#next());
    document.addEventListener("visibilitychange", () => this.watch?.visibility());
    PHONE.addEventListener("change", () => this.#fit());
    this.#legend();
    if (problem) this.#problems(problem);
    at("back").hidden = back === null;
    at("back").addEventListener("click", () => this.busy || back?.());
  }

  /** Show an item; `kept` is what the page knew about it before a reload. Resolves when the clock has started. */
  async show(item, classes, { kept = null, draft = null } = {}) {
    this.busy = true;
    at("shown").classList.add("waiting");
    await this.#draw(item);
    const shown = classes.map((each) => ({ ...each, name: told(each.name) }));
    const questions = project.questions.map((asked) => ({
      ...asked,
      question: told(asked.question),
      scale: { ...asked.scale, low: told(asked.scale.low), high: told(asked.scale.high) },
    }));
    const spoken = { ...project, questions, reason: { ...project.reason, question: told(project.reason.question) } };
    const changed = (id, input) => this.#changed(id, input);
    const alone = questions.length === 1 && project.reason.ask === "off";
    this.layout = alone
      ? layoutOf(at("answers"), shown, spoken, questions[0], changed)
      : new Several(at("answers"), shown, spoken, changed);
    this.layout.complete = () => at("next").focus({ preventScroll: true });
    this.layout.allNo = () => this.allNo?.();
    const values = kept?.values ?? draft;
    if (values) this.layout.restore(values);
    if (kept?.reason) this.layout.say(kept.reason);
    await new Promise((drawn) => {
      // A hidden tab draws no frame; its time begins now and counts as hidden.
      if (document.hidden) drawn();
      else requestAnimationFrame(drawn);
    });
    at("shown").classList.remove("waiting");
    at("answers").inert = false;
    this.watch = new Stopwatch(kept?.times);
    this.busy = false;
    this.#left();
    window.scrollTo(0, 0);
    this.layout.start();
  }

  /** Put the focus back on the answers. */
  focus() {
    this.layout?.start();
  }

  /** Carry on with the same item after a comment on it. */
  resume() {
    this.busy = false;
    at("answers").inert = false;
    at("next").focus({ preventScroll: true });
  }

  /** What a reload needs in order to carry on. */
  kept() {
    const values = this.layout.draft ? this.layout.draft() : this.layout.values();
    return { values, ...this.layout.extra?.(), times: this.watch.kept() };
  }

  async #draw(item) {
    const frame = at("frame");
    document.body.classList.toggle("pairs", item.kind === "pair");
    if (item.kind !== "pair") {
      frame.replaceChildren(await part(item, item.src ? say("The image to judge") : say("The text to judge")));
      this.#fit();
      return;
    }
    const sides = document.createElement("div");
    sides.className = "sides";
    for (const [place, side] of item.sides.entries()) sides.append(await part(side, "AB"[place], "AB"[place]));
    frame.replaceChildren(...(item.prompt ? [await part({ text: item.prompt }, say("The text to judge"))] : []), sides);
  }

  /** Enlarge a small image by a whole number, so that all of its pixels are equally large. */
  #fit() {
    const image = at("frame").querySelector("img");
    if (!image?.naturalWidth) return;
    const room = PHONE.matches ? SIZE.phone : SIZE.desktop;
    const times = Math.floor(room / Math.max(image.naturalWidth, image.naturalHeight));
    image.classList.toggle("tiny", times > 1 && project.rendering === "pixelated");
    image.width = times > 1 ? image.naturalWidth * times : image.naturalWidth;
    image.height = times > 1 ? image.naturalHeight * times : image.naturalHeight;
    image.closest(".zoomed")?.classList.toggle("small", times > 1);
  }

  #changed(id, input) {
    if (input !== null) this.watch.answered(id, input);
    this.#left();
    this.owner.changed();
  }

  /** What is left, in words; the button says the same by being unavailable. */
  #left(said = false) {
    const missing = this.layout.missing();
    const place = at("left");
    const [next] = [at("next")];
    next.setAttribute("aria-disabled", String(missing.length > 0));
    place.classList.toggle("said", said && missing.length > 0);
    const jumps = missing.length <= 3 && !this.layout.reason ? missing : [];
    const count = say("{n} classes left", { n: missing.length });
    const sentence = !missing.length
      ? say("All answered")
      : this.layout.reason?.() ?? (this.layout.many !== undefined ? say("Choose an answer") : jumps.length ? `${count}:` : count);
    place.replaceChildren(sentence);
    for (const { id, name } of jumps) {
      const jump = document.createElement("button");
      jump.type = "button";
      jump.textContent = name;
      jump.setAttribute("aria-label", say("Go to {name}", { name }));
      jump.addEventListener("click", () => this.layout.focusOn(id));
      place.append(jump);
    }
    const names = jumps.map((each) => each.name).join(", ");
    const spoken = missing.length ? `${sentence} ${names}` : say("All answered. Press Enter to continue.");
    // After every answer would be too much talk: the count is spoken near the end, and whenever somebody asks.
    if (said || missing.length <= 3) at("spoken").textContent = said ? say("Not yet: {what}", { what: spoken }) : spoken;
  }

  #next() {
    if (this.busy) return;
    const missing = this.layout.missing();
    if (missing.length) {
      this.#left(true);
      this.layout.focusOn(missing[0].id);
      this.owner.incomplete?.(missing);
      return;
    }
    this.busy = true;
    // What is sent must be what was seen: nothing can be changed until the next item is there.
    at("answers").inert = true;
    this.owner.next({ values: this.layout.values(), ...this.layout.extra?.(), ...this.watch.times() });
  }

  #keyboard() {
    document.addEventListener("keydown", (event) => {
      if (this.busy || !this.layout || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (document.querySelector("dialog[open]")) return;
      const typing = event.target.matches("input[type=text], textarea, select");
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      if (key === "Enter") {
        // A focused button or link keeps its own meaning of Enter.
        if (event.target.closest("button, a, summary, textarea")) return;
        event.preventDefault();
        this.#next();
      } else if (this.layout.arrow(key)) event.preventDefault();
      else if (!this.shortcuts || typing || event.repeat) return;
      else if (key === "?") {
        event.preventDefault();
        at("legend").showModal();
      } else if (key === "Backspace") {
        event.preventDefault();
        this.layout.clearLast();
      } else if (this.layout.key(key)) event.preventDefault();
    });
  }

  #legend() {
    const dialog = at("legend");
    const tick = at("shortcuts");
    at("legend-open").hidden = !project.shortcuts;
    tick.checked = this.shortcuts;
    tick.addEventListener("change", () => {
      this.shortcuts = tick.checked;
      localStorage.setItem("dissensus-shortcuts", tick.checked ? "on" : "off");
    });
    at("legend-open").addEventListener("click", () => dialog.showModal());
    at("legend-close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => this.layout?.start());
    new MutationObserver(() => dialog.open && this.#fillLegend()).observe(dialog, { attributes: true });
  }

  #fillLegend() {
    const list = at("legend-keys");
    list.replaceChildren();
    const lines = [...this.layout.legend(), [["Backspace"], say("clear the last answer")], [["Enter"], say("next, when all is answered")]];
    for (const [keys, meaning] of lines) {
      const term = document.createElement("dt");
      keys.forEach((key, index) => {
        const cap = document.createElement("kbd");
        cap.textContent = key;
        term.append(...(index ? [" ", cap] : [cap]));
      });
      const about = document.createElement("dd");
      about.textContent = meaning;
      list.append(term, about);
    }
  }

  #problems(report) {
    const dialog = at("problem");
    at("problem-open").hidden = false;
    at("problem-open").addEventListener("click", () => this.busy || dialog.showModal());
    at("problem-close").addEventListener("click", () => dialog.close());
    at("problem-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const form = new FormData(event.target);
      const more = String(form.get("more") ?? "").trim();
      dialog.close();
      report([form.get("reason"), more].filter(Boolean).join(": "));
      event.target.reset();
    });
  }
}
