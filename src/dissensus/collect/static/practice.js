// Practice: the same screen, with comments on how to use it only – never on which answer is right.

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

async function done({ values }) {
  answers.push({ values });
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
