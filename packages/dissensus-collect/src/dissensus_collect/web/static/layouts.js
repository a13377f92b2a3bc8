// The ways to ask about the classes of an item. Each layout draws itself into a place and then offers
//   missing()  the classes that still need an answer, in shown order
//   values()   the answers, by class id
//   restore(values), focusOn(id), key(event) -> whether the key was its own, clearLast()
// and calls changed(id, input) whenever an answer changes. Nothing is ever preselected. All text from outside is set as
// text, never as markup.

import { say } from "./words.js";

const COARSE = matchMedia("(pointer: coarse)");

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const named = (text) => {
  const element = make("bdi");
  element.textContent = text;
  return element;
};

/** Which kind of hand a native change came from: a key, a finger or a mouse. */
let hand = "mouse";
addEventListener("keydown", () => (hand = "key"), true);
addEventListener("pointerdown", (event) => (hand = event.pointerType === "touch" ? "touch" : "mouse"), true);

const digits = (classes) => classes.every((each) => /^\d$/.test(each.name));

/** The keys of the answer buttons: the first letters of their words, and 1 2 3, or J K L where classes are digits. */
export function answerKeys(choices, classes) {
  const letters = choices.map((each) => each.word.trim().charAt(0).toLowerCase());
  const distinct = new Set(letters).size === letters.length && letters.every((each) => /\p{L}/u.test(each));
  const places = (classes.some((each) => /^\d+$/.test(each.name)) ? "jkl" : "123456789").slice(0, choices.length);
  return choices.map((each, index) => {
    const keys = distinct ? [letters[index]] : [];
    const place = places[index];
    if (place && !keys.includes(place) && !(distinct && letters.includes(place))) keys.push(place);
    return keys;
  });
}

class Layout {
  constructor(place, classes, project, changed) {
    Object.assign(this, { place, classes, project, changed });
    this.answers = new Map();
    this.history = [];
    this.active = 0;
    this.byDigit = digits(classes) ? new Map(classes.map((each, index) => [each.name, index])) : new Map();
    place.replaceChildren();
    const longest = Math.max(...classes.map((each) => each.name.length));
    place.style.setProperty("--longest", `${Math.min(longest, 40) + 2}ch`);
  }

  missing() {
    return this.classes.filter((each) => !this.answers.has(each.id));
  }

  values() {
    return Object.fromEntries(this.answers);
  }

  note(id, input) {
    this.history = [...this.history.filter((each) => each !== id), id];
    this.changed(id, input);
  }

  legend() {
    return [];
  }
}

/** A row a class, each with its own equal buttons; the next unanswered row is the active one. */
class Rows extends Layout {
  constructor(place, classes, project, changed) {
    super(place, classes, project, changed);
    this.choices = this.choicesOf(project);
    this.keys = this.keysOf();
    this.rows = classes.map((each) => this.row(each));
    this.draw();
    this.activate(0);
  }

  choicesOf(project) {
    return project.values.map(({ value, word }) => ({ value, word }));
  }

  keysOf() {
    return answerKeys(this.choices, this.classes);
  }

  draw() {
    this.place.append(...this.rows);
  }

  row({ id, name }) {
    const row = make("fieldset", { class: "row", "data-class": id }, make("legend", {}, named(name)));
    const choices = make("div", { class: "choices" });
    for (const { value, word } of this.choices) {
      const input = make("input", { type: "radio", name: `class-${id}`, value: String(value) });
      const text = make("span", { dir: "auto" });
      text.textContent = word;
      choices.append(make("label", { class: "choice" }, input, text));
      input.addEventListener("change", () => this.answer(id, value, hand));
    }
    row.append(choices);
    row.addEventListener("focusin", () => this.activate(this.classes.findIndex((each) => each.id === id)));
    return row;
  }

  radios(index) {
    return [...this.rows[index].querySelectorAll("input")];
  }

  activate(index) {
    this.active = index;
    this.rows.forEach((row, at) => row.classList.toggle("active", at === index));
  }

  answer(id, value, input) {
    const index = this.classes.findIndex((each) => each.id === id);
    if (this.answers.get(id) === value && input === "key" && this.rows[index].classList.contains("answered")) {
      return this.advance(index);
    }
    this.answers.set(id, value);
    this.radios(index)[this.choices.findIndex((each) => each.value === value)].checked = true;
    this.rows[index].classList.add("answered");
    this.note(id, input);
    this.advance(index);
  }

  advance(from) {
    const count = this.classes.length;
    for (let step = 1; step <= count; step += 1) {
      const index = (from + step) % count;
      if (!this.answers.has(this.classes[index].id)) return this.focusAt(index);
    }
    this.rows[from].classList.remove("active");
    this.complete?.();
  }

  focusAt(index) {
    this.activate(index);
    const radios = this.radios(index);
    (radios.find((each) => each.checked) ?? radios[0]).focus({ preventScroll: true });
    this.rows[index].scrollIntoView({ block: "nearest" });
  }

  focusOn(id) {
    this.focusAt(this.classes.findIndex((each) => each.id === id));
  }

  start() {
    const [first] = this.missing();
    if (first) this.focusOn(first.id);
    else this.complete?.();
  }

  restore(values) {
    this.classes.forEach(({ id }, index) => {
      const at = this.choices.findIndex((each) => String(each.value) === String(values[id]));
      if (at < 0) return;
      this.answers.set(id, this.choices[at].value);
      this.radios(index)[at].checked = true;
      this.rows[index].classList.add("answered");
      this.history.push(id);
    });
  }

  clear(id) {
    const index = this.classes.findIndex((each) => each.id === id);
    this.answers.delete(id);
    for (const radio of this.radios(index)) radio.checked = false;
    this.rows[index].classList.remove("answered");
    this.changed(id, null);
    this.focusAt(index);
  }

  clearLast() {
    const last = this.history.pop();
    if (last !== undefined) this.clear(last);
  }

  /** Keys that work also without shortcuts: arrows between rows and between the buttons of a row. */
  arrow(key) {
    const count = this.classes.length;
    if (key === "ArrowDown" || key === "ArrowUp") {
      this.focusAt((this.active + (key === "ArrowDown" ? 1 : count - 1)) % count);
      return true;
    }
    const radios = this.radios(this.active);
    const at = radios.indexOf(document.activeElement);
    if (at < 0 || (key !== "ArrowRight" && key !== "ArrowLeft")) return false;
    const step = (key === "ArrowRight") === (getComputedStyle(radios[0]).direction !== "rtl") ? 1 : radios.length - 1;
    radios[(at + step) % radios.length].focus();
    return true;
  }

  key(key) {
    const choice = this.keys.findIndex((each) => each.includes(key));
    // All is answered and no row is chosen: one key too many must not change the last answer.
    if (choice >= 0 && !this.missing().length && !this.place.contains(document.activeElement)) return true;
    if (choice >= 0) {
      this.answer(this.classes[this.active].id, this.choices[choice].value, "key");
      return true;
    }
    if (this.byDigit.has(key)) {
      this.focusAt(this.byDigit.get(key));
      return true;
    }
    if (key === "a" && this.project.allNoKey && this.choices.some((each) => each.value === "no")) {
      for (const { id } of this.missing()) this.answer(id, "no", "key");
      this.allNo?.();
      return true;
    }
    return false;
  }

  legend() {
    const lines = this.choices.map((each, index) => [this.keys[index].map((key) => key.toUpperCase()), each.word]);
    if (this.byDigit.size) lines.push([["0", "…", "9"], say("go to that class")]);
    if (this.project.allNoKey) lines.push([["A"], say("No to all that are left")]);
    return [...lines, [["↑", "↓"], say("another class")], [["←", "→"], say("another answer, then Space")]];
  }
}

/** One class on the screen, the others as small stations to go back to. */
class OneAtATime extends Rows {
  draw() {
    this.dots = make("ol", { class: "dots", "aria-label": say("Classes") });
    this.stations = this.classes.map(({ id, name }, index) => {
      const button = make("button", { type: "button" }, named(name));
      button.addEventListener("click", () => this.focusAt(index));
      const station = make("li", { "data-class": id }, button);
      this.dots.append(station);
      return station;
    });
    this.place.append(make("div", { class: "single" }, ...this.rows, this.dots));
  }

  activate(index) {
    super.activate(index);
    this.rows.forEach((row, at) => (row.hidden = at !== index));
    this.stations.forEach((station, at) => {
      station.classList.toggle("answered", this.answers.has(this.classes[at].id));
      station.firstChild.toggleAttribute("aria-current", at === index);
      if (at === index) station.firstChild.setAttribute("aria-current", "step");
    });
  }

  advance(from) {
    this.activate(this.active);
    super.advance(from);
  }
}

const TYPING = 1200; // milliseconds between two digits of one number

/** How well each class fits, on the scale of the question. */
class Rating extends Rows {
  choicesOf(project) {
    return project.scale.values.map((value) => ({ value, word: String(value) }));
  }

  keysOf() {
    return this.choices.map((each) => (this.byDigit.size ? [] : [each.word]));
  }

  /** Digits are typed as they are written: after 1, where there is a 10, the row waits for a moment whether a 0 comes. */
  key(key) {
    if (this.byDigit.size || !/^[-0-9]$/.test(key)) return super.key(key);
    const words = this.choices.map(({ word }) => word);
    if (!words.some((word) => word.startsWith((this.typed ?? "") + key))) this.settle();
    const typed = (this.typed ?? "") + key;
    if (!words.some((word) => word.startsWith(typed))) return false;
    // All is answered and no row is chosen: one key too many must not change the last answer.
    if (!this.typed && !this.missing().length && !this.place.contains(document.activeElement)) return true;
    const { id } = this.classes[this.active];
    const at = words.indexOf(typed);
    const goesOn = Boolean(this.typed) && this.answers.has(id);
    clearTimeout(this.timer);
    this.typed = words.some((word) => word !== typed && word.startsWith(typed)) ? typed : "";
    if (this.typed) this.timer = setTimeout(() => this.settle(), TYPING);
    if (at < 0) return true;
    if (!goesOn) this.answer(id, this.choices[at].value, "key");
    else {
      // The 0 of 10 does not change an answer; it completes it.
      this.answers.set(id, this.choices[at].value);
      this.radios(this.active)[at].checked = true;
      this.changed(id, null);
      this.advance(this.active);
    }
    return true;
  }

  /** Go on from a row that waited for another digit. */
  settle() {
    clearTimeout(this.timer);
    if (!this.typed) return;
    this.typed = "";
    if (this.rows[this.active].isConnected && this.answers.has(this.classes[this.active].id)) this.advance(this.active);
  }

  advance(from) {
    if (!this.typed) super.advance(from);
  }

  activate(index) {
    if (index !== this.active) this.typed = "";
    super.activate(index);
  }

  draw() {
    const ends = make("p", { class: "ends" }, make("span"), make("span"));
    const { values, low, high } = this.project.scale;
    [ends.firstChild.textContent, ends.lastChild.textContent] = [`${values[0]} – ${low}`, `${values.at(-1)} – ${high}`];
    // Many steps need the whole width, and may take two lines.
    for (const row of this.rows) row.classList.toggle("steps", values.length > 7);
    this.place.append(ends, ...this.rows);
  }

  legend() {
    return super.legend().filter(([keys]) => keys.length);
  }
}

/** A list from which several classes (or none of them) are ticked. */
class List extends Layout {
  constructor(place, classes, project, changed) {
    super(place, classes, project, changed);
    this.many = project.layout === "select-all";
    this.none = false;
    const list = make("fieldset", { class: "list" }, make("legend"));
    list.firstChild.textContent = this.many ? say("Choose all that apply.") : say("Choose one.");
    this.inputs = classes.map(({ id, name }) => this.entry(list, named(name), String(id), () => this.chose(id, hand)));
    if (this.many) {
      this.noneInput = this.entry(list, say("None of these"), "none", () => this.choseNone(hand));
      this.noneInput.parentElement.classList.add("none");
    }
    place.append(list);
  }

  entry(list, text, value, heard) {
    const input = make("input", { type: this.many ? "checkbox" : "radio", name: `classes-${this.classes[0].id}`, value });
    list.append(make("label", { class: "choice" }, input, make("span", {}, text)));
    input.addEventListener("change", heard);
    return input;
  }

  chose(id, input) {
    this.none = false;
    if (this.noneInput) this.noneInput.checked = false;
    this.note(id, input);
  }

  choseNone(input) {
    this.none = this.noneInput.checked;
    if (this.none) for (const each of this.inputs) each.checked = false;
    for (const { id } of this.classes) this.note(id, input);
  }

  missing() {
    return this.none || this.inputs.some((each) => each.checked) ? [] : this.classes;
  }

  values() {
    return Object.fromEntries(this.classes.map(({ id }, index) => [id, this.inputs[index].checked ? "yes" : "no"]));
  }

  draft() {
    return this.missing().length ? {} : this.values();
  }

  restore(values) {
    this.classes.forEach(({ id }, index) => (this.inputs[index].checked = values[id] === "yes"));
    this.none = this.many && Object.keys(values).length > 0 && !this.inputs.some((each) => each.checked);
    if (this.noneInput) this.noneInput.checked = this.none;
  }

  start() {
    this.inputs[0].focus({ preventScroll: true });
  }

  focusOn() {
    this.start();
  }

  clearLast() {
    const last = this.history.pop();
    const index = this.classes.findIndex((each) => each.id === last);
    if (index < 0) return;
    if (this.none) this.none = this.noneInput.checked = false;
    else this.inputs[index].checked = this.many && !this.inputs[index].checked;
    this.changed(last, null);
  }

  arrow(key) {
    if (!["ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft"].includes(key)) return false;
    const all = this.noneInput ? [...this.inputs, this.noneInput] : this.inputs;
    const forward = key === "ArrowDown" || key === "ArrowRight";
    const at = all.indexOf(document.activeElement);
    all[(Math.max(at, 0) + (forward ? 1 : all.length - 1)) % all.length].focus();
    return true;
  }

  key(key) {
    const index = this.byDigit.size ? this.byDigit.get(key) : /^[1-9]$/.test(key) ? Number(key) - 1 : undefined;
    if (key === "0" && this.many && !this.byDigit.size) {
      this.noneInput.checked = !this.noneInput.checked;
      this.choseNone("key");
      return true;
    }
    if (index === undefined || index >= this.inputs.length) return false;
    const input = this.inputs[index];
    input.checked = this.many ? !input.checked : true;
    input.focus();
    this.chose(this.classes[index].id, "key");
    return true;
  }

  legend() {
    const lines = [
      [this.byDigit.size ? ["0", "…", "9"] : ["1", "…", "9"], say("choose that class")],
      [["↑", "↓"], say("another class, then Space")],
    ];
    return this.many && !this.byDigit.size ? [[["0"], say("none of these")], ...lines] : lines;
  }
}

/** A hundred points to give away; what is left empty gets none. */
class Points extends Layout {
  constructor(place, classes, project, changed) {
    super(place, classes, project, changed);
    this.whole = 100;
    this.rows = classes.map(({ id, name }) => {
      const label = make("legend", { id: `points-${id}` }, named(name));
      const input = make("input", {
        type: "text", inputmode: "numeric", maxlength: 3, autocomplete: "off", "aria-labelledby": `points-${id}`,
      });
      const less = make("button", { type: "button", "aria-label": say("10 points less for {name}", { name }) }, "−");
      const more = make("button", { type: "button", "aria-label": say("10 points more for {name}", { name }) }, "+");
      less.addEventListener("click", () => this.step(id, input, -10));
      more.addEventListener("click", () => this.step(id, input, 10));
      input.addEventListener("input", () => this.set(id, input, input.value));
      const row = make("fieldset", { class: "row points" }, label, make("div", { class: "point" }, less, input, more));
      row.addEventListener("focusin", () => this.rows.forEach((each) => each.classList.toggle("active", each === row)));
      return row;
    });
    place.append(...this.rows);
  }

  input(index) {
    return this.rows[index].querySelector("input");
  }

  step(id, input, by) {
    const now = this.answers.get(id) ?? 0;
    const next = Math.max(0, Math.min(now + by, now + this.left()));
    input.value = String(next);
    this.set(id, input, input.value);
  }

  set(id, input, text) {
    const clean = text.replace(/\D/g, "");
    if (clean !== text) input.value = clean;
    if (clean === "") this.answers.delete(id);
    else this.answers.set(id, Math.min(Number(clean), this.whole));
    this.note(id, hand);
  }

  left() {
    return this.whole - [...this.answers.values()].reduce((sum, each) => sum + each, 0);
  }

  missing() {
    return this.left() === 0 ? [] : this.classes;
  }

  reason() {
    const left = this.left();
    return left > 0 ? say("{n} of 100 points left", { n: left }) : say("{n} points too many", { n: -left });
  }

  values() {
    return Object.fromEntries(this.classes.map(({ id }) => [id, this.answers.get(id) ?? 0]));
  }

  draft() {
    return Object.fromEntries(this.answers);
  }

  restore(values) {
    this.classes.forEach(({ id }, index) => {
      if (values[id] === undefined) return;
      this.answers.set(id, Number(values[id]));
      this.input(index).value = String(values[id]);
    });
  }

  start() {
    if (!COARSE.matches) this.input(0).focus({ preventScroll: true });
  }

  focusOn(id) {
    this.input(this.classes.findIndex((each) => each.id === id)).focus();
  }

  clearLast() {}

  arrow(key) {
    const at = this.rows.findIndex((row) => row.contains(document.activeElement));
    if (key !== "ArrowDown" && key !== "ArrowUp") return false;
    const count = this.rows.length;
    this.input((Math.max(at, 0) + (key === "ArrowDown" ? 1 : count - 1)) % count).focus();
    return true;
  }

  key() {
    return false;
  }

  legend() {
    return [[["0", "…", "9"], say("write the points")], [["↑", "↓"], say("another class")]];
  }
}

const LAYOUTS = {
  rows: Rows, "one-at-a-time": OneAtATime, rating: Rating, "select-all": List, "single-choice": List, points: Points,
};

/** The layout of a question; `project` holds the settings of all questions, `asked` those of its own. */
export const layoutOf = (place, classes, project, asked, changed) =>
  new LAYOUTS[asked.layout](place, classes, { ...project, ...asked }, changed);
