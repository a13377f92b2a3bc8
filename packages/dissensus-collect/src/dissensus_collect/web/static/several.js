// Several questions about one item, one below the other, and a reason in words: it behaves like one layout, and hands
// keys to the question in which the focus is.

import { layoutOf } from "./layouts.js";
import { say } from "./words.js";

const make = (tag, attributes = {}) => Object.assign(document.createElement(tag), attributes);

export class Several {
  constructor(place, classes, project, changed) {
    this.changed = changed;
    this.last = null;
    place.replaceChildren();
    this.parts = project.questions.map((asked, index) => {
      const section = make("section", { className: "part" });
      const inside = make("div", { className: "answers" });
      if (index) {
        const heading = make("h2", { id: `question-${index}`, dir: "auto", textContent: asked.question });
        section.append(heading);
        section.setAttribute("aria-labelledby", heading.id);
      }
      section.append(inside);
      place.append(section);
      const mine = classes.filter((each) => asked.ids.includes(each.id));
      const layout = layoutOf(inside, mine, project, asked, (id, input) => {
        this.last = part;
        changed(id, input);
      });
      const part = { asked, inside, layout, classes: mine };
      layout.complete = () => this.#after(index);
      layout.allNo = () => this.allNo?.();
      return part;
    });
    this.required = project.reason.ask === "required";
    this.words = project.reason.ask === "off" ? null : this.#reason(place, project.reason.question);
  }

  #reason(place, question) {
    const words = make("textarea", { id: "reason", rows: 3, maxLength: 1000, dir: "auto", required: this.required });
    const label = make("label", { htmlFor: "reason", dir: "auto", textContent: question });
    if (!this.required) {
      const optional = make("span", { className: "soft", textContent: say("(optional)") });
      label.append(" ", optional);
    }
    const section = make("section", { className: "part" });
    section.append(label, words);
    place.append(section);
    words.addEventListener("input", () => this.changed("reason", null));
    return words;
  }

  #open() {
    return this.parts.filter((part) => part.layout.missing().length);
  }

  get #wordless() {
    return this.required && !this.words.value.trim();
  }

  /** On to the next question that is not answered, then to the reason, then to the button. */
  #after(index) {
    const open = this.#open();
    const next = open.find((part) => this.parts.indexOf(part) > index) ?? open[0];
    if (next) next.layout.start();
    else if (this.#wordless) this.words.focus();
    else this.complete?.();
  }

  #active() {
    return this.parts.find((part) => part.inside.contains(document.activeElement)) ?? this.#open()[0] ?? this.parts.at(-1);
  }

  missing() {
    const left = this.#open().map(({ asked, layout, classes }) => ({ id: (layout.missing()[0] ?? classes[0]).id, name: asked.question }));
    return this.#wordless ? [...left, { id: "reason", name: this.words.labels[0].textContent }] : left;
  }

  /** What is left, in words, for the bar at the bottom. */
  reason() {
    return say("{n} questions left", { n: this.missing().length });
  }

  values() {
    return Object.assign({}, ...this.parts.map(({ layout }) => layout.values()));
  }

  draft() {
    return Object.assign({}, ...this.parts.map(({ layout }) => (layout.draft ? layout.draft() : layout.values())));
  }

  extra() {
    return this.words ? { reason: this.words.value.trim() } : {};
  }

  say(reason) {
    if (this.words) this.words.value = reason;
  }

  restore(values) {
    for (const { asked, layout } of this.parts) {
      const mine = asked.ids.filter((id) => values[id] !== undefined).map((id) => [id, values[id]]);
      if (mine.length) layout.restore(Object.fromEntries(mine));
    }
  }

  start() {
    this.#after(-1);
  }

  focusOn(id) {
    if (id === "reason") return this.words.focus();
    return this.parts.find(({ asked }) => asked.ids.includes(id)).layout.focusOn(id);
  }

  clearLast() {
    this.last?.layout.clearLast();
  }

  arrow(key) {
    return document.activeElement === this.words ? false : this.#active().layout.arrow(key);
  }

  key(key) {
    return this.#active().layout.key(key);
  }

  legend() {
    const lines = this.parts.flatMap(({ layout }) => layout.legend());
    return [...new Map(lines.map((line) => [JSON.stringify(line), line])).values()];
  }
}
