/** The roofline: operations a second over operations a byte, both logarithmic, with the host's measured roof. */

import { colour, layout, plain } from "./theme.js";

const DASHES = ["solid", "dash", "dot", "dashdot"];
const UNITS = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

function si(value, unit) {
  const [size, prefix] = UNITS.find(([size]) => value >= size) ?? [1, ""];
  return `${(value / size).toPrecision(3)} ${prefix}${unit}`;
}

const roofAt = (data, dot) => (dot.bandwidth ? Math.min(dot.bandwidth * dot.x, data.roofs[dot.dtype] ?? Infinity) : null);

/** A roof for each dtype, under the slowest memory that a dot has and, where a cache serves others, the fastest. */
function roofs(data, ends) {
  const all = data.bandwidths;
  const slopes = all.length > 1 ? [all[0], all.at(-1)] : all;
  const rates = Object.entries(data.roofs);
  const drawn = rates.length ? rates : [["memory", Infinity]];
  return slopes.flatMap((bandwidth) => drawn.map(([dtype, rate], i) => roof(bandwidth, dtype, rate, ends, DASHES[i % DASHES.length])));
}

function roof(bandwidth, dtype, rate, [low, high], dash) {
  const ridge = rate / bandwidth;
  const x = [low, ...(ridge > low && ridge < high ? [ridge] : []), high];
  const name = rate === Infinity ? `memory ${si(bandwidth, "B/s")}` : `${plain(dtype)}: ${si(rate, "flop/s")}, memory ${si(bandwidth, "B/s")}`;
  return {
    mode: "lines", x, y: x.map((at) => Math.min(bandwidth * at, rate)), showlegend: false,
    line: { color: colour("accent"), width: 1.5, dash }, hoverinfo: "text", text: x.map(() => name),
  };
}

function story(data, dot, value, who) {
  const roof = roofAt(data, dot);
  const near = roof ? `<br>${Math.round((100 * value) / roof)} % of the roof` : "";
  return `${plain(dot.name)}, ${who}<br>${si(value, "flop/s")} at ${dot.x.toPrecision(3)} flop/byte${near}`;
}

/** Ticks of a logarithmic axis: 1, 2, 5 of each decade, fewer where the axis is long. */
function ticks(low, high, unit) {
  const decades = Math.log10(high / low);
  const steps = decades > 4 ? [1] : decades > 2 ? [1, 3] : [1, 2, 5];
  const values = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const step of steps) values.push(step * 10 ** power);
  }
  const shown = values.filter((value) => value >= low && value <= high);
  return { tickvals: shown, ticktext: shown.map((value) => short(value, unit)) };
}

function short(value, unit) {
  const [size, prefix] = UNITS.find(([size]) => value >= size) ?? [1, ""];
  return `${Number((value / size).toPrecision(2))}${prefix}${unit}`;
}

export function roofline(data) {
  const xs = data.dots.map((dot) => dot.x);
  const ends = [Math.min(...xs) / 4, Math.max(...xs) * 4];
  const all = data.dots.flatMap((dot) => [dot.y, dot.before ?? dot.y, ...(dot.bandwidth ? [roofAt(data, dot)] : [])]);
  const heights = [Math.min(...all) / 1.6, Math.max(...all) * 1.6];
  const before = data.dots.filter((dot) => dot.before !== null);
  const fill = data.tone;
  const traces = [
    ...roofs(data, ends),
    { mode: "lines", x: before.flatMap((dot) => [dot.x, dot.x, null]), y: before.flatMap((dot) => [dot.before, dot.y, null]), line: { color: colour("calm"), width: 1 }, hoverinfo: "skip", showlegend: false },
    {
      mode: "markers", showlegend: false, x: before.map((dot) => dot.x), y: before.map((dot) => dot.before),
      marker: { symbol: "circle-open", size: 8, color: colour("calm") },
      hoverinfo: "text", text: before.map((dot) => story(data, dot, dot.before, "incumbent")),
    },
    {
      mode: "markers", showlegend: false, x: xs, y: data.dots.map((dot) => dot.y),
      marker: {
        symbol: "circle", size: 9, color: colour(fill),
        line: { color: data.dots.map((dot) => colour(dot.hidden ? "text" : fill)), width: data.dots.map((dot) => (dot.hidden ? 1.6 : 0)) },
      },
      hoverinfo: "text", text: data.dots.map((dot) => story(data, dot, dot.y, dot.hidden ? "candidate, hidden workload" : "candidate")),
    },
  ];
  return {
    traces,
    layout: layout("Roofline, by workload", {
      margin: { l: 70, r: 10, t: 34, b: 44 }, hovermode: "closest",
      xaxis: { type: "log", title: { text: "operations a byte (flop/byte)" }, range: ends.map(Math.log10), ...ticks(...ends, "") },
      yaxis: { type: "log", title: { text: "speed (flop/s)" }, range: heights.map(Math.log10), ...ticks(...heights, "") },
    }),
  };
}
