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
      x: bars.map(x), y: bars.map((bar) => bar.s), width: data.log ? data.width : undefined,
      error_y: {
        type: "data", symmetric: false, color: colour("text"), thickness: 1.2, width: 3,
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

function speed(data) {
  const xs = data.log ? data.bars.map((bar) => Math.log2(bar.x)) : [];
  const gaps = xs.slice(1).map((value, i) => value - xs[i]);
  data.width = Math.max(0.12, Math.min(0.8, ...gaps.map((gap) => gap * 0.7)));
  const x = data.log ? (bar) => Math.log2(bar.x) : (bar) => plain(bar.label);
  const axis = data.log
    ? { tickvals: xs, ticktext: data.bars.map((bar) => bar.label), title: { text: `${plain(data.axis)} (log scale)` }, range: [Math.min(...xs) - 0.7, Math.max(...xs) + 0.7] }
    : { title: { text: "workload" }, type: "category", tickangle: -30, automargin: true };
  const top = Math.max(1.1, ...data.bars.map((bar) => bar.hi ?? bar.s));
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
      draw(element, () => PLOTS[element.dataset.plot](data));
    }
  }
}

document.addEventListener("htmx:afterSettle", () => drawAll(document));
drawAll(document);
