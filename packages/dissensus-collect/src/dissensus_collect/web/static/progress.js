// Keeps the progress page up to date: every five seconds the server renders it, and this replaces what is shown.

const place = document.getElementById("live");

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(place.dataset.from, { credentials: "same-origin", cache: "no-store" });
    if (answer.status === 401) return location.reload();
    const fresh = new DOMParser().parseFromString((await answer.json()).html, "text/html");
    const state = (part) => part.querySelector("[data-state]").dataset.state;
    // The bar above says the same, and it is not refreshed.
    if (state(fresh) !== state(place)) return location.reload();
    place.replaceChildren(...fresh.body.childNodes);
    document.getElementById("fresh").textContent = `Updated ${new Date().toLocaleTimeString(document.documentElement.lang)}`;
  } catch {
    document.getElementById("fresh").textContent = "The server does not answer; trying again.";
  }
}

setInterval(refresh, 5000);
