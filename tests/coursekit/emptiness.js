// What share of each page's area below the title is in use: it has something printed on it, or further
// down, or further right. So a page that is read from its upper left corner counts as far as it goes, an
// indent or the white beside a formula is no emptiness, and a picture counts whole.
const cell = 8; // pixels
const shown = (element) => {
  const box = element.getBoundingClientRect();
  if (!element.naturalWidth) return box;
  // a picture keeps its form inside its box
  const scale = Math.min(box.width / element.naturalWidth, box.height / element.naturalHeight);
  const [w, h] = [element.naturalWidth * scale, element.naturalHeight * scale];
  return new DOMRect(box.x + (box.width - w) / 2, box.y + (box.height - h) / 2, w, h);
};
const linesOf = (block) => {
  const found = [], texts = document.createTreeWalker(block, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (texts.nextNode()) {
    if (!texts.currentNode.data.trim()) continue;
    range.selectNodeContents(texts.currentNode);
    found.push(...range.getClientRects());
  }
  return found;
};
const used = (slide) => {
  const body = slide.querySelector(".body"), area = body.getBoundingClientRect();
  const rows = Math.floor(area.height / cell), right = new Array(rows).fill(0);
  const pictures = [...body.querySelectorAll(".code pre, img, svg, canvas, iframe")].map(shown);
  for (const box of [...pictures, ...linesOf(body)]) {
    if (box.width < 1 || box.height < 1) continue; // such as KaTeX's copy for screen readers
    const last = Math.min(rows - 1, Math.ceil((box.bottom - area.top) / cell) - 1);
    if (last >= 0) right[last] = Math.max(right[last], Math.min(1, (box.right - area.left) / area.width));
  }
  for (let row = rows - 2; row >= 0; row--) right[row] = Math.max(right[row], right[row + 1]);
  return right.reduce((sum, share) => sum + share, 0) / rows;
};
const waiting = setInterval(() => {
  if (!document.documentElement.dataset.ready) return;
  clearInterval(waiting);
  const ordinary = [...document.querySelectorAll(".slide.level2")];
  document.documentElement.dataset.used = JSON.stringify(
    ordinary.map((slide) => [+slide.querySelector(".number").textContent, slide.dataset.title, used(slide)]));
}, 20);
