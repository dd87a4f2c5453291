// The slide engine: sets the formulas, makes every page fit, and turns the pages.
(() => {
  const deck = document.getElementById("deck"), bar = document.getElementById("bar");
  const panel = document.getElementById("panel"), keys = document.getElementById("keys");
  const goto = document.getElementById("goto");
  const pages = () => [...deck.children];
  let at = 0, notes = null;

  // --- fitting: a page is made smaller in steps, in one column or in two, until nothing overflows
  // (pictures first, then the text too)
  const textSize = (step) => 1 - 0.0035 * step ** 2;
  // code stays at 14 pixels or more, at a height of 720
  const mostSteps = (blocks) => (blocks.some((block) => block.classList.contains("code")) ? 8 : 10);
  const isPicture = (block) => block.matches(".out:has(.figure, svg, .drawing)");
  // split: nothing, or which blocks stand to the right
  const arrange = (body, blocks, split) => {
    body.className = split ? "body split" : "body stack";
    if (!split) return body.replaceChildren(...blocks);
    const columns = [0, 1].map(() => Object.assign(document.createElement("div"), { className: "column" }));
    blocks.forEach((block) => columns[+split(block)].append(block));
    body.replaceChildren(...columns);
  };
  const shrink = (body, step, ofPictures = step) => {
    body.style.setProperty("--f", textSize(step));
    body.style.setProperty("--picture", `${500 - 28 * ofPictures}px`);
    body.style.setProperty("--drawing", `${560 - 28 * ofPictures}px`);
  };
  const lowest = (body) => Math.max(0, ...[...body.querySelectorAll(".block")].map((b) => b.getBoundingClientRect().bottom));
  const fits = (body) => {
    const edge = body.getBoundingClientRect(), slack = 2;
    const inside = (element) => element.scrollWidth <= element.clientWidth + slack;
    return lowest(body) <= edge.bottom + slack && inside(body)
      && [...body.querySelectorAll(".column, .block, .block pre, .katex-display")].every(inside);
  };
  // The first of all from which on everything passes, or nothing. Each trial lays the page out again, so the
  // middle of what is left is tried.
  const firstOf = (all, passes) => {
    let [from, to] = [0, all.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (passes(all[middle])) to = middle;
      else from = middle + 1;
    }
    return all[from];
  };
  const smallest = (body, blocks, split) => {
    arrange(body, blocks, split);
    const most = mostSteps(blocks), fitsAt = (step) => (shrink(body, step), fits(body));
    if (fitsAt(0)) return 0;
    if (!fitsAt(most)) return most + 1;
    const step = firstOf(Array.from({ length: most }, (_, i) => i + 1), fitsAt);
    shrink(body, step);
    return step;
  };
  // how well a layout shows the page: the size of its text, and of its largest picture
  const quality = (body, blocks, split) => {
    const step = smallest(body, blocks, split);
    const areas = [...body.querySelectorAll(".out .figure, .out svg")].map((picture) => {
      const fill = picture.naturalWidth ? picture.naturalWidth / picture.naturalHeight : Infinity;
      const { width, height } = picture.getBoundingClientRect();
      return Math.min(width, height * fill) * Math.min(height, width / fill || height);
    });
    const size = Math.sqrt(Math.max(1, ...areas));
    return { step, size, worth: step > mostSteps(blocks) ? 0 : textSize(step) ** 2 * size, split };
  };
  const layOut = (slide) => {
    const body = slide.querySelector(".body"), blocks = [...body.querySelectorAll(".block")];
    const isOutput = (block) => block.classList.contains("out");
    // half the width is too little for panels side by side
    const wide = [...body.querySelectorAll(".out .figure")].some((f) => f.naturalWidth > 2 * f.naturalHeight);
    const stacked = quality(body, blocks, null);
    let best = stacked;
    // all outputs to the right, or only pictures, with what is printed and claimed under the text
    for (const right of [isOutput, isPicture]) {
      const many = blocks.filter(right).length;
      if (!many || many === blocks.length || many > 3 || body.querySelector(".explorer")) continue;
      const side = quality(body, blocks, right);
      const larger = !wide || side.worth > 2 * stacked.worth || (right === isPicture && side.size >= stacked.size);
      if (side.worth > best.worth && larger) best = side;
    }
    arrange(body, blocks, best.split);
    shrink(body, Math.min(best.step, mostSteps(blocks)));
    if (best.step > mostSteps(blocks)) overflow(slide, body, blocks);
    else if (best.step === 0) enlarge(body);
    else growPictures(body, best.step);
  };
  // Text and pictures were made smaller together, in steps. The pictures may fill what this left free.
  const growPictures = (body, step) => {
    const quarters = Array.from({ length: 4 * step + 1 }, (_, i) => i / 4); // of a step
    const fitsAt = (ofPictures) => (shrink(body, step, ofPictures), fits(body));
    fitsAt(firstOf(quarters, fitsAt) ?? step);
  };
  // where there is room left the page is made larger: code, which is small beside the text, then all of it,
  // as long as a fifth of the height stays free
  const enlarge = (body) => {
    const sizes = [1.3, 1.25, 1.2, 1.15, 1.1, 1.05, 1], edge = body.getBoundingClientRect();
    const sizeAs = (all, code) => {
      body.style.setProperty("--f", all);
      body.style.setProperty("--c", code / all);
    };
    const fitsAs = (all, code) => {
      sizeAs(all, code);
      return fits(body) && (all === 1 || lowest(body) <= edge.top + 0.8 * edge.height);
    };
    const code = firstOf(sizes, (size) => fitsAs(1, size)) ?? 1;
    const all = firstOf(sizes, (size) => fitsAs(size, code)) ?? 1;
    const more = firstOf(sizes.filter((size) => size <= all), (size) => fitsAs(all, code * size)) ?? 1;
    sizeAs(all, code * more);
  };
  // what cannot be made small enough goes on on a second page; a single block scrolls
  const overflow = (slide, body, blocks) => {
    for (let kept = blocks.length - 1; kept > 0; kept--) {
      if (smallest(body, blocks.slice(0, kept), null) > 6 && kept > 1) continue;
      const next = slide.cloneNode(true);
      next.querySelector(".body").replaceChildren(...blocks.slice(kept));
      next.querySelector("header").firstElementChild.append(" (continued)");
      next.dataset.ids = "";
      next.dataset.minutes = 0; // its first page has them
      next.dataset.continued = "";
      slide.after(next);
      layOut(slide);
      return layOut(next);
    }
    body.classList.add("stack");
    blocks[0].classList.add("scrolls");
  };

  // --- turning pages
  // what comes with one key press: all blocks of a step, or one step of a drawing
  const steps = (slide) => {
    const found = new Map();
    [...slide.querySelectorAll(".block")].sort((a, b) => a.dataset.order - b.dataset.order).forEach((block) => {
      const add = (key, part) => found.set(key, [...(found.get(key) ?? []), part]);
      if (block.dataset.step) add(`step ${block.dataset.step}`, block);
      block.querySelectorAll(".fragment").forEach((part, i) => add(`${block.dataset.order} ${i}`, part));
    });
    return [...found.values()];
  };
  const hide = (step, hidden) => step.forEach((part) => part.classList.toggle("hidden", hidden));
  const isHidden = (step) => step[0].classList.contains("hidden");
  // turning to a continued page was the key press that its first blocks waited for
  const first = (slide) => ("continued" in slide.dataset && slide.querySelector(".block").dataset.step ? 1 : 0);
  const show = (index, whole = false) => {
    const all = pages();
    at = Math.max(0, Math.min(all.length - 1, index));
    all.forEach((slide, i) => slide.classList.toggle("current", i === at));
    steps(all[at]).forEach((step, i) => hide(step, !whole && i >= first(all[at])));
    bar.style.width = `${(100 * (at + 1)) / all.length}%`;
    remember();
    showNotes();
    if (document.body.classList.contains("overview")) all[at].scrollIntoView({ block: "nearest" });
  };
  const on = () => {
    const next = steps(pages()[at]).find(isHidden);
    if (next) hide(next, false);
    else if (at < pages().length - 1) show(at + 1);
  };
  const back = () => {
    const shown = steps(pages()[at]).slice(first(pages()[at])).filter((step) => !isHidden(step));
    if (shown.length) hide(shown.at(-1), true);
    else if (at > 0) show(at - 1, true);
  };
  // #7 is the seventh page, #N12 the page that mirrors slide N12
  const fromAddress = () => {
    const wanted = decodeURIComponent(location.hash.slice(1));
    const named = pages().findIndex((slide) => slide.dataset.ids.split(" ").includes(wanted));
    return wanted && named >= 0 ? named : (parseInt(wanted, 10) || 1) - 1;
  };
  // the width of the screen: a telephone makes innerWidth larger where something sticks out
  const scale = () => {
    const { clientWidth, clientHeight } = document.documentElement;
    deck.style.setProperty("--scale", Math.min(clientWidth / 1280, clientHeight / 720));
  };
  const overview = () => { document.body.classList.toggle("overview"); scrollTo(0, 0); show(at, true); };

  // --- speaker notes: in a panel here, or in a window for the second screen, with clock and next page
  const noted = () => pages()[at].querySelector(".notes")?.innerHTML ?? "<p>no notes on this page</p>";
  const showNotes = () => {
    panel.innerHTML = noted();
    if (!notes || notes.closed) return;
    const slide = pages()[at], next = pages()[at + 1];
    notes.document.body.innerHTML = `<p id="clock"></p><p>${at + 1} of ${pages().length}</p><h1></h1>${panel.innerHTML}<p class="next"></p>`;
    notes.document.querySelector("h1").textContent = slide.dataset.title;
    notes.document.querySelector(".next").textContent = next ? `next: ${next.dataset.title}` : "next: the end";
    if (next) notes.document.body.append(small(next));
    showClock();
  };
  // a page as a small picture: all of it, also what comes by key presses, and nothing that runs
  const small = (slide) => {
    const frame = document.createElement("div"), page = slide.cloneNode(true);
    frame.className = "mini";
    page.querySelectorAll(".notes, iframe").forEach((part) => part.remove());
    page.querySelectorAll(".hidden").forEach((part) => part.classList.remove("hidden"));
    frame.append(page);
    return frame;
  };
  // The clock begins when the lecturer opens the notes. It is kept in the entry of the history, so it goes on
  // when the page is loaded again.
  const clock = { began: null, stopped: null, ...history.state?.clock };
  const remember = () => history.replaceState({ clock }, "", `#${at + 1}`);
  const pause = () => {
    if (clock.began === null) return;
    if (clock.stopped === null) clock.stopped = Date.now();
    else { clock.began += Date.now() - clock.stopped; clock.stopped = null; }
    remember();
    showClock();
  };
  // the plan: the minutes of all pages before this one, and of this one too
  const planned = (n) => pages().slice(0, n).reduce((sum, slide) => sum + Number(slide.dataset.minutes), 0);
  const showClock = () => {
    const shown = notes && !notes.closed && notes.document.getElementById("clock");
    if (!shown) return;
    const since = ((clock.stopped ?? Date.now()) - clock.began) / 60000, [from, to] = [planned(at), planned(at + 1)];
    const late = since > to ? `, ${Math.ceil(since - to)} late` : since < from ? `, ${Math.ceil(from - since)} early` : "";
    const stands = clock.stopped === null ? "" : " (the clock is stopped, t lets it go on)";
    shown.textContent = `minute ${Math.floor(since)}; this page: ${from} to ${to} of ${planned(pages().length)}${late}${stands}`;
  };
  setInterval(showClock, 5000);
  // A window of its own for each loading of the page: a file that is loaded again may not touch the older window
  const nameOfNotes = `notes${Date.now()}`;
  const notesWindow = () => {
    notes = open("", nameOfNotes, "width=800,height=900");
    if (!notes) return;
    clock.began ??= Date.now();
    remember();
    notes.document.head.innerHTML = "<title>Speaker notes</title>";
    notes.document.head.append(document.querySelector("style").cloneNode(true), Object.assign(
      document.createElement("style"), { textContent: "body{background:#fff;padding:32px;font-size:24px;overflow:auto}.next{color:#6a7178}" }));
    notes.onkeydown = onkeydown;
    showNotes();
  };
  addEventListener("pagehide", () => notes?.close());

  // --- go to a page: its number, then Enter
  let typed = "";
  const type = (letters) => {
    typed = letters;
    goto.hidden = !typed;
    goto.textContent = `page ${typed}: Enter`;
  };

  const actions = {
    ArrowRight: on, ArrowDown: on, PageDown: on, " ": on, Enter: on, n: on,
    ArrowLeft: back, ArrowUp: back, PageUp: back, Backspace: back, p: back,
    Home: () => show(0), End: () => show(pages().length - 1), o: overview,
    Escape: () => { keys.hidden = true; type(""); if (document.body.classList.contains("overview")) overview(); },
    s: () => { panel.hidden = !panel.hidden; }, w: notesWindow, t: pause, b: () => document.body.classList.toggle("blank"),
    f: () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen()),
    "?": () => { keys.hidden = !keys.hidden; },
  };
  window.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^[0-9]$/.test(event.key)) return type((typed + event.key).slice(-3));
    if (!actions[event.key]) return;
    event.preventDefault();
    const wanted = typed;
    type("");
    if (event.key === "Enter" && wanted) return show(Number(wanted) - 1);
    if (event.key === "Enter" && document.body.classList.contains("overview")) overview();
    else actions[event.key]();
  };
  // After a click into an explorer the keys are its own. It hands on the keys of a presenter's remote,
  // and says "leave" at Escape.
  window.onmessage = ({ data }) => {
    if (data !== "leave" && !["PageDown", "PageUp"].includes(data?.page)) return;
    document.activeElement.blur();
    focus();
    actions[data.page]?.();
  };
  deck.onclick = (event) => {
    if (!document.body.classList.contains("overview")) return;
    at = pages().indexOf(event.target.closest(".slide"));
    overview();
  };
  let from = null;
  ontouchstart = (event) => { from = event.touches.length === 1 ? event.touches[0].clientX : null; };
  ontouchend = (event) => {
    const moved = from === null ? 0 : event.changedTouches[0].clientX - from;
    if (Math.abs(moved) > 50) (moved < 0 ? on : back)();
  };
  onresize = scale;
  onhashchange = () => show(fromAddress());

  const start = async () => {
    for (const text of document.querySelectorAll(".md, header"))
      renderMathInElement(text, { throwOnError: false, delimiters: [
        { left: "$$", right: "$$", display: true }, { left: "\\[", right: "\\]", display: true },
        { left: "\\begin{align}", right: "\\end{align}", display: true },
        { left: "$", right: "$", display: false }, { left: "\\(", right: "\\)", display: false }] });
    scale();
    if (document.readyState !== "complete") await new Promise((done) => addEventListener("load", done));
    await Promise.all([...document.fonts].map((font) => font.load().catch(() => {})));
    // measured at scale 1, since a page is shown at the size of the screen
    deck.style.setProperty("--scale", 1);
    pages().forEach((slide) => slide.querySelectorAll(".block").forEach((block, i) => { block.dataset.order = i; }));
    document.querySelectorAll(".figure").forEach((f) => f.style.setProperty("--ratio", f.naturalWidth / f.naturalHeight));
    // what is printed wraps, unless it stands in columns
    document.querySelectorAll("pre.text").forEach((text) => text.classList.toggle("prose", !/[^\s:] {2}|: {3}/.test(text.textContent)));
    pages().forEach(layOut);
    scale();
    pages().forEach((slide, i) => { slide.querySelector(".number").textContent = i + 1; });
    show(fromAddress());
    // for the test: what a reader would not see whole
    const tiny = (slide) => [...slide.querySelectorAll(".code pre")].some((code) => parseFloat(getComputedStyle(code).fontSize) < 14);
    const bad = pages().filter((slide) => !fits(slide.querySelector(".body")) || slide.querySelector(".scrolls, .katex-error") || tiny(slide));
    document.documentElement.dataset.problems = bad.map((slide) => slide.dataset.title).join("; ");
    document.documentElement.dataset.ready = "yes";
  };
  start();
})();
