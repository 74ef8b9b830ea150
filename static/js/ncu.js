/** The roofline: FLOP/s over FLOP per byte, log-log, this kernel under the roofs of its GPU. */

import { colour, draw, layout, plain } from "./theme.js";

const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];

function rate(value, unit) {
  for (const [factor, prefix] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (value >= factor) return `${(value / factor).toPrecision(3)} ${prefix}${unit}`;
  return `${value.toPrecision(3)} ${unit}`;
}

/** Decades that hold all points and every ridge, with room beside them. */
function span(data) {
  const ridges = data.roofs.map((roof) => roof.flops / data.bytes_per_s);
  const xs = [...data.points, ...data.others].map((point) => point.x).concat(ridges).filter((x) => x > 0);
  return [Math.min(...xs) / 6, Math.max(...xs) * 6];
}

function roofs(data, [low, high]) {
  return data.roofs.map((roof, i) => ({
    type: "scatter", mode: "lines", name: `${plain(roof.name)} roof`, hoverinfo: "skip",
    x: [low, roof.flops / data.bytes_per_s, high], y: [low * data.bytes_per_s, roof.flops, roof.flops],
    line: { color: colour(i === 0 ? "text" : "muted"), width: i === 0 ? 2 : 1.4, dash: DASHES[i % DASHES.length] },
  }));
}

function marks(points, name, style) {
  return {
    type: "scatter", mode: "markers", name, x: points.map((p) => p.x), y: points.map((p) => p.y),
    customdata: points.map((p) => [plain(p.kernel.slice(0, 80)), plain(p.name), rate(p.y, "FLOP/s"), `${p.x.toPrecision(3)} FLOP/byte`, `${(100 * p.reached).toPrecision(3)} %`]),
    hovertemplate: "%{customdata[0]}<br>%{customdata[1]}<br>%{customdata[2]} at %{customdata[3]}<br>%{customdata[4]} of its roof<extra></extra>",
    marker: style,
  };
}

function make(data) {
  const range = span(data);
  const traces = roofs(data, range);
  if (data.others.length) traces.push(marks(data.others, "other kernels", { color: colour("muted"), size: 7, symbol: "circle-open" }));
  if (data.points.length) traces.push(marks(data.points, "this kernel", { color: colour("accent"), size: 12, symbol: "diamond", line: { color: colour("surface"), width: 1.5 } }));
  const tall = [...data.points, ...data.others].map((p) => p.y).filter((y) => y > 0);
  const floor = Math.min(range[0] * data.bytes_per_s, ...tall) / 2;
  const top = Math.max(...data.roofs.map((roof) => roof.flops)) * 3;
  const decades = { type: "log", exponentformat: "power", dtick: 1 };
  return {
    traces,
    layout: layout("Work per second under the roofs of this GPU", {
      margin: { l: 62, r: 10, t: 34, b: 96 }, hovermode: "closest", legend: { orientation: "h", y: -0.3, x: 0 },
      xaxis: { ...decades, title: { text: "FLOP per byte of DRAM traffic" }, range: range.map(Math.log10) },
      yaxis: { ...decades, title: { text: "FLOP/s" }, range: [Math.log10(floor), Math.log10(top)] },
    }),
  };
}

const element = document.getElementById("roofline");
const source = document.getElementById("roofline-data");
if (element && source) {
  const data = JSON.parse(source.textContent);
  draw(element, () => make(data));
}
