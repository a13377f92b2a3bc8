// Practice: the same screen, with comments on how to use it. Which answer is right is said only where the project gives
// feedback on a practice item.

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

/** What to say about the answers to a practice item. */
function comment({ right, text }, values) {
  const word = (value) => project.values.find((each) => each.value === value)?.word ?? value;
  const other = project.classes.filter(({ id }) => right[id] && !right[id].includes(values[id] ?? "no"));
  const answers = other.map(({ id, name }) => `${told(name)}: ${word(right[id][0])}`).join(", ");
  const differs = answers ? say("We would have answered differently: {answers}.", { answers }) : say("That is how we would answer, too.");
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
