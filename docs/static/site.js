// Formulas, the filter of the claims, and answers that a link opens.
"use strict";

function typeset() {
  for (const node of document.querySelectorAll(".math")) {
    const display = node.tagName === "DIV";
    katex.render(node.textContent, node, { displayMode: display, throwOnError: false, strict: false });
  }
}

// a claim is shown if it has the verdict, the lecture and all the words that are asked for
function filterClaims() {
  const bar = document.getElementById("verdicts");
  if (!bar) return;
  const [lecture, words, shown] = ["lecture", "words", "shown"].map(id => document.getElementById(id));
  const rows = [...document.querySelectorAll("tr[data-verdict]")];
  let verdict = "";
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = Boolean(verdict && row.dataset.verdict !== verdict)
        || Boolean(lecture.value && row.dataset.lecture !== lecture.value)
        || !wanted.every(word => text.includes(word));
    }
    shown.textContent = `${rows.filter(row => !row.hidden).length} claims`;
  };
  bar.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const other of bar.querySelectorAll("button"))
      other.setAttribute("aria-pressed", String(other === button));
    verdict = button.dataset.verdict;
    filter();
  });
  lecture.addEventListener("change", filter);
  words.addEventListener("input", filter);
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
