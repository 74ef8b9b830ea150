/** The timeline of a profile: what is in view, and what keys, mouse and links do to it. The URL holds the view. */

import { Windows, barAt } from "./timeline-data.js";
import { RULER, colours, draw, layout, levelWords, words } from "./timeline-draw.js";
import { say } from "./app.js";

const setup = JSON.parse(document.getElementById("timeline-setup").textContent);
const box = document.getElementById("timeline");
const canvas = box.querySelector("canvas");
const tip = box.querySelector(".tip");
const details = document.getElementById("details");
const markForm = document.getElementById("mark");
const plan = layout(setup);
const windows = new Windows(setup, (error) => {
  box.dataset.error = error ?? "";
  if (error) say(`${error} The timeline shows what was loaded before.`, "bad");
  paint();
});
const state = { lo: 0, hi: 1, left: 0, width: 0, selection: null, marks: [], picked: -1 };
let palette = colours(box);
let asked = false;

/* ---- view ---- */

function setView(lo, hi) {
  const whole = setup.end - setup.start, margin = 0.02 * whole;
  const span = Math.min(Math.max(hi - lo, 20), whole + 2 * margin);
  state.lo = Math.min(Math.max(lo, setup.start - margin), setup.end + margin - span);
  state.hi = state.lo + span;
  document.getElementById("range").textContent =
    `${words(state.lo)} – ${words(state.hi)} · ${words((state.hi - state.lo) / Math.max(1, state.width - state.left))} a pixel`;
  tip.hidden = true; // what lay under the pointer lies elsewhere now
  remember();
  paint();
}

function show(from, to) {
  const margin = Math.max(10, (to - from) * 0.05);
  setView(from - margin, to + margin);
}

/** The time under the pointer while it is over the lanes, else the middle: there keys zoom. */
let pointerAt = null;
const focus = () => (pointerAt === null ? (state.lo + state.hi) / 2 : timeAt(pointerAt));

function zoom(factor, around = focus()) {
  setView(around - (around - state.lo) * factor, around + (state.hi - around) * factor);
}

function pan(share) {
  const by = share * (state.hi - state.lo);
  setView(state.lo + by, state.hi + by);
}

let writing = 0;
function remember() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    const url = new URL(location);
    url.searchParams.set("from", Math.round(state.lo));
    url.searchParams.set("to", Math.round(state.hi));
    history.replaceState(null, "", url);
  }, 150);
}

/* ---- painting ---- */

function paint() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const window = windows.get(state.lo, state.hi, state.width - state.left);
    draw(canvas.getContext("2d"), plan, window, windows.names, state, palette);
    box.classList.toggle("wait", !window);
    box.dataset.painted = String(Number(box.dataset.painted ?? 0) + 1);
  });
}

function resize() {
  const scale = devicePixelRatio || 1;
  state.width = box.clientWidth;
  state.left = state.width > 640 ? Math.min(190, state.width * 0.2) : 0;
  canvas.style.height = `${plan.height}px`;
  canvas.width = Math.round(state.width * scale);
  canvas.height = Math.round(plan.height * scale);
  canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
  setView(state.lo, state.hi);
}

function readMarks() {
  state.marks = [...document.querySelectorAll("[data-region]")].map((e) => ({ from: Number(e.dataset.from), to: Number(e.dataset.to) }));
  paint();
}

/* ---- what lies under the pointer ---- */

const timeAt = (x) => state.lo + ((x - state.left) / (state.width - state.left)) * (state.hi - state.lo);

function under(x, y) {
  const index = plan.rows.findIndex((row) => y >= row.y && y < row.y + row.height);
  const window = windows.get(state.lo, state.hi, state.width - state.left);
  const row = window?.rows.get(index);
  if (!row || x < state.left) return null;
  if (row.level) return { text: levelWords(plan.rows[index], row, (timeAt(x) - window.lo) / (window.hi - window.lo)) };
  if (row.busy) {
    const share = row.busy[Math.floor(((timeAt(x) - window.lo) / (window.hi - window.lo)) * row.busy.length)];
    return { text: `${row.count.toLocaleString("en")} events in and around the view; busy ${Math.round((100 * (share ?? 0)) / 255)} % here. Zoom in for names.` };
  }
  const bar = barAt(row, window.lo, timeAt(x), (3 * (state.hi - state.lo)) / state.width);
  if (bar < 0) return null;
  const start = row.start[bar] + window.lo;
  return { id: row.first + bar, from: start, to: start + row.length[bar], text: `${windows.names.get(row.name[bar])} · ${words(row.length[bar])}` };
}

function hover(event) {
  const rect = canvas.getBoundingClientRect();
  const x = event.clientX - rect.left, y = event.clientY - rect.top;
  pointerAt = x < state.left ? null : x;
  const found = under(x, y);
  tip.hidden = !found;
  if (!found) return;
  tip.textContent = found.text;
  tip.style.top = `${y + 16}px`;
  tip.style.left = `${Math.max(0, Math.min(x + 12, state.width - tip.offsetWidth - 4))}px`;
}

async function pick(id) {
  const answer = await fetch(setup.urls.event + id, { headers: { Accept: "application/json" } }).catch(() => null);
  if (!answer?.ok) return say("The event could not be loaded. Try again.", "bad");
  describe(await answer.json());
}

function describe(event) {
  state.picked = event.id;
  const heading = document.createElement("h3");
  heading.textContent = event.name;
  const list = document.createElement("dl");
  for (const [what, value] of event.facts) {
    list.append(Object.assign(document.createElement("dt"), { textContent: what }), Object.assign(document.createElement("dd"), { textContent: value }));
  }
  details.replaceChildren(heading, list);
  details.hidden = false;
  paint();
}

/* ---- selecting and marking ---- */

function select(from, to) {
  const selection = { from: Math.round(Math.max(setup.start, Math.min(from, to))), to: Math.round(Math.min(setup.end, Math.max(from, to))) };
  state.selection = selection.to > selection.from ? selection : null;
  if (!markForm.hidden) fillMark();
  paint();
}

function mark() {
  if (!state.selection) select(state.lo, state.hi);
  if (!state.selection) return;
  fillMark();
  markForm.hidden = false;
  markForm.elements.note.focus();
}

function fillMark() {
  if (!state.selection) return unmark();
  const { from, to } = state.selection;
  markForm.elements.start_ns.value = from;
  markForm.elements.end_ns.value = to;
  document.getElementById("marked-what").textContent = `${words(from)} – ${words(to)}, ${words(to - from)}`;
}

function unmark() {
  markForm.hidden = true;
  state.selection = null;
  paint();
}

/* ---- finding ---- */

const findText = document.getElementById("find-text");
const found = document.getElementById("found");

async function find(backwards = false, fresh = false) {
  const text = findText.value.trim();
  if (!text) { found.textContent = ""; return; }
  const at = fresh ? Math.round(state.lo) - 1 : Number(details.dataset.at ?? Math.round(state.lo));
  const query = new URLSearchParams({ q: text, at: String(at) });
  if (backwards) query.set("back", "1");
  const answer = await fetch(`${setup.urls.find}?${query}`, { headers: { Accept: "application/json" } }).catch(() => null);
  if (!answer?.ok) { found.textContent = "not reached"; return; }
  const { event, names } = await answer.json();
  found.textContent = event ? `${names.toLocaleString("en")} ${names === 1 ? "name" : "names"}` : "nothing by that name";
  if (!event) return;
  details.dataset.at = event.start;
  describe(event);
  const span = Math.max(state.hi - state.lo, 1);
  const fits = event.end - event.start > span / 200 && event.end - event.start < span;
  if (!fits) show(event.start - 20 * (event.end - event.start), event.end + 20 * (event.end - event.start));
  else if (event.start < state.lo || event.end > state.hi) setView(event.start - span / 2, event.start + span / 2);
  scrollToRow(plan.rows[event.row]);
}

function scrollToRow(row) {
  if (row && (row.y < box.scrollTop || row.y + row.height > box.scrollTop + box.clientHeight)) box.scrollTop = row.y - box.clientHeight / 2;
}

/* ---- keys, mouse, links ---- */

const actions = {
  in: () => zoom(0.5), out: () => zoom(2), fit: () => setView(setup.start, setup.end), mark, unmark,
  left: () => pan(-0.25), right: () => pan(0.25),
  zoomToSelection: () => state.selection && show(state.selection.from, state.selection.to),
};
const KEYS = { w: "in", s: "out", a: "left", d: "right", ArrowLeft: "left", ArrowRight: "right", "+": "in", "-": "out", 0: "fit", f: "fit", m: "mark", z: "zoomToSelection", Escape: "unmark" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable], dialog")) return;
  if (event.key.startsWith("Arrow") && event.target !== box) return;
  if (event.key === "n" || event.key === "N") find(event.key === "N");
  else if (event.key === "/") findText.focus();
  else if (KEYS[event.key]) actions[KEYS[event.key]]();
  else return;
  event.preventDefault();
});
markForm.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { unmark(); box.focus(); }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) markForm.requestSubmit();
});
markForm.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.successful) return;
  markForm.reset();
  unmark();
});
document.addEventListener("htmx:afterSettle", readMarks);

canvas.addEventListener("wheel", (event) => {
  const x = event.clientX - canvas.getBoundingClientRect().left;
  if (x < state.left) return; // over the names of the lanes the wheel scrolls, as everywhere
  event.preventDefault();
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / 1000);
  else zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 400), timeAt(x));
}, { passive: false });

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  const rect = canvas.getBoundingClientRect();
  const x = event.clientX - rect.left;
  if (x < state.left) return;
  const onRuler = event.clientY - rect.top < RULER;
  drag = { x, moved: false, selecting: event.shiftKey || onRuler, time: timeAt(x), lo: state.lo, hi: state.hi };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) return hover(event);
  const x = event.clientX - canvas.getBoundingClientRect().left;
  if (Math.abs(x - drag.x) > 3) drag.moved = true;
  if (!drag.moved) return;
  tip.hidden = true;
  if (drag.selecting) return select(drag.time, timeAt(x));
  const by = ((drag.x - x) / (state.width - state.left)) * (drag.hi - drag.lo);
  setView(drag.lo + by, drag.hi + by);
});
canvas.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) {
    const rect = canvas.getBoundingClientRect();
    const hit = under(event.clientX - rect.left, event.clientY - rect.top);
    if (hit?.id !== undefined) { select(hit.from, hit.to); pick(hit.id); }
    else unmark();
  }
  drag = null;
});
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("pointerleave", () => { tip.hidden = true; pointerAt = null; });

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-do], [data-from], [data-find]");
  if (!target || target.dataset.region) return;
  if (target.dataset.do) return actions[target.dataset.do]?.();
  event.preventDefault();
  if (target.dataset.find) {
    findText.value = target.dataset.find;
    delete details.dataset.at;
    find(false, true);
  } else {
    select(Number(target.dataset.from), Number(target.dataset.to));
    show(Number(target.dataset.from), Number(target.dataset.to));
  }
  box.scrollIntoView({ block: "nearest" });
  box.focus({ preventScroll: true });
});
document.getElementById("find").addEventListener("submit", (event) => { event.preventDefault(); find(false, false); });
findText.addEventListener("change", () => { delete details.dataset.at; });
document.getElementById("share").addEventListener("click", async (event) => {
  clearTimeout(writing);
  const url = new URL(location);
  url.searchParams.set("from", Math.round(state.lo));
  url.searchParams.set("to", Math.round(state.hi));
  history.replaceState(null, "", url);
  await navigator.clipboard?.writeText(url.href).catch(() => null);
  event.target.textContent = "Address copied";
  setTimeout(() => { event.target.textContent = "Share view"; }, 2000);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { palette = colours(box); windows.repaint(); paint(); });
new ResizeObserver(resize).observe(box);

const asksFor = new URLSearchParams(location.search);
[state.lo, state.hi] = asksFor.has("from") && asksFor.has("to") ? [Number(asksFor.get("from")), Number(asksFor.get("to"))] : setup.view;
if (!(state.hi > state.lo)) [state.lo, state.hi] = setup.view;
readMarks();
resize();
