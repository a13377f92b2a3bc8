// A picture to look at closely: by wheel with Ctrl or by two fingers, by double click, by + and - and the arrow keys.

import { say } from "./words.js";

const MOST = 8;

/** A frame around an image; it is 1 to `MOST` times as large, and moved so that it always fills its frame. */
export function zoomable(image) {
  const view = document.createElement("div");
  Object.assign(view, { className: "zoom", tabIndex: 0 });
  view.setAttribute("role", "group");
  view.setAttribute("aria-label", `${image.alt}: +, −, ← → ↑ ↓`);
  view.append(image);
  let [scale, x, y] = [1, 0, 0];
  const fingers = new Map();

  function draw() {
    const [width, height] = [image.offsetWidth, image.offsetHeight];
    x = Math.min(0, Math.max(width * (1 - scale), x));
    y = Math.min(0, Math.max(height * (1 - scale), y));
    image.style.transform = scale === 1 ? "" : `translate(${x}px, ${y}px) scale(${scale})`;
    view.classList.toggle("near", scale > 1);
  }

  /** So many times as large, with the point at (px, py) of the frame where it is. */
  function zoom(times, px = image.offsetWidth / 2, py = image.offsetHeight / 2) {
    const next = Math.min(MOST, Math.max(1, scale * times));
    [x, y] = [px - ((px - x) * next) / scale, py - ((py - y) * next) / scale];
    scale = next;
    draw();
  }

  function point(event) {
    const box = view.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && scale === 1) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, ...point(event));
  }, { passive: false });
  view.addEventListener("dblclick", (event) => zoom(scale > 1 ? 0 : 2.5, ...point(event)));
  view.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, point(event));
    if (scale > 1) view.setPointerCapture(event.pointerId);
  });
  for (const end of ["pointerup", "pointercancel"]) view.addEventListener(end, (event) => fingers.delete(event.pointerId));
  view.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const now = point(event);
    const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
    fingers.set(event.pointerId, now);
    if (other) {
      const apart = ([ax, ay]) => Math.hypot(ax - other[0], ay - other[1]);
      zoom(apart(now) / Math.max(1, apart(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else if (scale > 1) {
      [x, y] = [x + now[0] - before[0], y + now[1] - before[1]];
      draw();
    }
  });
  const moves = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  view.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0" && scale > 1) zoom(0);
    else if (scale > 1 && moves[event.key]) {
      [x, y] = [x + 40 * moves[event.key][0], y + 40 * moves[event.key][1]];
      draw();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const buttons = document.createElement("p");
  buttons.className = "zoom-buttons";
  for (const [sign, times, words] of [["−", 1 / 1.5, say("Zoom out")], ["+", 1.5, say("Zoom in")]]) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: sign, title: words });
    button.setAttribute("aria-label", words);
    button.addEventListener("click", () => zoom(times));
    buttons.append(button);
  }
  const whole = document.createElement("div");
  whole.className = "zoomed";
  whole.append(view, buttons);
  return whole;
}
