/** Draws every `[data-waterfall]` from the JSON that it names: levels, falls between them, and the hardware limit. */

import { colour, draw, layout, plain, times } from "./theme.js";

const TONES = { level: "calm", floor: "accent", saved: "kept", lost: "bad", flag: "flag" };
const MARKS = { saved: "▲ ", lost: "✕ ", flag: "⚑ " };

function microseconds(value) {
  return `${value.toLocaleString("en", { maximumSignificantDigits: 4 })} µs`;
}

function story(bar) {
  if (bar.from === undefined) return `${plain(bar.label)}<br>${microseconds(bar.us)}`;
  const band = `${times(bar.gain)} (${times(bar.lo)} to ${times(bar.hi)}), limit ${times(bar.limit)}`;
  return `${plain(bar.label)}<br>${microseconds(bar.from)} → ${microseconds(bar.us)}<br>${band}`;
}

/** A bar's name in at most three lines, so that neighbours keep theirs on a phone; the tooltip has it whole. */
function inLines(text, width = 14) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= width) lines.push(word);
    else lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trimStart();
  }
  return lines.slice(0, 3).join("<br>") + (lines.length > 3 ? "…" : "");
}

function waterfall(data) {
  const label = (bar) => inLines((MARKS[bar.kind] ?? "") + plain(bar.label));
  const trace = {
    type: "bar", showlegend: false,
    x: data.bars.map((bar, i) => i),
    base: data.bars.map((bar) => (bar.from === undefined ? 0 : Math.min(bar.from, bar.us))),
    y: data.bars.map((bar) => (bar.from === undefined ? bar.us : Math.abs(bar.from - bar.us))),
    marker: { color: data.bars.map((bar) => colour(TONES[bar.kind])) },
    text: data.bars.map((bar) => (bar.from === undefined ? microseconds(bar.us) : times(bar.gain))),
    textposition: "outside", cliponaxis: false,
    customdata: data.bars.map(story), hovertemplate: "%{customdata}<extra></extra>",
  };
  return {
    traces: [trace],
    layout: layout(`A step of ${plain(data.scenario)}: true baseline to now`, {
      margin: { l: 64, r: 10, t: 34, b: 64 }, bargap: 0.3,
      xaxis: { tickvals: data.bars.map((bar, i) => i), ticktext: data.bars.map(label), tickangle: 0, automargin: true, title: { text: "kernels, in the order of their approval" } },
      yaxis: { title: { text: "time of one step (µs)" }, rangemode: "tozero" },
    }),
  };
}

function drawAll(root) {
  for (const element of root.querySelectorAll("[data-waterfall]")) {
    const source = document.getElementById(element.dataset.waterfall);
    if (source && !element.dataset.drawn) {
      element.dataset.drawn = "1";
      const data = JSON.parse(source.textContent);
      draw(element, () => waterfall(data));
    }
  }
}

drawAll(document);
document.addEventListener("htmx:afterSettle", () => drawAll(document));
