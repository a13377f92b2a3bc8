// The work: asks for an item, shows it, keeps its answers on this device, sends them, and starts again.

import { newName, post } from "./connection.js";
import { LeaseClock } from "./lease.js";
import { Outbox } from "./outbox.js";
import { Screen, project } from "./screen.js";
import { measureFrames } from "./stopwatch.js";
import { say } from "./words.js";

const at = (id) => document.getElementById(id);
const { session } = at("main").dataset;
const place = (assignment) => `dissensus-item-${session}-${assignment}`;
const PATIENCE = 60_000;
const { title } = document;

/** This tab's name. It is taken out of the storage while the tab lives, so that a duplicated tab gets another. */
const tab = sessionStorage.getItem("dissensus-tab") ?? newName();
sessionStorage.removeItem("dissensus-tab");
addEventListener("pagehide", () => sessionStorage.setItem("dissensus-tab", tab));
addEventListener("pageshow", () => sessionStorage.removeItem("dissensus-tab"));

let current = null;
let offlineSince = null;
let failures = 0;
let furthest = 0;

const channel = new BroadcastChannel(`dissensus-${session}`);
channel.addEventListener("message", ({ data }) => {
  if (data.working && data.working !== tab && current) elsewhere();
});

const screen = new Screen({ next: submit, changed: keep, problem: report, back: project.back ? back : null });
screen.allNo = () => hear("all-no-key", { number: current?.number });
const outbox = new Outbox(session, tab, heard);
const lease = new LeaseClock(beat, warn);

function heard({ state, waiting, data, tries }) {
  const status = at("saved");
  status.dataset.state = state;
  status.textContent = { saved: say("Saved"), saving: say("Saving…"), offline: say("Offline – {n} answers waiting", { n: waiting }) }[state];
  if (state === "saved") offlineSince = null;
  if (state === "offline") offlineSince ??= performance.now();
  at("notice").hidden = !(state === "offline" || (state === "saving" && tries > 0));
  if (state !== "offline") return;
  at("notice-text").textContent =
    data.error ?? say("No connection. Your answers are kept on this device and will be sent as soon as it is back; do not close this page.");
  at("keep-file").hidden = performance.now() - offlineSince < PATIENCE;
}

/** Ask until the server answers. */
async function ask(path, body) {
  for (let tries = 1; ; tries += 1) {
    try {
      const answer = await post(path, body);
      if (answer.status < 500 && answer.status !== 429) {
        heard({ state: "saved", waiting: outbox.waiting().length, data: {} });
        return answer;
      }
      if (answer.data.state === "paused") return answer;
      heard({ state: "offline", waiting: outbox.waiting().length, data: answer.data });
    } catch {
      heard({ state: "offline", waiting: outbox.waiting().length, data: {} });
    }
    await new Promise((resume) => {
      const timer = setTimeout(resume, Math.min(15_000, 500 * 2 ** Math.min(tries, 6)));
      addEventListener("online", () => (clearTimeout(timer), resume()), { once: true });
    });
  }
}

async function next() {
  const { status, data } = await ask("/api/next", { tab });
  if (status === 401) return ended(data);
  await follow(data);
}

async function follow(data) {
  if (data.state === "item") return show(data);
  current = null;
  lease.stop();
  if (data.state === "finished") location.assign(data.url);
  else if (data.state === "elsewhere") elsewhere();
  else if (data.state === "paused") wait(say("The project is paused"), data.error, data.retry_seconds);
  else if (data.state === "nothing")
    wait(say("One moment, please"), say("Every item is being looked at by somebody right now. This page carries on by itself."), data.retry_seconds);
  else over(say("Something went wrong"), data.error);
}

async function show(given) {
  current = given;
  document.body.dataset.number = given.number;
  at("count").textContent = given.item.kind !== "image" ? say("Text {number} of {of}", given) : say("Image {number} of {of}", given);
  at("done").max = given.of;
  at("done").value = given.number - 1;
  furthest = Math.max(furthest, given.number);
  at("back").hidden = !project.back || given.number < Math.max(2, furthest);
  panel(null);
  try {
    await screen.show(given.item, given.classes, {
      kept: read(given.assignment),
      draft: given.draft,
    });
  } catch {
    // Asking again gives the image a new address: a server that was restarted has forgotten the old one.
    failures += 1;
    if (failures < 4) return new Promise((resume) => setTimeout(resume, 400 * failures)).then(next);
    failures = 0;
    hear("image-failed", { number: given.number });
    return over(say("The image does not load"), say("Please check your connection."), [
      [say("Try again"), next],
      [say("Report it and carry on"), () => report("The image does not load")],
    ]);
  }
  failures = 0;
  channel.postMessage({ working: tab });
  lease.start(given.expires_in, given.heartbeat_seconds);
  for (const src of given.preload ?? []) new Image().src = src;
}

function read(assignment) {
  try {
    return JSON.parse(localStorage.getItem(place(assignment)));
  } catch {
    return null;
  }
}

function keep() {
  if (current) localStorage.setItem(place(current.assignment), JSON.stringify(screen.kept()));
}
addEventListener("pagehide", () => screen.busy || keep());
document.addEventListener("visibilitychange", () => {
  // Only a convenience, so that another browser can carry on: what counts is kept on this device.
  if (!document.hidden || screen.busy || !current) return;
  post("/api/draft", { assignment: current.assignment, values: screen.kept().values }).catch(() => {});
});

async function submit(answers) {
  const body = { uuid: newName(), assignment: current.assignment, answers };
  outbox.put(body);
  localStorage.removeItem(place(current.assignment));
  await deliver();
}

async function deliver() {
  const answer = await outbox.flush();
  if (answer === null) return next();
  if (answer.status === 401) return ended(answer.data);
  at("pace").hidden = !answer.data.hurried;
  at("pace-text").textContent = answer.data.hurried
    ? say("You are going rather quickly. That is fine where you are sure; otherwise take the time to look at every class. Your answers are saved.")
    : "";
  if (answer.status < 300 && answer.data.next) return follow(answer.data.next);
  if (answer.status >= 400) await hear("refused", { status: answer.status, kind: answer.data.kind ?? null });
  return next();
}

/** A sign of life. Resolves to what has become of the lease, or null if the server did not say. */
async function beat() {
  if (!current) return null;
  try {
    const { status, data } = await post("/api/heartbeat", { assignment: current.assignment, tab });
    if (status === 200 && data.mine === false) elsewhere();
    return status === 200 && data.mine ? data : null;
  } catch {
    // The next beat, or the save, shows whether the connection is really gone.
    return null;
  }
}

/** `state`: "held", "ending" a minute before an item goes to somebody else, "over" from then on. */
function warn(state) {
  document.title = state === "ending" ? `${say("Still there?")} · ${title}` : title;
  at("lease").hidden = state === "held";
  at("lease-keep").hidden = state === "over";
  at("lease-text").textContent = {
    held: "",
    ending: say("Are you still there? In a minute this item may go to somebody else; any key, touch or movement keeps it, until three times the planned time is over."),
    over: say("You were away, or three times the planned time is over, so this item may have gone to somebody else. You can still answer: your answer is kept, and marked as late."),
  }[state];
}

async function back() {
  screen.busy = true;
  const { status, data } = await ask("/api/back", { tab });
  if (status === 200 && data.state === "item") return follow(data);
  screen.busy = false;
  at("spoken").textContent = data.error ?? say("There is nothing to go back to.");
}

async function report(reason) {
  screen.busy = true;
  const { assignment } = current;
  const { status } = await ask("/api/problem", { assignment, reason });
  at("pace").hidden = status !== 409;
  at("pace-text").textContent = status === 409 ? say("Please answer an item first; after that you can report another one.") : "";
  if (status < 300) localStorage.removeItem(place(assignment));
  await next();
}

async function hear(kind, detail) {
  await post("/api/event", { kind, detail }).catch(() => {});
}

function elsewhere() {
  current = null;
  screen.busy = true;
  lease.stop();
  over(say("Open in another tab"), say("You have this project open in another tab. You can continue here; the other tab then stops."), [
    [say("Continue here"), async () => {
      await ask("/api/take-over", { tab });
      channel.postMessage({ working: tab });
      await next();
    }],
  ]);
}

function ended(data) {
  over(say("Your session has ended"), data.error, data.start ? [[say("Open the project again"), () => location.assign("/")]] : []);
}

function wait(title, text, seconds) {
  over(title, text);
  setTimeout(next, (seconds ?? 15) * 1000);
}

/** Show a message instead of the item. */
function over(title, text, actions = []) {
  panel({ title, text, actions });
}

function panel(told) {
  at("stage").hidden = told !== null;
  at("bottom").hidden = told !== null;
  at("panel").hidden = told === null;
  if (told === null) return;
  at("panel-title").textContent = told.title;
  at("panel-text").textContent = told.text ?? "";
  at("panel-actions").replaceChildren(
    ...told.actions.map(([name, act], index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = index ? "" : "primary";
      button.textContent = name;
      button.addEventListener("click", act, { once: true });
      return button;
    }),
  );
  at("panel-title").focus();
}

at("lease-keep").addEventListener("click", () => screen.focus());
at("pace-close").addEventListener("click", () => {
  at("pace").hidden = true;
  screen.focus();
});
at("keep-file").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(outbox.waiting())], { type: "application/json" }));
  link.download = "answers.json";
  link.click();
});

measureFrames();
await (outbox.waiting().length ? deliver() : next());
