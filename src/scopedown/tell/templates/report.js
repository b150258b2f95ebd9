"use strict";
// The page: lays out one JSON value. Every text is set with textContent; nothing is parsed as markup or as a style.
(() => {
  const D = JSON.parse(document.getElementById("data").textContent);
  const G = D.drawing;
  const byId = (id) => document.getElementById(id);

  // ---- building blocks -------------------------------------------------------------------------------------------
  function h(tag, cls, ...children) {
    const e = document.createElement(tag);
    if (cls) e.className = cls;
    for (const c of children) if (c !== null && c !== undefined && c !== "") e.append(c.nodeType ? c : bdi(c));
    return e;
  }
  function bdi(text) {
    const e = document.createElement("bdi");
    e.textContent = text;
    return e;
  }
  function button(cls, onclick, ...children) {
    const e = h("button", cls, ...children);
    e.type = "button";
    e.addEventListener("click", onclick);
    return e;
  }
  function s(tag, attrs, text) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
    return e;
  }
  const swatch = (family) => h("i", `swatch f${family}`);
  const list = (cls, items) => h("ul", cls, ...items.map((x) => h("li", "", x)));

  function fmt(ns) {
    const size = Math.abs(ns);
    for (const [unit, scale] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
      if (size >= scale) return `${(ns / scale).toFixed(size < 10 * scale ? 3 : size < 100 * scale ? 2 : 1)} ${unit}`;
    }
    return `${Math.round(ns)} ns`;
  }
  function tick(ns, step) {
    const [unit, scale] = step >= 1e9 ? ["s", 1e9] : step >= 1e6 ? ["ms", 1e6] : step >= 1e3 ? ["us", 1e3] : ["ns", 1];
    const digits = step / scale < 1 ? 1 : 0;
    return `${(ns / scale).toFixed(digits)} ${unit}`;
  }

  // ---- the head, the decision, the scopes ------------------------------------------------------------------------
  document.title = D.head.title;
  byId("symptom").append(
    bdi(`${D.head.name} ${D.head.value}`),
    h("small", "", D.head.target ? `target ${D.head.target}` : "no target"),
  );
  byId("standing").append(h("span", "text", D.head.symptom), h("br"), h("span", "text", D.head.standing));

  async function copy(text, where) {
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    where.textContent = done ? "copied" : "select it";
    setTimeout(() => { where.textContent = "copy"; }, 1600);
  }

  const d = D.decision;
  byId("next").append(h("p", "verdict", h("span", "badge", `${d.kind} · ${d.scope}`), d.verdict));
  for (const cls of ["question", "why"]) if (d[cls]) byId("next").append(h("p", cls, d[cls]));
  if (d.steps.length) {
    const steps = h("ol", "steps");
    for (const step of d.steps) {
      const b = button("copy", () => copy(step.shell, b));
      b.textContent = "copy";
      b.setAttribute("aria-label", `copy the command for ${step.where}: ${step.why}`);
      steps.append(h("li", "step", h("p", "for", h("b", "", step.where), ` ${step.why}`), h("pre", "", h("code", "", step.shell)), b));
    }
    byId("next").append(steps);
  }
  const terms = [["needs", d.needs.join("; ")], ["costs", d.overhead], ["or else", d.alternative], ["metrics", d.metrics]]
    .filter(([, text]) => text);
  if (terms.length) byId("next").append(h("details", "terms", h("summary", "", terms.map(([head]) => head).join(", ")), facts(terms)));

  byId("scopes-h").textContent = D.scopes.heading;
  if (D.scopes.distance) {
    byId("scopes").append(h("p", "goaltext", `dashed line: ${D.scopes.distance_text}; a bar that ends before it cannot reach the target`));
  }
  for (const row of D.scopes.rows) {
    const fill = h("i", row.chosen ? "fill chosen" : "fill");
    fill.style.width = `${100 * row.ns / D.scopes.scale}%`;
    const track = h("div", "track", fill);
    if (D.scopes.distance) {
      const goal = h("i", "goal");
      goal.style.left = `${100 * D.scopes.distance / D.scopes.scale}%`;
      track.append(goal);
    }
    byId("scopes").append(h("div", "bound", h("span", "scope", row.scope), track,
      h("div", "text", h("b", "", row.text), row.reasons.length ? `; ${row.reasons.join("; ")}` : "")));
  }
  if (!D.scopes.rows.length) byId("scopes").hidden = true;

  // ---- ledger ----------------------------------------------------------------------------------------------------
  const ledger = byId("ledger");
  if (G.phases.length > 1) {
    const strip = h("div", "strip");
    for (const p of G.phases) {
      const e = h("div", p.f < 0 ? "open" : `f${p.f}`);
      e.style.flex = `${p.d} 0 0`;
      if (p.d < 0.05 * G.total) e.classList.add("thin"); else e.textContent = `${p.t} ${fmt(p.d)}${p.f < 0 ? ": what the trace shows of it stands below" : ""}`;
      e.title = `${p.c}: ${p.t}, ${fmt(p.d)}`;
      strip.append(e);
    }
    ledger.append(h("p", "note", "The interval by phases, then by lines; a bar shows the share."), strip);
  }
  const most = Math.max(...D.ledger.rows.map((r) => r.share), 0.001);
  const SHOWN = 14;
  const hiddenLines = [];
  const lineOf = new Map();
  D.ledger.rows.forEach((r, i) => {
    const bar = h("i", `f${r.family}`);
    bar.style.width = `${100 * r.share / most}%`;
    const what = h("span", "what", h("span", "cat mono", r.category),
      h("span", "name", r.label, r.count > 1 ? ` (${r.count}×)` : ""));
    const cells = [h("span", "ns", `${r.amount}`), h("span", "pc", r.percent), h("span", "bar", bar), what,
      h("span", "who", r.resolved)];
    const e = r.thing >= 0 ? button("line", () => choose(S.thing === r.thing ? -1 : r.thing), ...cells) : h("div", "line", ...cells);
    e.title = r.meaning;
    if (r.thing >= 0) {
      e.setAttribute("aria-pressed", "false");
      lineOf.set(r.thing, e);
    }
    if (i >= SHOWN) hiddenLines.push(e);
    ledger.append(e);
  });
  if (hiddenLines.length > 1) {
    hiddenLines.forEach((e) => { e.hidden = true; });
    const more = button("more", () => { hiddenLines.forEach((e) => { e.hidden = false; }); more.remove(); }, `${hiddenLines.length} smaller lines`);
    more.id = "more";
    ledger.append(more);
  }
  if (D.ledger.rest) ledger.append(h("p", "note", D.ledger.rest));
  ledger.append(h("p", "note", D.ledger.sum));

  // ---- charts of what repeats ------------------------------------------------------------------------------------
  function chart(t) {
    const c = t.chart, [x0, x1, y0, y1] = [46, 296, 8, 106];
    const root = s("svg", { viewBox: "0 0 360 126", role: "img", "aria-label": `${t.title}: ${c.caption}` });
    const [low, high] = c.range;
    const y = c.log ? (v) => y1 - (y1 - y0) * Math.log(Math.max(v, low) / low) / Math.log(high / low)
      : (v) => y1 - (y1 - y0) * (v - low) / (high - low);
    const x = (at) => x0 + (x1 - x0) * at / Math.max(G.total, 1);
    root.append(s("rect", { x: x0, y: y(c.p90), width: 356 - x0, height: Math.max(1, y(c.p10) - y(c.p90)), class: "band" }));
    root.append(s("line", { x1: x0, x2: 356, y1: y1, y2: y1, class: "rule" }), s("line", { x1: x0, x2: x0, y1: y0, y2: y1, class: "rule" }));
    for (let i = 0; i < c.at.length; i++) {
      root.append(s("circle", { cx: x(c.at[i]).toFixed(1), cy: y(c.ns[i]).toFixed(1), r: 1.9, class: `dot s${t.family}` }));
    }
    root.append(s("line", { x1: x0, x2: 356, y1: y(c.median), y2: y(c.median), class: "mid" }));
    if (c.course_at.length) {
      root.append(s("polyline", { points: c.course_at.map((at, i) => `${x(at).toFixed(1)},${y(c.course_ns[i]).toFixed(1)}`).join(" "), class: "course" }));
    }
    const full = Math.max(...c.bins, 1), tall = (y1 - y0) / c.bins.length;
    c.bins.forEach((n, i) => {
      if (n) root.append(s("rect", { x: 304, y: y1 - (i + 1) * tall + 0.4, width: Math.max(1, 52 * n / full), height: Math.max(0.8, tall - 0.8), class: `s${t.family}` }));
    });
    const label = (v, at) => root.append(s("text", { x: x0 - 5, y: at, "text-anchor": "end" }, fmt(v)));
    label(high - 1, y0 + 4);
    if (y(c.median) > y0 + 14 && y(c.median) < y1 - 10) label(c.median, y(c.median) + 4);
    label(low, y1 + 2);
    root.append(s("text", { x: x0, y: 121 }, "0"), s("text", { x: x1, y: 121, "text-anchor": "end" }, `${fmt(G.total)} into the interval`),
      s("text", { x: 356, y: 121, "text-anchor": "end" }, "how many"));
    return root;
  }
  const figures = new Map();
  const grid = h("div", "grid");
  const KIND = { line: "ledger line", pattern: "pattern", gaps: "idle gaps" };
  for (const i of D.repeats) {
    const t = D.things[i];
    const title = button("title", () => { choose(i); reveal(); }, swatch(t.family), h("span", "name", t.title));
    const figure = h("figure", "", title, h("p", "note", `${KIND[t.kind]} ${t.id} · ${t.category}`), chart(t),
      h("figcaption", "", t.chart.caption));
    figures.set(i, figure);
    grid.append(figure);
  }
  if (D.repeats.length) byId("repeats").append(h("p", "note", "Each dot is one occurrence: when it begins, how long it is. The band is p10 to p90, the dashed line the median, the solid line its course, the bars at the right the distribution."), grid);
  else byId("repeats").hidden = true;

  // ---- statements, remarks, devices, the rest --------------------------------------------------------------------
  const said = h("div", "said");
  for (const t of D.statements) {
    const a = h("article", "", h("p", "", h("span", "id", t.id), h("span", "soft mono", `${t.category} · ${t.verdict}`)), h("p", "text", t.text));
    a.style.borderLeftColor = `var(--f${t.family})`;
    const more = h("ul", "");
    for (const [head, texts] of [["where: ", [t.location]], ["seen in: ", [t.evidence]], ["predicts: ", t.predicts], ["refuted by: ", t.refuted]]) {
      for (const text of texts) if (text) more.append(h("li", "", h("b", "", head), text));
    }
    a.append(more);
    if (t.thing >= 0) a.append(button("go", () => { choose(t.thing); reveal(); }, "show on the axis"));
    said.append(a);
  }
  if (D.statements.length) byId("statements").append(said); else byId("statements").hidden = true;
  for (const [id, texts] of [["unknown", D.unknown], ["warnings", D.warnings]]) {
    byId(id).append(texts.length ? list("plain", texts) : h("p", "soft", id === "unknown" ? "Nothing that this question needs." : "None."));
  }
  for (const device of D.devices) {
    const stack = h("div", "stack");
    for (const p of device.parts) {
      const e = h("i", `f${p.family}`);
      e.style.width = `${100 * p.share}%`;
      e.title = p.text;
      stack.append(e);
    }
    byId("devices").append(h("p", "", device.text), stack, h("p", "note more", device.parts.map((p) => p.text).join(" · ")));
  }
  if (!D.devices.length) byId("devices").hidden = true;
  for (const b of D.behind) {
    const table = h("table", "");
    if (b.head.length) table.append(h("thead", "", h("tr", "", ...b.head.map((x) => h("th", "", x)))));
    const body = h("tbody", "");
    for (const row of b.rows) body.append(h("tr", "", ...row.map((x) => h("td", x.length < 24 ? "short" : "", x))));
    table.append(body);
    const e = h("details", "", h("summary", "", b.title), h("div", "scroll", table));
    if (b.count > b.rows.length) e.append(h("p", "note", `${b.count - b.rows.length} more: see the JSON report`));
    byId("behind").append(e);
  }

  // ---- selection -------------------------------------------------------------------------------------------------
  const S = { thing: -1, member: -1, link: null, piece: null, cursor: -1 };
  const panel = byId("panel");
  const spoken = h("p", "hidden");
  spoken.setAttribute("aria-live", "polite");
  document.body.append(spoken);

  function members(t) {
    if (t.decoded === undefined) t.decoded = t.members ? decode(t.members) : null;
    return t.decoded;
  }
  function choose(thing, more = {}) {
    Object.assign(S, { thing, member: -1, link: null, piece: null }, more);
    for (const [i, e] of lineOf) e.setAttribute("aria-pressed", String(i === thing));
    for (const [i, e] of figures) e.classList.toggle("on", i === thing);
    const shown = lineOf.get(thing);
    if (shown && shown.hidden) byId("more").click();
    showPanel();
    redraw();
  }
  const clear = () => { S.cursor = -1; choose(-1); };
  function reveal() {
    const box = byId("time").getBoundingClientRect();
    if (box.bottom < 80 || box.top > innerHeight - 80) byId("time").scrollIntoView({ block: "start" });
  }
  function facts(pairs) {
    const dl = h("dl", "facts");
    for (const [k, v] of pairs) dl.append(h("dt", "", k), h("dd", "", v));
    return dl;
  }
  function showPanel() {
    panel.replaceChildren();
    panel.scrollTop = 0;
    const t = D.things[S.thing];
    panel.classList.toggle("on", Boolean(t || S.piece));
    const head = h("h2", "");
    head.id = "panel-h";
    if (!t && !S.piece) {
      head.textContent = "Selection";
      panel.append(head, h("p", "", "Choose a bar of the ledger, a gap or a piece of the path: its repetitions light up on the axis, and what is known of them stands here."));
      const keys = [["← →", "move along the axis"], ["↑ ↓", "closer, wider"], ["Home", "the whole interval"], ["n p", "next and previous piece or occurrence"], ["Enter", "choose"], ["Esc", "clear"]];
      if (G.axis) panel.append(h("h4", "", "With the axis in focus"), facts2(keys));
      return;
    }
    if (S.piece) {
      const p = S.piece;
      head.textContent = "Event";
      panel.append(head, h("p", "kind", p.name.f < 0 ? null : swatch(p.name.f), p.name.c), h("h3", "", p.name.t || p.name.c), facts(p.facts));
      const acts = h("div", "acts");
      if (p.name.line >= 0) acts.append(button("", () => choose(p.name.line), "its line of the ledger"));
      acts.append(button("", clear, "clear"));
      panel.append(acts);
      return;
    }
    head.textContent = `${KIND[t.kind]} ${t.id}`;
    panel.append(head, h("p", "kind", swatch(t.family), `${t.category}: ${t.meaning}`), h("h3", "", t.title));
    if (t.text) panel.append(h("p", "text told", t.text));
    panel.append(facts(t.facts));
    if (S.link) panel.append(h("h4", "", "This gap"), facts(S.link.facts));
    const acts = h("div", "acts");
    if (t.members && G.axis) {
      acts.append(button("", () => member(-1), "◀ previous"), button("", () => member(1), "next ▶"), button("", zoomToAll, "all of them"));
    }
    acts.append(button("", clear, "clear"));
    panel.append(acts);
    if (t.chart) panel.append(chart(t), h("p", "note", t.chart.caption));
    if (t.where) panel.append(h("h4", "", "Where"), h("p", "text", t.where));
    if (t.predicts.length) panel.append(h("h4", "", "Predicts"), list("plain", t.predicts));
    if (t.refuted.length) panel.append(h("h4", "", "Refuted by"), list("plain", t.refuted));
    if (t.links.length) {
      panel.append(h("h4", "", "Of the same cause"), h("div", "links", ...t.links.map((i) => {
        const o = D.things[i];
        return button("", () => choose(i), `${KIND[o.kind]} ${o.id}: ${o.title}, ${o.count}×, ${fmt(o.total)}`);
      })));
    }
  }
  function facts2(pairs) {
    const dl = h("dl", "facts");
    for (const [k, v] of pairs) dl.append(h("dt", "", ...k.split(" ").map((x) => { const e = h("kbd", ""); e.textContent = x; return e; })), h("dd", "", v));
    return dl;
  }

  // ---- the time axis ---------------------------------------------------------------------------------------------
  function decode(p) {
    const n = p.d.length, start = new Float64Array(n), end = new Float64Array(n);
    let at = 0;
    for (let i = 0; i < n; i++) { at += p.s[i]; start[i] = at; end[i] = at + p.d[i]; }
    return { n, start, end, name: p.n, count: p.c, busy: p.b, lane: p.lane };
  }
  const path = decode(G.path);
  const lanes = G.lanes.map((l) => ({ ...l, rows: l.rows.map(decode) }));
  const links = new Map(G.links.map((l) => { const x = { ...l, start: l.s, end: l.s.map((v, i) => v + l.d[i]), n: l.s.length }; return [l.lane, x]; }));
  const canvas = h("canvas", "");
  const ctx = canvas.getContext("2d");
  const view = [0, G.total];
  let all = false, W = 0, H = 0, gutter = 0, rows = [], fill = [], ink = {}, pending = false, printing = 0;
  const NARROW = 760, ROW = 15, PATH = 26;

  function colours() {
    const css = getComputedStyle(document.documentElement);
    const get = (name) => css.getPropertyValue(name).trim();
    ink = { ink: get("--ink"), soft: get("--soft"), line: get("--line"), card: get("--card"), track: get("--track"), mark: get("--mark"), shade: get("--shade"), accent: get("--accent") };
    const dpr = ratio();
    fill = G.families.map((_, f) => {
      const plain = get(`--f${f}`), over = get(`--i${f}`);
      const tile = document.createElement("canvas"), size = 8;
      tile.width = tile.height = size * dpr;
      const c = tile.getContext("2d");
      c.scale(dpr, dpr);
      c.fillStyle = plain; c.fillRect(0, 0, size, size);
      c.strokeStyle = c.fillStyle = over; c.globalAlpha = f === 3 ? 0.2 : 0.4; c.lineWidth = 1;
      const line = (...xy) => { c.beginPath(); c.moveTo(xy[0], xy[1]); c.lineTo(xy[2], xy[3]); c.stroke(); };
      if (f === 1) { line(-2, 6, 6, -2); line(2, 10, 10, 2); }
      if (f === 2) { c.fillRect(1, 1, 1.4, 1.4); c.fillRect(5, 5, 1.4, 1.4); }
      if (f === 3) { line(-2, 2, 6, 10); line(2, -2, 10, 6); }
      if (f === 4) { line(2, 0, 2, size); line(6, 0, 6, size); }
      if (f === 5) { line(0, 2, size, 2); line(0, 6, size, 6); }
      if (f === 6) { line(4, 0, 4, size); line(0, 4, size, 4); }
      if (f === 7) line(0, size, size, 0);
      const pattern = ctx.createPattern(tile, "repeat");
      pattern.setTransform(new DOMMatrix().scale(1 / dpr));
      return { plain, pattern, over };
    });
  }
  const ratio = () => Math.min(3, Math.max(printing ? 2 : 1, devicePixelRatio || 1));
  const X = (t) => gutter + (t - view[0]) / (view[1] - view[0]) * (W - gutter);
  const T = (x) => view[0] + (x - gutter) / (W - gutter) * (view[1] - view[0]);

  function layout() {
    W = printing || Math.max(240, byId("axis").clientWidth);
    gutter = W >= NARROW ? 176 : 0;
    rows = [];
    let y = 22;
    const add = (what, height, data, caption, lane = -1, row = 0) => {
      if (caption && !gutter) y += 15;
      rows.push({ what, y, height, data, caption, lane, row });
      y += height;
    };
    if (G.phases.length > 1) { add("phases", ROW + 3, null, "phases"); y += 4; }
    add("path", PATH, path, "critical path");
    y += 8;
    lanes.forEach((l, i) => {
      if (!l.main && !all) return;
      const caption = l.kind === "idle" ? `${l.title} waits` : l.title;
      l.rows.forEach((r, k) => { if (r.n || k === 0) add(l.kind, ROW, r, k ? "" : caption, i, k); });
      y += 8;
    });
    H = y + 2;
    const dpr = ratio();
    canvas.width = Math.round(W * dpr);
    canvas.height = Math.round(H * dpr);
    canvas.style.height = printing ? "auto" : `${H}px`;
    colours();
  }
  function redraw() {
    if (pending || !G.axis) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; draw(); });
  }
  // First piece that may reach into the view: ends are in order but for overlaps, which reach back a few pieces.
  function first(p, t) {
    let a = 0, b = p.n;
    while (a < b) { const m = (a + b) >> 1; if (p.start[m] < t) a = m + 1; else b = m; }
    a = Math.max(0, a - 1);
    for (let k = 0; k < 8 && a > 0 && p.end[a - 1] > t; k++) a--;
    return a;
  }
  function text(str, x, y, width, colour, weight = "") {
    const size = printing ? 12 : 11;
    ctx.font = `${weight} ${size}px system-ui, sans-serif`;
    let shown = str;
    const most = Math.floor(width / (size * 0.5));
    if (shown.length > most) shown = `${shown.slice(0, Math.max(0, most - 1))}…`;
    while (shown.length > 1 && ctx.measureText(shown).width > width) shown = `${shown.slice(0, -2)}…`;
    if (shown.length < 3 && shown !== str) return;
    ctx.fillStyle = colour;
    ctx.fillText(shown, x, y);
  }
  function pieces(p, y, height) {
    let last = -9, i = first(p, view[0]);
    for (; i < p.n && p.start[i] < view[1]; i++) {
      const a = Math.max(gutter, X(p.start[i])), b = Math.min(W, X(p.end[i])), w = b - a;
      if (b < gutter) continue;
      const name = G.names[p.name[i]], f = fill[name ? name.f : 7];
      if (w < 1) {
        if (a - last < 0.7) continue;
        ctx.fillStyle = f.plain; ctx.fillRect(a, y, 0.9, height); last = a;
        continue;
      }
      const many = p.count && p.count[i] > 1;
      if (many) {
        const share = Math.min(1, p.busy[i] / Math.max(1, p.end[i] - p.start[i]));
        ctx.globalAlpha = 0.25; ctx.fillStyle = f.plain; ctx.fillRect(a, y, w, height); ctx.globalAlpha = 1;
        ctx.fillRect(a, y + height * (1 - share), w, height * share);
      } else {
        ctx.fillStyle = w > 5 ? f.pattern : f.plain;
        ctx.fillRect(a, y, w > 3 ? w - 0.6 : w, height);
      }
      if (w > 34 && name) text(many ? `${p.count[i]}× ${name.t || name.c}` : name.t || name.c, a + 4, y + height / 2 + 4, w - 8, many ? ink.ink : f.over);
      last = b;
    }
  }
  function draw() {
    const dpr = ratio();
    ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
    ctx.clearRect(0, 0, W, H);
    ctx.fillStyle = ink.card; ctx.fillRect(0, 0, W, H);
    axis();
    for (const r of rows) {
      ctx.fillStyle = ink.track;
      ctx.fillRect(gutter, r.y, W - gutter, r.height);
      if (r.caption) {
        if (gutter) text(r.caption, 0, r.y + r.height / 2 + 4, gutter - 10, ink.soft, r.what === "path" ? "600" : "");
        else text(r.caption, 2, r.y - 4, W - 4, ink.soft, r.what === "path" ? "600" : "");
      }
      ctx.save();
      ctx.beginPath(); ctx.rect(gutter, r.y, W - gutter, r.height); ctx.clip();
      if (r.what === "phases") {
        for (const p of G.phases) {
          const a = Math.max(gutter, X(p.s)), w = Math.min(W, X(p.s + p.d)) - a;
          if (w <= 0) continue;
          const f = fill[p.f] || { pattern: ink.line, over: ink.ink };
          ctx.fillStyle = f.pattern; ctx.fillRect(a, r.y, Math.max(0.9, w - 0.6), r.height);
          if (w > 34) text(p.t, a + 4, r.y + r.height / 2 + 4, w - 8, f.over);
        }
      } else pieces(r.data, r.y, r.height);
      ctx.restore();
    }
    critical();
    highlight();
  }
  function axis() {
    const span = view[1] - view[0], goal = span / Math.max(2, (W - gutter) / 110);
    const base = 10 ** Math.floor(Math.log10(goal)), step = Math.max(1, base * [1, 2, 5, 10].find((m) => base * m >= goal));
    ctx.font = "11px system-ui, sans-serif";
    for (let t = Math.ceil(view[0] / step) * step; t <= view[1]; t += step) {
      const x = X(t);
      ctx.fillStyle = ink.line; ctx.fillRect(x, 16, 1, H - 16);
      ctx.fillStyle = ink.soft;
      const label = tick(t, step), w = ctx.measureText(label).width;
      if (x + w + 4 < W) ctx.fillText(label, x + 3, 12);
    }
    if (G.steps && G.steps.s.length) {
      ctx.fillStyle = ink.mark;
      for (const t of G.steps.s) if (t >= view[0] && t <= view[1]) ctx.fillRect(X(t), 15, 1, 6);
    }
  }
  // The path through the lanes: a bar under the lane that it runs through, joined where it goes over to another.
  function critical() {
    const under = new Map();
    for (const r of rows) if (r.lane >= 0) under.set(r.lane, Math.max(under.get(r.lane) || 0, r.y + r.height));
    ctx.fillStyle = ctx.strokeStyle = ink.mark;
    let joins = 0, last = -9, lastLane = -1, lastX = -9;
    ctx.lineWidth = 1; ctx.globalAlpha = 0.55; ctx.beginPath();
    const bars = [];
    for (let i = first(path, view[0]); i < path.n && path.start[i] < view[1]; i++) {
      const y = under.get(path.lane[i]);
      const a = Math.max(gutter, X(path.start[i])), b = Math.min(W, X(path.end[i]));
      if (y === undefined || b < gutter) { lastLane = -1; continue; }
      if (b - a < 0.5 && path.lane[i] === lastLane && a - last < 0.5) continue;
      bars.push([a, y + 0.5, Math.max(0.8, b - a)]);
      if (lastLane >= 0 && lastLane !== path.lane[i] && a - lastX > 2.5) {
        ctx.moveTo(a, under.get(lastLane) + 2); ctx.lineTo(a, y + 2); joins++; lastX = a;
      }
      last = b; lastLane = path.lane[i];
    }
    if (joins && joins < W / 9) ctx.stroke();
    ctx.globalAlpha = 1;
    for (const [x, y, w] of bars) ctx.fillRect(x, y, w, 3);
  }
  function highlight() {
    const t = D.things[S.thing], top = 20, r = rows.find((x) => x.what === "path");
    const m = t && members(t);
    if (m) {
      let last = -9;
      for (let i = first(m, view[0]); i < m.n && m.start[i] < view[1]; i++) {
        const a = Math.max(gutter, X(m.start[i])), w = Math.max(1.4, Math.min(W, X(m.end[i])) - a);
        if (a + w < gutter || (w < 2 && a - last < 1)) continue;
        ctx.fillStyle = ink.shade; ctx.fillRect(a, top, w, H - top);
        if (w > 3) { ctx.strokeStyle = ink.mark; ctx.lineWidth = 1; ctx.globalAlpha = 0.35; ctx.strokeRect(a + 0.5, top + 0.5, w - 1, H - top - 2); ctx.globalAlpha = 1; }
        ctx.fillStyle = ink.mark; ctx.fillRect(a, top - 2, w, 3);
        last = a + w;
      }
      if (S.member >= 0) ring(m.start[S.member], m.end[S.member], top, H - top - 2);
    }
    if (S.piece) ring(S.piece.start, S.piece.end, S.piece.y, S.piece.height);
    if (S.cursor >= 0) ring(path.start[S.cursor], path.end[S.cursor], r.y, r.height);
    if (S.link) arrow(S.link);
  }
  function ring(a, b, y, height) {
    const x = Math.max(gutter, X(a)), w = Math.max(2, Math.min(W, X(b)) - x);
    if (x > W || X(b) < gutter) return;
    ctx.strokeStyle = ink.accent; ctx.lineWidth = 2.5; ctx.strokeRect(x - 1, y - 1, w + 2, height + 2);
  }
  // From the call that launched it to the op that ended the gap.
  function arrow(l) {
    const from = rows.findLast((x) => x.lane === l.from), to = rows.find((x) => x.lane === l.to);
    if (!from || !to || l.call < 0) return;
    const [x1, y1, x2, y2] = [X(l.call), from.y + from.height / 2, X(l.end), to.y + to.height / 2];
    ctx.strokeStyle = ctx.fillStyle = ink.accent; ctx.lineWidth = 2;
    ctx.beginPath(); ctx.moveTo(x1, y1); ctx.lineTo(x2, y2); ctx.stroke();
    ctx.beginPath(); ctx.arc(x1, y1, 3.5, 0, 7); ctx.fill();
    const turn = Math.atan2(y2 - y1, x2 - x1);
    ctx.beginPath(); ctx.moveTo(x2, y2);
    for (const side of [2.7, -2.7]) ctx.lineTo(x2 + 10 * Math.cos(turn + side), y2 + 10 * Math.sin(turn + side));
    ctx.fill();
  }

  // ---- moving about ----------------------------------------------------------------------------------------------
  function setView(a, b) {
    const least = Math.min(G.total, 50);
    let span = Math.min(G.total, Math.max(least, b - a));
    let lo = Math.min(Math.max(0, (a + b - span) / 2), G.total - span);
    view[0] = lo; view[1] = lo + span;
    redraw();
  }
  const pan = (share) => { const w = (view[1] - view[0]) * share; setView(view[0] + Math.max(w, -view[0]), view[1] + Math.max(w, -view[0])); };
  function zoom(factor, at = (view[0] + view[1]) / 2) {
    const span = Math.min(G.total, Math.max(50, (view[1] - view[0]) * factor)), share = (at - view[0]) / (view[1] - view[0]);
    setView(at - span * share, at + span * (1 - share));
  }
  function lookAt(a, b) {
    const ns = Math.max(b - a, G.total / 1e6), span = Math.min(Math.max(view[1] - view[0], ns * 2.5), ns * 14);
    if (a < view[0] || b > view[1] || span < view[1] - view[0]) setView((a + b - span) / 2, (a + b + span) / 2);
    redraw();
  }
  function member(by) {
    const m = members(D.things[S.thing]);
    if (!m || !m.n) return;
    if (S.member < 0) {
      const from = first(m, (view[0] + view[1]) / 2);
      S.member = view[1] - view[0] >= G.total ? (by > 0 ? 0 : m.n - 1) : Math.min(m.n - 1, from + (by > 0 ? 1 : 0));
    } else S.member = (S.member + by + m.n) % m.n;
    lookAt(m.start[S.member], m.end[S.member]);
    spoken.textContent = `${S.member + 1} of ${m.n}, ${fmt(m.end[S.member] - m.start[S.member])} at ${fmt(m.start[S.member])}`;
  }
  function zoomToAll() {
    const m = members(D.things[S.thing]);
    const a = m.start[0], b = Math.max(...m.end.slice(-50)), room = 0.03 * (b - a) + 1;
    S.member = -1;
    setView(a - room, b + room);
  }
  function step(by) {
    if (S.thing >= 0 && members(D.things[S.thing])) { member(by); return; }
    if (S.cursor < 0) S.cursor = Math.min(path.n - 1, first(path, view[0]) + (by > 0 ? 0 : 1));
    else S.cursor = Math.min(path.n - 1, Math.max(0, S.cursor + by));
    const a = path.start[S.cursor], b = path.end[S.cursor], name = G.names[path.name[S.cursor]];
    if (a < view[0] || b > view[1]) setView((a + b) / 2 - (view[1] - view[0]) / 2, (a + b) / 2 + (view[1] - view[0]) / 2);
    redraw();
    spoken.textContent = `piece ${S.cursor + 1} of ${path.n}: ${name.c} ${name.t}, ${fmt(b - a)} at ${fmt(a)}`;
  }
  // A pattern says more than its line, where the piece is one of its occurrences.
  function thingOf(name, t) {
    const found = D.things.findIndex((x) => {
      if (x.kind !== "pattern" || x.repeat < 0 || x.category !== name.c || x.cause !== name.t) return false;
      const m = members(x), i = first(m, t);
      for (let k = i; k < Math.min(i + 3, m.n); k++) if (m.start[k] <= t && t < m.end[k]) return true;
      return false;
    });
    return found >= 0 ? found : name.line;
  }

  function hit(x, y) {
    const r = rows.find((q) => y >= q.y - 2 && y < q.y + q.height + 4);
    if (!r || x < gutter) return null;
    const t = T(x), near = 3 * (view[1] - view[0]) / (W - gutter);
    if (r.what === "phases") {
      const p = G.phases.find((q) => t >= q.s && t < q.s + q.d);
      return p ? { r, t, phase: p, start: p.s, end: p.s + p.d, name: { c: p.c, t: p.t, f: p.f, line: -1 }, count: 1 } : null;
    }
    const p = r.data;
    let best = -1, far = near;
    for (let i = first(p, t - near); i < p.n && p.start[i] <= t + near; i++) {
      const away = t < p.start[i] ? p.start[i] - t : t >= p.end[i] ? t - p.end[i] : -1;
      if (away < far) { best = i; far = away; }
    }
    if (best < 0) return null;
    return { r, t, i: best, start: p.start[best], end: p.end[best], name: G.names[p.name[best]], count: p.count ? p.count[best] : 1, busy: p.busy ? p.busy[best] : 0 };
  }
  function describe(q) {
    const at = [["begins", `${fmt(q.start)} into the interval`], ["lasts", fmt(q.end - q.start)]];
    if (q.count > 1) at.push(["drawn together", `${q.count} events that cover ${fmt(q.busy)}; the colour is that of the longest`]);
    return at;
  }
  function select(q) {
    if (!q) { clear(); return; }
    S.cursor = -1;
    if (q.r.what === "path") {
      S.cursor = q.i;
      const thing = thingOf(q.name, Math.max(q.t, q.start));
      if (thing >= 0) { choose(thing); return; }
    }
    if (q.r.what === "idle") {
      const l = links.get(q.r.lane), i = l ? first(l, q.t) : 0;
      for (let k = i; l && k < Math.min(i + 3, l.n); k++) {
        if (l.start[k] <= Math.max(q.t, q.start) && Math.max(q.t, q.start) < l.end[k] && l.thing[k] >= 0) {
          const late = l.call[k] < 0 ? [] : [["asked for", `${fmt(l.call[k])} into the interval`]];
          choose(l.thing[k], { link: { start: l.start[k], end: l.end[k], call: l.call[k], from: l.from[k], to: l.to[k],
            facts: [["begins", `${fmt(l.start[k])} into the interval`], ["lasts", fmt(l.d[k])], ["here", `${q.name.c}: ${q.name.t}`], ...late] } });
          return;
        }
      }
    }
    choose(-1, { piece: { ...q, y: q.r.y, height: q.r.height, facts: [["category", q.name.c], ["lane", q.r.lane >= 0 ? lanes[q.r.lane].title : "critical path"], ...describe(q)] } });
  }

  function tools() {
    const bar = h("div", "toolbar");
    const b = (label, title, act) => { const e = button("", act, label); e.title = title; e.setAttribute("aria-label", title); return e; };
    bar.append(b("−", "wider", () => zoom(2)), b("+", "closer", () => zoom(0.5)), b("whole interval", "the whole interval", () => setView(0, G.total)));
    if (G.work) bar.append(b("device work", "from the first device op to the end of the last", () => setView(...G.work)));
    if (lanes.some((l) => !l.main)) {
      const e = b(`all ${lanes.length} lanes`, "show or hide the lesser lanes", () => { all = !all; e.firstChild.textContent = all ? "main lanes" : `all ${lanes.length} lanes`; layout(); draw(); });
      bar.append(e);
    }
    bar.append(h("span", "spring"), h("span", "note", "drag to move, Ctrl or Alt with the wheel to zoom, click to choose"));
    return bar;
  }
  function start() {
    const time = byId("time");
    const box = h("div", "");
    box.id = "axis";
    canvas.id = "canvas";
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label", `Time axis of ${fmt(G.total)}: critical path, ${lanes.length} lanes. Arrow keys move and zoom, n and p go from piece to piece, Enter chooses, Escape clears.`);
    box.append(canvas);
    const steps = G.steps && G.steps.count ? [`${G.steps.text}${G.steps.s.length ? ", marked on the axis" : ""}.`] : [];
    time.append(tools(), box, h("div", "legend", ...G.legend.map((words, f) => h("span", "", swatch(f), words)),
      h("span", "", "▬ under a lane: the critical path runs through it")), list("notes", [...steps, ...G.notes]));
    // Where a time of the first lane of a kind is drawn; a way in for tests.
    canvas.spot = (what, t) => { const r = rows.find((x) => x.what === what); return r && { x: X(t), y: r.y + r.height / 2 }; };
    layout();
    draw();

    let down = null;
    const at = (e) => { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
    canvas.addEventListener("pointerdown", (e) => { if (e.button === 0) down = { x: at(e)[0], v: [...view], moved: false, id: e.pointerId }; });
    canvas.addEventListener("pointermove", (e) => {
      const [x, y] = at(e);
      if (down) {
        if (!down.moved && Math.abs(x - down.x) > 4) { down.moved = true; canvas.setPointerCapture(down.id); }
        if (down.moved) { const by = (down.x - x) / (W - gutter) * (down.v[1] - down.v[0]); setView(down.v[0] + Math.max(by, -down.v[0]), down.v[1] + Math.max(by, -down.v[0])); }
      }
      const q = down && down.moved ? null : hit(x, y), tip = byId("tip");
      tip.hidden = !q;
      if (q) {
        tip.replaceChildren(h("b", "", q.name.t || q.name.c), h("br"), bdi(`${q.name.c}, ${fmt(q.end - q.start)} at ${fmt(q.start)}${q.count > 1 ? `, ${q.count} events drawn together` : ""}`));
        tip.style.left = `${Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
        tip.style.top = `${e.clientY + 18 + tip.offsetHeight > innerHeight ? e.clientY - tip.offsetHeight - 10 : e.clientY + 18}px`;
      }
    });
    canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
    canvas.addEventListener("pointerup", (e) => { const moved = down && down.moved; down = null; if (!moved) select(hit(...at(e))); });
    canvas.addEventListener("pointercancel", () => { down = null; });
    canvas.addEventListener("dblclick", (e) => zoom(0.25, T(at(e)[0])));
    canvas.addEventListener("wheel", (e) => {
      if (e.ctrlKey || e.altKey || e.metaKey) { e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : 0.8, T(at(e)[0])); }
      else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { e.preventDefault(); pan(e.deltaX / 900); }
    }, { passive: false });
    canvas.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const far = e.shiftKey ? 0.6 : 0.15;
      const act = { ArrowLeft: () => pan(-far), ArrowRight: () => pan(far), ArrowUp: () => zoom(0.7), ArrowDown: () => zoom(1 / 0.7), "+": () => zoom(0.7), "-": () => zoom(1 / 0.7),
        Home: () => setView(0, G.total), n: () => step(1), p: () => step(-1),
        Enter: () => { if (S.cursor < 0) S.cursor = first(path, (view[0] + view[1]) / 2); const c = S.cursor; choose(thingOf(G.names[path.name[c]], path.start[c])); S.cursor = c; redraw(); } }[e.key];
      if (act) { e.preventDefault(); act(); }
    });
    new ResizeObserver(() => { if (!printing && byId("axis").clientWidth !== W) { layout(); draw(); } }).observe(box);
  }

  // ---- theme, print, start ---------------------------------------------------------------------------------------
  const root = document.documentElement, themes = ["auto", "light", "dark"];
  const theme = byId("theme");
  const setTheme = (name) => {
    root.dataset.theme = name;
    theme.textContent = `theme: ${name}`;
    if (G.axis) { colours(); redraw(); }
  };
  theme.addEventListener("click", () => setTheme(themes[(themes.indexOf(root.dataset.theme) + 1) % 3]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (G.axis) { colours(); redraw(); } });
  let before = null;
  addEventListener("beforeprint", () => {
    before = { theme: root.dataset.theme, open: [...document.querySelectorAll("details")].map((x) => x.open), lines: hiddenLines.map((x) => x.hidden) };
    printing = 1080;
    setTheme("light");
    document.querySelectorAll("details").forEach((x) => { x.open = true; });
    hiddenLines.forEach((x) => { x.hidden = false; });
    if (G.axis) { layout(); draw(); }
  });
  addEventListener("afterprint", () => {
    printing = 0;
    document.querySelectorAll("details").forEach((x, i) => { x.open = before.open[i]; });
    hiddenLines.forEach((x, i) => { x.hidden = before.lines[i]; });
    setTheme(before.theme);
    if (G.axis) { layout(); draw(); }
  });
  addEventListener("keydown", (e) => { if (e.key === "Escape") clear(); });
  if (G.axis) start();
  else byId("time").hidden = true;
  setTheme("auto");
  const wanted = D.things.findIndex((t) => `#${t.id}` === location.hash);
  choose(wanted);
  root.dataset.ready = "yes";
})();
