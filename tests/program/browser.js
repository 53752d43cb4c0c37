// Run in a page of report.py: what a reader would find amiss, in words. WCAG 2 says what contrast is.
(() => {
  const amiss = [];
  const whole = document.documentElement;
  const named = (e) => `${e.tagName} "${e.textContent.trim().slice(0, 40)}" of ${e.closest("figure")?.querySelector("title")?.textContent ?? "the page"}`;
  // Colours as [r, g, b, alpha]; what lies under an element, down to the page.
  const colour = (words) => { const n = words.match(/[\d.]+/g).map(Number); return [...n.slice(0, 3), n[3] ?? 1]; };
  const under = (e) => {
    for (; e; e = e.parentElement) {
      const found = colour(getComputedStyle(e).backgroundColor);
      if (found[3] > 0) return found;
    }
    return [255, 255, 255, 1];
  };
  const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };

  if (whole.scrollWidth > innerWidth) amiss.push(`the page is ${whole.scrollWidth} pixels wide`);
  for (const e of document.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    if (box.width && !e.closest(".wide *") && (box.right > innerWidth + 0.5 || box.left < -0.5)) amiss.push(`${named(e)} ends at ${box.right}`);
    const style = getComputedStyle(e), words = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (words && box.width && !["TITLE", "DESC"].includes(e.tagName.toUpperCase())) {
      const svg = e.closest("svg");
      const ratio = contrast(colour(svg ? style.fill : style.color), under(e));
      if (!(ratio >= 4.5)) amiss.push(`${named(e)} has a contrast of ${ratio}`);
      const size = parseFloat(style.fontSize) * (svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1);
      if (!(size >= 9.5)) amiss.push(`${named(e)} is ${size} pixels high`);
    }
  }
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    for (const what of ["title", "desc"]) if (!svg.querySelector(`:scope > ${what}`)?.textContent) amiss.push(`no ${what} of ${named(svg)}`);
    const frame = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll("text")].map((e) => [e, e.getBoundingClientRect()]);
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
    const marks = [...svg.querySelectorAll(".mark, .dot")];
    texts.forEach(([e, a], i) => {
      if (a.left < frame.left - 0.5 || a.right > frame.right + 0.5 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1) amiss.push(`${named(e)} leaves its picture`);
      for (const [f, b] of texts.slice(i + 1)) if (meet(a, b)) amiss.push(`"${e.textContent}" lies on ${named(f)}`);
    });
    for (const mark of marks) {
      const box = mark.getBoundingClientRect(), x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      for (const [e, a] of texts) if (a.left < x && x < a.right && a.top < y && y < a.bottom) amiss.push(`${named(e)} lies on a point`);
      if (x < frame.left || x > frame.right || y < frame.top || y > frame.bottom) amiss.push(`a point outside of ${named(svg)}`);
      const style = getComputedStyle(mark), paint = colour(mark.matches(".hollow") ? style.stroke : style.fill);
      if (!(contrast(paint, under(svg)) >= 3)) amiss.push(`a point of ${named(svg)} has a contrast of ${contrast(paint, under(svg))}`);
    }
    const lines = svg.querySelectorAll(".roof").length, words = texts.filter(([e]) => /[a-z]/.test(e.textContent) && e.matches(".number"));
    if (words.length !== lines) amiss.push(`${lines} dashed lines and ${words.length} words for them in ${named(svg)}`);
    for (const line of svg.querySelectorAll(".roof")) {
      for (let at = 0; at <= line.getTotalLength(); at += 2) {
        const { x, y } = line.getPointAtLength(at).matrixTransform(line.getScreenCTM());
        const on = words.find(([, a]) => a.left < x && x < a.right && a.top + 3 < y && y < a.bottom - 3);
        if (on) { amiss.push(`a line runs through ${named(on[0])}`); break; }
      }
    }
    const numbers = texts.filter(([e]) => /^\d+$/.test(e.textContent) && e.matches(".number")).length, points = svg.querySelectorAll(".mark").length;
    if (points <= 60 && numbers !== points) amiss.push(`${points} points and ${numbers} numbers in ${named(svg)}`);
    const rows = svg.closest("figure").querySelectorAll("table tr").length - 1;
    if (rows < marks.length || rows < 1) amiss.push(`${rows} rows beside ${marks.length} points of ${named(svg)}`);
  }
  return { amiss, width: innerWidth, dark: matchMedia("(prefers-color-scheme: dark)").matches, figures: document.querySelectorAll("figure").length };
})()
