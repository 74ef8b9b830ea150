/** The campaign's page, kept up to date. The server's events have numbers: the page says which it has, and none is
 *  shown twice or lost, however often the connection breaks. */

import { Chart } from "./chart.js";
import { take as takeNews } from "./news.js";
import { parseRow, placeRow } from "./rows.js";
import { GONE, SIGNED_OUT, Socket } from "./socket.js";

const live = document.getElementById("live");
const table = document.getElementById("attempts");
const link = document.getElementById("link");
const chart = new Chart(document.getElementById("chart"), JSON.parse(document.getElementById("points").textContent));
const texts = new Map();
const CLOSED = { [SIGNED_OUT]: "signed out: sign in and load the page again", [GONE]: "this campaign is not there any more" };
const SHOWN_CHARS = 1500;
const MOST_ROWS = 600;
let seq = Number(live.dataset.since);

function swapPart(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const fresh of [...template.content.children]) {
    const old = document.getElementById(fresh.id);
    if (!old || old.outerHTML === fresh.outerHTML) continue;
    const focus = old.contains(document.activeElement) ? document.activeElement.id : "";
    old.replaceWith(fresh);
    if (focus) document.getElementById(focus)?.focus();
  }
}

function swapRow(html) {
  const row = parseRow(html);
  const isNew = !document.getElementById(row.id);
  if (!placeRow(table, row)) return;
  if (isNew) row.classList.add("fresh");
  const number = Number(row.dataset.number);
  if (row.dataset.kind === "proposing") showText(number);
  else texts.delete(number);
  trim();
}

/** A page that stays open for days does not grow without end: the oldest rows go back behind "Show earlier". */
function trim() {
  const earlier = document.getElementById("earlier");
  const rows = [...table.tBodies].filter((row) => row.dataset.number);
  const button = earlier?.querySelector("a");
  if (rows.length <= MOST_ROWS || !button || rows.at(-1).querySelector("tr.more")) return;
  rows.at(-1).remove();
  const before = button.href.replace(/before=\d+/, `before=${rows.at(-2).dataset.number}`);
  button.href = before;
  button.setAttribute("hx-get", before);
  window.htmx?.process(button);
}

function showText(number) {
  const place = document.querySelector(`[data-stream="${number}"]`);
  if (place && texts.has(number)) place.textContent = texts.get(number).slice(-SHOWN_CHARS);
}

function take(update) {
  if (update.waiting !== undefined) return takeNews(update);
  if (update.text !== undefined) {
    texts.set(update.attempt, ((texts.get(update.attempt) ?? "") + update.text).slice(-4 * SHOWN_CHARS));
    showText(update.attempt);
    return;
  }
  if (update.seq <= seq) return; // an answer that another one has overtaken
  seq = update.seq;
  update.rows.forEach(swapRow);
  swapPart(update.parts);
  chart.add(update.points);
  document.body.dataset.state = update.state;
  document.getElementById("no-attempts").hidden = table.tBodies.length > 0;
}

const socket = new Socket(() => `/ws/campaigns/${live.dataset.campaign}?since=${seq}`, {
  onMessage: take,
  onState: (up, code) => {
    link.textContent = up ? "" : CLOSED[code] ?? "connection lost, retrying…";
  },
});

document.body.dataset.state = document.getElementById("live-state").dataset.state;

/** The clock of a running campaign ticks between events. */
let ticked = performance.now();
setInterval(() => {
  const dd = document.querySelector("[data-running='1']");
  const now = performance.now();
  if (dd) {
    const s = Number(dd.dataset.elapsedS) + (now - ticked) / 1000;
    dd.dataset.elapsedS = String(s);
    const [h, m, sec] = [Math.floor(s / 3600), Math.floor((s % 3600) / 60), Math.floor(s % 60)];
    dd.textContent = `${h ? `${h}:${String(m).padStart(2, "0")}` : m}:${String(sec).padStart(2, "0")}`;
  }
  ticked = now;
}, 1000);

export { socket };
