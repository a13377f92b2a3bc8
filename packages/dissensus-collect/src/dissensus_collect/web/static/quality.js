// Marks all people on the page at once, and says how many are marked; comes back for what is being worked out.

const form = document.getElementById("decide");
const boxes = form ? [...form.elements].filter((each) => each.type === "checkbox" && each.value !== "yes" && each.name) : [];
const all = document.getElementById("mark-all");

function count() {
  const marked = boxes.filter((each) => each.checked).length;
  document.getElementById("marked").textContent = marked ? `${marked} marked` : "";
  all.checked = marked > 0 && marked === boxes.length;
  all.indeterminate = marked > 0 && marked < boxes.length;
}

if (boxes.length && document.getElementById("marked")) {
  all.closest("label").hidden = false;
  all.addEventListener("change", () => {
    for (const each of boxes) each.checked = all.checked;
    count();
  });
  for (const each of boxes) each.addEventListener("change", count);
  count();
}
if (document.querySelector("[data-wait]")) setTimeout(() => location.reload(), 2000);
