// Formulas, the filter of the claims, and answers that a link opens.
"use strict";

function typeset() {
  for (const node of document.querySelectorAll(".math")) {
    const display = node.tagName === "DIV";
    katex.render(node.textContent, node, { displayMode: display, throwOnError: false, strict: false });
  }
}

function filterClaims() {
  const bar = document.getElementById("verdicts");
  if (!bar) return;
  bar.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const other of bar.querySelectorAll("button"))
      other.setAttribute("aria-pressed", String(other === button));
    const wanted = button.dataset.verdict;
    for (const row of document.querySelectorAll("tr[data-verdict]"))
      row.hidden = Boolean(wanted) && row.dataset.verdict !== wanted;
  });
}

// an address that leads into something folded opens it
function openTarget() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  let folded = false;
  for (let node = target; node; node = node.parentElement)
    if (node.tagName === "DETAILS" && !node.open) node.open = folded = true;
  if (folded) target.scrollIntoView();
}

document.addEventListener("DOMContentLoaded", () => {
  typeset();
  filterClaims();
  openTarget();
});
window.addEventListener("hashchange", openTarget);
