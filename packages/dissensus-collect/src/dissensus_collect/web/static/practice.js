// Practice: the same screen, with comments on how to use it. Which answer is right is said only where the project gives
// feedback on a practice item.

import "./here.js";
import { Screen, project, told } from "./screen.js";
import { say } from "./words.js";

const at = (id) => document.getElementById(id);
const rounds = JSON.parse(at("main").dataset.practice);
const answers = [];

const screen = new Screen({ next: done });
screen.owner.incomplete = (missing) => {
  const names = missing.slice(0, 3).map((each) => each.name).join(", ");
  const more = missing.length - 3;
  at("practice-text").textContent =
    more > 0
      ? say("You left {names} and {n} more unanswered. Every class needs an answer.", { names, n: more })
      : say("You left {names} unanswered. Every class needs an answer.", { names });
};

let commented = false;

const listed = new Intl.ListFormat(document.documentElement.lang, { type: "conjunction" });

/** What to say about the answers to a practice item: one sentence, and what the project says itself. */
function comment({ right, text }, values) {
  const word = (value) => project.values.find((each) => each.value === value)?.word ?? value;
  const other = project.classes.filter(({ id }) => right[id] && !right[id].includes(values[id] ?? "no"));
  const chosen = project.classes.filter(({ id }) => right[id]?.[0] === "yes").map(({ name }) => told(name));
  const picked = ["single-choice", "select-all"].includes(project.layout) && chosen.length;
  const said = picked ? chosen : other.map(({ id, name }) => say("“{answer}” to {name}", { answer: word(right[id][0]), name: told(name) }));
  const answers = listed.format(said);
  const wish = picked ? say("We would have chosen {answers}.", { answers }) : say("We would have said {answers}.", { answers });
  const differs = other.length ? wish : say("That is how we would answer, too.");
  return [Object.keys(right).length ? differs : "", told(text), say("Press Next to go on.")].filter(Boolean).join(" ");
}

async function done({ values, reason }) {
  const { feedback } = rounds[answers.length];
  if (feedback && !commented) {
    commented = true;
    at("practice-text").textContent = comment(feedback, values);
    return screen.resume();
  }
  commented = false;
  if (feedback) at("practice-text").textContent = "";
  answers.push({ values, reason });
  if (answers.length < rounds.length) return show();
  at("practice-answers").value = JSON.stringify(answers);
  at("practice-form").requestSubmit();
}

async function show() {
  const round = rounds[answers.length];
  at("count").textContent = rounds.length > 1 ? say("Practice {number} of {of}", { number: answers.length + 1, of: rounds.length }) : say("Practice");
  at("done").max = rounds.length;
  at("done").value = answers.length;
  await screen.show(round.item, project.classes);
}

await show();
