/* What the theme adds when a page opens, made usable without a mouse and told apart by screen readers. */
const mend = () => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((each) => {
    each.setAttribute("aria-label", `Code block ${each.parentElement.id.replace("__code_", "")}`)
  })
  document.querySelector(".md-search:not([aria-label])")?.setAttribute("aria-label", "Search")
  /* The labels of sections that have a page of their own hold an arrow and no words. */
  document.querySelectorAll('nav[aria-labelledby^="__nav_"]').forEach((each) => {
    each.setAttribute("aria-label", each.querySelector(":scope > .md-nav__title").textContent.trim())
    each.removeAttribute("aria-labelledby")
  })
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((each) => {
    each.setAttribute("tabindex", "0")
  })
}
mend()
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true })
