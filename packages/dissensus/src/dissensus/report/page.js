"use strict";
// Everything on the page is there without a script; this adds tabs, sorting, tips, and where the reader is.

// Tabs, as the ARIA practices have them: arrows move, Home and End jump.
for (const [place, tabs] of document.querySelectorAll(".tabs").entries()) {
  const panels = [...tabs.querySelectorAll(":scope > .tab")];
  if (panels.length < 2) continue;
  tabs.classList.add("tabbed");
  const list = Object.assign(document.createElement("div"), {role: "tablist"});
  list.setAttribute("aria-label", tabs.dataset.label);
  const buttons = panels.map((panel, n) => {
    const button = Object.assign(document.createElement("button"), {type: "button", role: "tab", id: `tab-${place}-${n}`});
    button.textContent = panel.dataset.tab;
    panel.id ||= `panel-${place}-${n}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", button.id);
    button.setAttribute("aria-controls", panel.id);
    button.addEventListener("click", () => choose(n));
    list.append(button);
    return button;
  });
  function choose(chosen) {
    for (const [n, button] of buttons.entries()) {
      button.setAttribute("aria-selected", n === chosen);
      button.tabIndex = n === chosen ? 0 : -1;
      panels[n].hidden = n !== chosen;
    }
  }
  list.addEventListener("keydown", event => {
    const now = buttons.indexOf(document.activeElement), last = buttons.length - 1;
    const next = {ArrowRight: now === last ? 0 : now + 1, ArrowLeft: now ? now - 1 : last, Home: 0, End: last}[event.key];
    if (next === undefined) return;
    event.preventDefault();
    choose(next);
    buttons[next].focus();
  });
  tabs.prepend(list);
  choose(0);
}

// A click on a heading sorts by it, a second one the other way round. Rows about people stay last.
const number = text => {
  const found = text.replaceAll("\u2212", "-").replaceAll(",", "").match(/[-+]?\d+(\.\d+)?/);
  return found ? Number(found[0]) : NaN;
};
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  for (const [column, head] of heads.entries()) {
    const button = Object.assign(document.createElement("button"), {type: "button", title: "sort"});
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row, place) => {
        const text = row.cells[column].firstChild?.textContent.trim() ?? "";
        return {row, place, text, value: column ? number(text) : NaN, last: row.classList.contains("people")};
      });
      rows.sort((a, b) => {
        if (a.last !== b.last) return a.last - b.last;
        if (isNaN(a.value) !== isNaN(b.value)) return isNaN(a.value) - isNaN(b.value);
        const order = isNaN(a.value) ? a.text.localeCompare(b.text) : a.value - b.value;
        return (down ? -order : order) || a.place - b.place;
      });
      body.append(...rows.map(each => each.row));
    });
  }
}

// Tips: a mark tells its values, a point of a data map its item.
const tip = document.getElementById("tip"), points = JSON.parse(document.getElementById("points").textContent);
function show(event, ...inside) {
  tip.replaceChildren(...inside);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 4))}px`;
  tip.style.top = `${event.clientY + box.height + 24 > innerHeight ? Math.max(4, event.clientY - box.height - 10) : event.clientY + 14}px`;
}
function listed(pairs) {
  const list = document.createElement("dl");
  for (const [name, value] of pairs) {
    const term = document.createElement("dt"), told = document.createElement("dd");
    term.textContent = name;
    told.textContent = value;
    list.append(term, told);
  }
  return list;
}
function about(item) {
  const inside = [];
  if (item.image) inside.push(Object.assign(new Image(), {src: item.image, alt: ""}));
  inside.push(listed([["item", item.text], ["votes", item.votes], ...item.said.map((said, n) => [points.names[n], said])]));
  return inside;
}
function nearest(cloud, event) {
  cloud.places ??= cloud.dataset.places.split(" ").map(Number);
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(cloud.getScreenCTM().inverse());
  let best = -1, least = 64;
  for (let n = 0; n < cloud.places.length; n += 2) {
    const away = (cloud.places[n] - at.x) ** 2 + (cloud.places[n + 1] - at.y) ** 2;
    if (away < least) [best, least] = [n / 2, away];
  }
  return best;
}
for (const chart of document.querySelectorAll(".chart")) {
  const cloud = chart.querySelector(".cloud");
  const told = event => {
    if (cloud) {
      const item = nearest(cloud, event);
      if (item < 0) tip.hidden = true; else show(event, ...about(points.items[item]));
      return;
    }
    const mark = event.target.closest("[data-tip]");
    if (!mark) { tip.hidden = true; return; }
    show(event, listed(mark.dataset.tip.split("; ").map(part => {
      const cut = part.indexOf(": ");
      return cut < 0 ? ["", part] : [part.slice(0, cut), part.slice(cut + 2)];
    })));
  };
  chart.addEventListener("pointermove", told);
  chart.addEventListener("pointerdown", told);
  chart.addEventListener("pointerleave", () => { tip.hidden = true; });
}
addEventListener("keydown", event => { if (event.key === "Escape") tip.hidden = true; });

// The contents show where the reader is, and a link into a folded part opens it.
const links = new Map([...document.querySelectorAll("nav a")].map(link => [link.hash.slice(1), link]));
const seen = new Set();
new Map([...links.keys()].map(name => [name, document.getElementById(name)])).forEach(part => {
  // A busy browser reports several changes at once: the last is how it stands.
  new IntersectionObserver(entries => {
    seen[entries.at(-1).isIntersecting ? "add" : "delete"](part.id);
    const here = [...links.keys()].find(name => seen.has(name));
    for (const [name, link] of links) {
      if (name !== here) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        const list = link.closest("ol");
        if (list.scrollWidth > list.clientWidth) list.scrollLeft = link.offsetLeft - list.clientWidth / 3;
      }
    }
  }, {rootMargin: "-15% 0px -70% 0px"}).observe(part);
});
function unfold() {
  const part = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!(part instanceof HTMLDetailsElement) || part.open) return;
  part.open = true;
  part.scrollIntoView();
}
addEventListener("hashchange", unfold);
for (const link of links.values()) link.addEventListener("click", () => setTimeout(unfold));
unfold();

document.documentElement.dataset.ready = "yes";
