/** The campaign's chart: speed-up over attempts, running best as a step line, the noise band around it. */

import { colour, draw, layout, plain, times } from "./theme.js";

const FAILED = new Set(["incorrect", "build_failed", "launch_failed", "timed_out", "out_of_memory", "no_measurement"]);
const STYLE = {
  kept: { tone: "kept", symbol: "triangle-up", size: 11 },
  rejected: { tone: "calm", symbol: "triangle-down-open", size: 9 },
  stacked: { tone: "calm", symbol: "triangle-up-open", size: 8 },
  reverted: { tone: "calm", symbol: "circle", size: 5 },
};

export class Chart {
  constructor(element, points) {
    this.element = element;
    this.points = new Map(points.map((point) => [point.n, point]));
    this.baseline = element.dataset.baseline;
    this.timer = null;
    this.render();
  }

  /** Add points, or change those that are there; drawn at most four times a second, less often when there are many. */
  add(points) {
    for (const point of points) this.points.set(point.n, point);
    if (points.length && !this.timer) this.timer = setTimeout(() => this.render(), Math.min(2000, 250 + this.points.size / 5));
  }

  render() {
    this.timer = null;
    draw(this.element, () => this.make());
  }

  make() {
    const all = [...this.points.values()].sort((a, b) => a.n - b.n);
    const measured = all.filter((p) => p.s !== null && !FAILED.has(p.kind));
    const best = steps(measured, all);
    const honest = measured.filter((p) => p.kind !== "flagged").map((p) => p.hi ?? p.s);
    const top = Math.max(1.15, ...honest) * 1.12;
    const traces = [...band(best), bestLine(best)];
    for (const kind of Object.keys(STYLE)) traces.push(marks(kind, measured.filter((p) => p.kind === kind)));
    traces.push(flags(measured.filter((p) => p.kind === "flagged"), top), failures(all.filter((p) => FAILED.has(p.kind) || (p.kind === "flagged" && p.s === null))));
    const first = all[0]?.n ?? 1, last = all.at(-1)?.n ?? 1;
    return {
      traces: traces.filter((trace) => trace.x.length),
      layout: layout(`Speed-up over ${plain(this.baseline)}, by attempt`, {
        uirevision: "keep", hovermode: "closest", showlegend: false, margin: { l: 52, r: 14, t: 34, b: 40 },
        xaxis: { title: { text: "attempt" }, range: [first - 0.5, last + 0.5], zeroline: false, anchor: "y2", tickformat: ",d", ...(last - first < 12 ? { dtick: 1, tick0: first } : {}) },
        yaxis: { title: { text: "speed-up (×)" }, ticksuffix: "×", range: [0, top], domain: [0.1, 1], zeroline: false },
        yaxis2: { domain: [0, 0.07], range: [-1, 1], showgrid: false, zeroline: false, tickvals: [0], ticktext: ["failed"], fixedrange: true, tickfont: { size: 10, color: colour("bad") } },
        annotations: all.length ? [] : [{ text: "no verdict yet", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.6, font: { size: 13 } }],
        shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: colour("muted"), width: 1, dash: "dot" } }],
      }),
    };
  }
}

/** The running best after each attempt: only what was kept and not turned down moves it. */
function steps(measured, all) {
  const found = [];
  let best = null, noise = null;
  for (const p of measured) {
    if (p.noise) noise = p.noise;
    if (p.kind === "kept" && (best === null || p.s > best)) best = p.s;
    if (best !== null) found.push({ n: p.n, best, lo: noise ? best * noise[0] : best, hi: noise ? best * noise[1] : best });
  }
  if (found.length) found.push({ ...found.at(-1), n: all.at(-1).n + 0.5 }); // as far as the axis goes
  return found;
}

/** Better than its incumbent, and still slower than the baseline: no winner's colour. */
const slower = (p) => (p.hi ?? p.s) < 1;

function bestLine(best) {
  const tone = best.length && best.at(-1).best < 1 ? "calm" : "kept";
  return { mode: "lines", x: best.map((b) => b.n), y: best.map((b) => b.best), line: { color: colour(tone), width: 1.8, shape: "hv" }, hoverinfo: "skip" };
}

function band(best) {
  const edge = { mode: "lines", x: best.map((b) => b.n), line: { width: 0, shape: "hv" }, hoverinfo: "skip" };
  return [
    { ...edge, y: best.map((b) => b.lo) },
    { ...edge, y: best.map((b) => b.hi), fill: "tonexty", fillcolor: `${colour("accent")}38` },
  ];
}

const hover = (p) => `<b>${p.n}</b> ${plain(p.word)}<br>${times(p.s)}${p.lo === null ? "" : ` (${times(p.lo)} to ${times(p.hi)})`}<br>${plain(p.title)}`;

function marks(kind, points) {
  const { tone, symbol, size } = STYLE[kind];
  return {
    mode: "markers", x: points.map((p) => p.n), y: points.map((p) => p.s), text: points.map(hover), hoverinfo: "text",
    marker: { symbol, size, color: points.map((p) => colour(tone === "kept" && slower(p) ? "calm" : tone)), opacity: kind === "reverted" ? 0.75 : 1 },
  };
}

/** Flagged ones never stretch the axis: above it they sit at its upper edge, and the hover tells the claim. */
function flags(points, top) {
  return {
    mode: "text", x: points.map((p) => p.n), y: points.map((p) => Math.min(p.s, top * 0.97)), text: points.map(() => "⚑"),
    hovertext: points.map(hover), hoverinfo: "text", textfont: { color: colour("flag"), size: 14 },
  };
}

function failures(points) {
  return {
    mode: "text", yaxis: "y2", x: points.map((p) => p.n), y: points.map(() => 0),
    text: points.map((p) => (p.kind === "no_measurement" ? "?" : p.kind === "flagged" ? "⚑" : "✕")),
    hovertext: points.map(hover), hoverinfo: "text", textfont: { color: colour("bad"), size: 12 },
  };
}
