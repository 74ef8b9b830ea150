/** Two timelines above each other on one axis: 0 is where the compared range begins in each. */

import { Windows, barAt } from "./timeline-data.js";
import { colours, draw, layout, levelWords, words } from "./timeline-draw.js";
import { say } from "./app.js";

const setup = JSON.parse(document.getElementById("timelines-setup").textContent);
const details = document.getElementById("details");
const view = { lo: 0, hi: 1 };
const panes = ["a", "b"].map((letter) => pane(letter, setup[letter]));
const bounds = {
  lo: Math.min(...panes.map((p) => p.setup.start - p.setup.origin)),
  hi: Math.max(...panes.map((p) => p.setup.end - p.setup.origin)),
};

function pane(letter, own) {
  const box = document.getElementById(`timeline-${letter}`);
  const made = { letter, setup: own, box, canvas: box.querySelector("canvas"), tip: box.querySelector(".tip"), plan: layout(own), state: null, asked: false };
  made.state = { lo: 0, hi: 1, left: 0, width: 0, selection: null, picked: -1, offset: own.origin, marks: [{ from: own.origin, to: own.origin + own.length }] };
  made.palette = colours(box);
  made.windows = new Windows(own, (error) => {
    if (error) say(`${error} The timeline shows what was loaded before.`, "bad");
    paint(made);
  });
  return made;
}

function setView(lo, hi) {
  const whole = bounds.hi - bounds.lo, margin = 0.02 * whole;
  const span = Math.min(Math.max(hi - lo, 20), whole + 2 * margin);
  view.lo = Math.min(Math.max(lo, bounds.lo - margin), bounds.hi + margin - span);
  view.hi = view.lo + span;
  document.getElementById("range").textContent = `${words(view.lo)} – ${words(view.hi)}`;
  remember();
  panes.forEach(paint);
}

function zoom(factor, around = (view.lo + view.hi) / 2) {
  setView(around - (around - view.lo) * factor, around + (view.hi - around) * factor);
}

function pan(share) {
  const by = share * (view.hi - view.lo);
  setView(view.lo + by, view.hi + by);
}

function fit() {
  setView(-0.03 * setup.span, 1.03 * setup.span);
}

let writing = 0;
function remember() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    const url = new URL(location);
    url.searchParams.set("from", Math.round(view.lo));
    url.searchParams.set("to", Math.round(view.hi));
    history.replaceState(null, "", url);
  }, 150);
}

function paint(p) {
  if (p.asked || !p.state.width) return;
  p.asked = true;
  requestAnimationFrame(() => {
    p.asked = false;
    p.state.lo = view.lo + p.setup.origin;
    p.state.hi = view.hi + p.setup.origin;
    const window = p.windows.get(p.state.lo, p.state.hi, p.state.width - p.state.left);
    draw(p.canvas.getContext("2d"), p.plan, window, p.windows.names, p.state, p.palette);
    p.box.dataset.painted = String(Number(p.box.dataset.painted ?? 0) + 1);
    p.box.dataset.rows = String(window?.rows.size ?? 0);
  });
}

function resize(p) {
  const scale = devicePixelRatio || 1;
  p.state.width = p.box.clientWidth;
  p.state.left = p.state.width > 640 ? Math.min(190, p.state.width * 0.2) : 0;
  p.canvas.style.height = `${p.plan.height}px`;
  p.canvas.width = Math.round(p.state.width * scale);
  p.canvas.height = Math.round(p.plan.height * scale);
  p.canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
  paint(p);
}

/* ---- mouse and keys: whatever happens to one view happens to both ---- */

const place = (p, event) => { const rect = p.canvas.getBoundingClientRect(); return { x: event.clientX - rect.left, y: event.clientY - rect.top }; };
const timeAt = (p, x) => view.lo + ((x - p.state.left) / (p.state.width - p.state.left)) * (view.hi - view.lo);

function under(p, { x, y }) {
  const index = p.plan.rows.findIndex((row) => y >= row.y && y < row.y + row.height);
  const window = p.windows.get(p.state.lo, p.state.hi, p.state.width - p.state.left);
  const row = window?.rows.get(index);
  if (!row || x < p.state.left) return null;
  if (row.level) return { text: levelWords(p.plan.rows[index], row, (timeAt(p, x) + p.setup.origin - window.lo) / (window.hi - window.lo)) };
  if (row.busy) return { text: `${row.count.toLocaleString("en")} events in and around the view. Zoom in for names.` };
  const bar = barAt(row, window.lo, timeAt(p, x) + p.setup.origin, (3 * (view.hi - view.lo)) / p.state.width);
  return bar < 0 ? null : { id: row.first + bar, text: `${p.windows.names.get(row.name[bar])} · ${words(row.length[bar])}` };
}

function hover(p, event) {
  const at = place(p, event), found = under(p, at);
  p.tip.hidden = !found;
  if (!found) return;
  p.tip.textContent = found.text;
  p.tip.style.top = `${at.y + 16}px`;
  p.tip.style.left = `${Math.max(0, Math.min(at.x + 12, p.state.width - p.tip.offsetWidth - 4))}px`;
}

async function pick(p, id) {
  const answer = await fetch(p.setup.urls.event + id, { headers: { Accept: "application/json" } }).catch(() => null);
  if (!answer?.ok) return say("The event could not be loaded. Try again.", "bad");
  const event = await answer.json();
  for (const other of panes) other.state.picked = other === p ? event.id : -1;
  const heading = Object.assign(document.createElement("h3"), { textContent: `${p.letter.toUpperCase()} · ${event.name}` });
  const list = document.createElement("dl");
  for (const [what, value] of event.facts) list.append(Object.assign(document.createElement("dt"), { textContent: what }), Object.assign(document.createElement("dd"), { textContent: value }));
  details.replaceChildren(heading, list);
  details.hidden = false;
  panes.forEach(paint);
}

function listen(p) {
  let drag = null;
  p.canvas.addEventListener("wheel", (event) => {
    const { x } = place(p, event);
    if (x < p.state.left) return;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / 1000);
    else zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 400), timeAt(p, x));
  }, { passive: false });
  p.canvas.addEventListener("pointerdown", (event) => {
    const { x } = place(p, event);
    if (event.button || x < p.state.left) return;
    drag = { x, moved: false, lo: view.lo, hi: view.hi };
    p.canvas.setPointerCapture(event.pointerId);
  });
  p.canvas.addEventListener("pointermove", (event) => {
    if (!drag) return hover(p, event);
    const { x } = place(p, event);
    if (Math.abs(x - drag.x) > 3) drag.moved = true;
    if (!drag.moved) return;
    p.tip.hidden = true;
    const by = ((drag.x - x) / (p.state.width - p.state.left)) * (drag.hi - drag.lo);
    setView(drag.lo + by, drag.hi + by);
  });
  p.canvas.addEventListener("pointerup", (event) => {
    const hit = drag && !drag.moved ? under(p, place(p, event)) : null;
    drag = null;
    if (hit?.id !== undefined) pick(p, hit.id);
  });
  p.canvas.addEventListener("pointercancel", () => { drag = null; });
  p.canvas.addEventListener("pointerleave", () => { p.tip.hidden = true; });
  new ResizeObserver(() => resize(p)).observe(p.box);
}

const actions = { in: () => zoom(0.5), out: () => zoom(2), fit, left: () => pan(-0.25), right: () => pan(0.25) };
const KEYS = { w: "in", s: "out", a: "left", d: "right", ArrowLeft: "left", ArrowRight: "right", "+": "in", "-": "out", 0: "fit", f: "fit" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable], dialog")) return;
  if (event.key.startsWith("Arrow") && !event.target.closest(".timeline")) return;
  if (!KEYS[event.key]) return;
  actions[KEYS[event.key]]();
  event.preventDefault();
});
document.addEventListener("click", (event) => actions[event.target.closest("[data-do]")?.dataset.do]?.());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => panes.forEach((p) => { p.palette = colours(p.box); p.windows.repaint(); paint(p); }));

panes.forEach((p) => { listen(p); resize(p); });
const asked = new URLSearchParams(location.search);
if (Number(asked.get("to")) > Number(asked.get("from"))) setView(Number(asked.get("from")), Number(asked.get("to")));
else fit();
