// Sends a window that is too narrow for the project to the page that says so, and back when there is room.

import { post } from "./connection.js";
import { say } from "./words.js";

const least = Number(document.querySelector("meta[name=least-width]").content);
const told = document.getElementById("width");

async function look() {
  if (told === null) {
    if (innerWidth >= least) return;
    // Once per visit: the log is about people, not about every move of a window.
    if (!sessionStorage.getItem("dissensus-small")) {
      sessionStorage.setItem("dissensus-small", "told");
      await post("/api/event", { kind: "small-screen", detail: { width: innerWidth, height: innerHeight } }).catch(() => {});
    }
    location.replace("/screen");
  } else if (innerWidth >= least) location.replace("/");
  else told.textContent = say("This window has {width}.", { width: innerWidth });
}

addEventListener("resize", look);
await look();
