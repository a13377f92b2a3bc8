// Practice: the same screen, with comments on how to use it only – never on which answer is right.

import { Screen, project } from "./screen.js";
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

async function done({ values }) {
  answers.push({ values });
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
