// Marks all people on the page at once, and says how many are marked. Without it, people can be marked one by one.

const form = document.getElementById("decide");
const boxes = [...form.elements].filter((each) => each.name === "annotator");
const all = document.getElementById("mark-all");

function count() {
  const marked = boxes.filter((each) => each.checked).length;
  document.getElementById("marked").textContent = marked ? `${marked} marked` : "";
  all.checked = marked > 0 && marked === boxes.length;
  all.indeterminate = marked > 0 && marked < boxes.length;
}

all.closest("label").hidden = false;
all.addEventListener("change", () => {
  for (const each of boxes) each.checked = all.checked;
  count();
});
for (const each of boxes) each.addEventListener("change", count);
count();
