// What the scripts say, in the language of the page: the English sentence is its own name (see language.py).

const page = document.documentElement;
const words = JSON.parse(page.dataset.words ?? "{}");
const plural = new Intl.PluralRules(page.lang);

/** A sentence in the language of the page; `values` stand for its names in braces, `n` chooses the plural form. */
export function say(sentence, values = {}) {
  let told = words[sentence] ?? sentence;
  if (typeof told !== "string") told = told[plural.select(values.n)] ?? told.other;
  return told.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
