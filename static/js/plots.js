/** Draws every `[data-plot]` from the JSON beside it: speed-up by workload with intervals, and the roofline. */

import { roofline } from "./roofline.js";
import { colour, draw, layout, plain, times } from "./theme.js";

/** Only a kept kernel's gains are green: nothing else wears the winner's colour. */
function tone(bar, standing) {
  if (standing !== "kept") return standing;
  if (bar.lo !== null && bar.lo > 1) return "kept";
  return bar.hi !== null && bar.hi < 1 ? "bad" : "calm";
}

function traces(data, x) {
  return [false, true].map((hidden) => {
    const bars = data.bars.filter((bar) => bar.hidden === hidden);
    return {
      type: "bar", name: hidden ? "hidden from the agent" : "visible", showlegend: false,
      x: bars.map(x), y: bars.map((bar) => bar.s), width: data.log ? bars.map((bar) => bar.width) : undefined,
      error_y: {
        type: "data", symmetric: false, color: colour("text"), thickness: 1.2, width: 2,
        array: bars.map((bar) => (bar.hi === null ? 0 : bar.hi - bar.s)), arrayminus: bars.map((bar) => (bar.lo === null ? 0 : bar.s - bar.lo)),
      },
      marker: {
        color: bars.map((bar) => colour(tone(bar, data.tone))),
        pattern: { shape: hidden ? "/" : "", fgcolor: colour("surface"), size: 5, solidity: 0.35 },
      },
      customdata: bars.map((bar) => [plain(bar.name), times(bar.lo), times(bar.hi), times(bar.s), hidden ? "hidden from the agent" : "visible"]),
      hovertemplate: "%{customdata[0]}<br>%{customdata[3]} (%{customdata[1]} to %{customdata[2]})<br>%{customdata[4]}<extra></extra>",
    };
  });
}

/** Ticks whose labels have room beside each other: visible workloads first. The hover names those that are left out. */
function apart(bars, xs, span, pixels) {
  const half = (i) => ((bars[i].label.length * 6.5 + 8) / 2) * (span / pixels);
  const chosen = [];
  for (const hidden of [false, true]) {
    bars.forEach((bar, i) => {
      if (bar.hidden === hidden && chosen.every((j) => Math.abs(xs[i] - xs[j]) >= half(i) + half(j))) chosen.push(i);
    });
  }
  return { tickvals: chosen.map((i) => xs[i]), ticktext: chosen.map((i) => bars[i].label) };
}

function speed(data, pixels) {
  const xs = data.log ? data.bars.map((bar) => Math.log2(bar.x)) : [];
  const span = xs.at(-1) - xs[0] + 1.4;
  xs.forEach((at, i) => { // no wider than to the next one
    const gap = Math.min(at - (xs[i - 1] ?? -Infinity), (xs[i + 1] ?? Infinity) - at);
    data.bars[i].width = Math.max(span / 300, Math.min(span / 24, gap * 0.8));
  });
  const x = data.log ? (bar) => Math.log2(bar.x) : (bar) => plain(bar.label);
  const axis = data.log
    ? { ...apart(data.bars, xs, span, pixels), tickangle: 0, title: { text: `${plain(data.axis)} (log scale)` }, range: [xs[0] - 0.7, xs.at(-1) + 0.7] }
    : { title: { text: "workload" }, type: "category", tickangle: -30, automargin: true };
  const tallest = Math.max(1.1, ...data.bars.map((bar) => bar.s)); // one disturbed round may widen an interval tenfold
  const top = Math.min(2 * tallest, Math.max(tallest, ...data.bars.map((bar) => bar.hi ?? bar.s)));
  return {
    traces: traces(data, x),
    layout: layout(`Speed-up over ${plain(data.baseline)}, by ${plain(data.axis)}`, {
      margin: { l: 64, r: 10, t: 34, b: 48 }, barmode: "overlay", bargap: 0.35,
      xaxis: axis, yaxis: { title: { text: "speed-up (×)" }, ticksuffix: "×", range: [0, top * 1.08] },
      shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: colour("text"), width: 1, dash: "dot" } }],
    }),
  };
}

const PLOTS = { speed, roofline };

function drawAll(root) {
  for (const element of root.querySelectorAll("[data-plot]")) {
    const source = document.getElementById(element.dataset.source);
    if (source && !element.dataset.drawn) {
      element.dataset.drawn = "1";
      const data = JSON.parse(source.textContent);
      draw(element, () => PLOTS[element.dataset.plot](data, Math.max(200, element.clientWidth - 80)));
    }
  }
}

document.addEventListener("htmx:afterSettle", () => drawAll(document));
drawAll(document);
