// Copies the completion code where the browser allows it; the code stands there as text in any case.

import { say } from "./words.js";

const button = document.getElementById("copy");
button?.addEventListener("click", async () => {
  await navigator.clipboard.writeText(document.getElementById("code").textContent);
  document.getElementById("copied").textContent = say("Copied");
});
if (button && navigator.clipboard) button.hidden = false;
