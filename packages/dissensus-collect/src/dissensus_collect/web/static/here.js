// Signs of life of whoever reads or waits: a place is held for people who are there, and for nobody else.

import { post } from "./connection.js";
import { say } from "./words.js";

const EVERY = 20_000;
const line = document.getElementById("line");

async function here() {
  if (document.hidden && !line) return;
  const { status, data } = await post("/api/here", {}).catch(() => ({}));
  if (status !== 200 || !line) return;
  if (data.screen !== "/door") location.assign(data.screen);
  else if (data.line) line.textContent = say("You are number {place} in line. Keep this page open: it lets you in as soon as there is room.", { place: data.line });
}

setInterval(here, EVERY);
here();
