// Practice: the same screen, with comments on how to use it. Which answer is right is said only where the project gives
// feedback on a practice item.

import { Screen, project } from "./screen.js";

const at = (id) => document.getElementById(id);
const rounds = JSON.parse(at("main").dataset.practice);
const answers = [];

const screen = new Screen({ next: done });
screen.owner.incomplete = (missing) => {
  const names = missing.slice(0, 3).map((each) => each.name).join(", ");
  say(`You left ${names}${missing.length > 3 ? ` and ${missing.length - 3} more` : ""} unanswered. Every class needs an answer.`);
};

function say(text) {
  at("practice-text").textContent = text;
}

let told = false;

/** What to say about the answers to a practice item. */
function comment({ right, text }, values) {
  const word = (value) => project.values.find((each) => each.value === value)?.word ?? value;
  const other = project.classes.filter(({ id }) => right[id] && !right[id].includes(values[id] ?? "no"));
  const ours = other.map(({ id, name }) => `${name}: ${word(right[id][0])}`).join(", ");
  const compared = !Object.keys(right).length ? "" : ours ? `We would have answered differently: ${ours}.` : "That is how we would answer, too.";
  return [compared, text, "Press Next to go on."].filter(Boolean).join(" ");
}

async function done({ values, reason }) {
  const { feedback } = rounds[answers.length];
  if (feedback && !told) {
    told = true;
    say(comment(feedback, values));
    return screen.resume();
  }
  told = false;
  if (feedback) say("");
  answers.push({ values, reason });
  if (answers.length < rounds.length) return show();
  at("practice-answers").value = JSON.stringify(answers);
  at("practice-form").requestSubmit();
}

async function show() {
  const round = rounds[answers.length];
  at("count").textContent = rounds.length > 1 ? `Practice ${answers.length + 1} of ${rounds.length}` : "Practice";
  at("done").max = rounds.length;
  at("done").value = answers.length;
  await screen.show(round.item, project.classes);
}

await show();
