/** Paints the timeline on a canvas: lanes down, time across. Knows nothing of fetching or of the mouse. */

export const RULER = 24;
const HEIGHTS = { gpu: 22, nvtx: 17, api: 14, sync: 12, os: 12, counter: 26 };
/** What stands above what: counters right below the GPU's streams, calls of the host below them. */
const ORDER = ["nvtx", "gpu", "counter", "sync", "api", "os"];
const GAP = 5;
const FONT = "11px system-ui, sans-serif";
/** Twelve hues told apart in both themes; bars are translucent, so that text on them keeps the page's contrast. */
const HUES = [228, 22, 158, 330, 48, 192, 272, 96, 0, 210, 130, 300];

export function layout(setup) {
  let y = RULER + 4;
  const rows = [];
  const rank = (index) => ORDER.indexOf(setup.lanes[setup.rows[index].lane].kind);
  const order = setup.rows.map((_, index) => index).sort((a, b) => rank(a) - rank(b) || a - b);
  order.forEach((index, place) => {
    const row = setup.rows[index], lane = setup.lanes[row.lane];
    if (row.level === 0 && place) y += lane.kind === "counter" ? 2 : GAP;
    const height = HEIGHTS[lane.kind] ?? 14;
    rows[index] = { y, height, kind: lane.kind, label: row.level === 0 ? lane.label : "", lane: row.lane, low: row.low, high: row.high, unit: row.unit };
    y += height + 1;
  });
  return { rows, height: y + 6 };
}

export function colours(element) {
  const style = getComputedStyle(element);
  const get = (name) => style.getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return {
    text: get("--text"), muted: get("--muted"), line: get("--line"), surface: get("--surface"), sunk: get("--sunk"), sel: get("--sel"),
    accent: get("--accent"), kept: get("--kept"), flag: get("--flag"), bad: get("--bad"), calm: get("--calm"), dark,
  };
}

/** The colour of a name is the same in every window and every capture that holds it. */
export function colourOf(name, dark) {
  let hash = 7;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
  return `hsl(${HUES[hash % HUES.length]} ${dark ? 60 : 65}% ${dark ? 60 : 48}% / ${dark ? 0.5 : 0.42})`;
}

export function words(ns, step = ns) {
  const size = Math.abs(step);
  const [factor, unit] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const value = ns / factor;
  const text = value.toLocaleString("en", { maximumFractionDigits: factor === 1 ? 0 : Math.abs(value) >= 1000 ? 1 : 3 });
  return `${text.replace("-", "−")} ${unit}`;
}

export function ticks(lo, hi, wanted) {
  const rough = (hi - lo) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? rough;
  const first = Math.ceil(lo / step) * step;
  return { step, at: Array.from({ length: Math.max(0, Math.floor((hi - first) / step) + 1) }, (_, i) => first + i * step) };
}

/** @param state { lo, hi, left, width, selection, marks, picked, offset } with times in ns and lengths in CSS pixels. */
export function draw(context, plan, window, names, state, palette) {
  const { left, width } = state;
  const x = (time) => left + ((time - state.lo) / (state.hi - state.lo)) * (width - left);
  context.clearRect(0, 0, width, plan.height);
  context.font = FONT;
  context.textBaseline = "middle";
  stretches(context, plan, state, palette, x);
  ruler(context, plan, state, palette, x);
  context.save();
  context.beginPath();
  context.rect(left, RULER, width - left, plan.height);
  context.clip();
  if (window) plan.rows.forEach((place, index) => {
    const row = window.rows.get(index);
    if (!row) return;
    if (row.level) curve(context, place, row, window, palette, x);
    else if (row.busy) heat(context, place, row, window, palette, x);
    else bars(context, place, row, window, names, palette, x, state);
  });
  context.restore();
  labels(context, plan, state, palette);
}

function stretches(context, plan, state, palette, x) {
  for (const mark of [...state.marks, ...(state.selection ? [{ ...state.selection, live: true }] : [])]) {
    const from = Math.max(state.left, x(mark.from)), to = Math.min(state.width, x(mark.to));
    if (to <= from) continue;
    context.fillStyle = palette.sel;
    context.fillRect(from, 0, to - from, plan.height);
    context.strokeStyle = palette.accent;
    context.setLineDash(mark.live ? [] : [4, 3]);
    context.strokeRect(from + 0.5, 0.5, to - from - 1, plan.height - 1);
    context.setLineDash([]);
  }
}

function ruler(context, plan, state, palette, x) {
  const origin = state.offset ?? 0; // a comparison counts from where its range begins
  const { step, at } = ticks(state.lo - origin, state.hi - origin, (state.width - state.left) / 120);
  context.strokeStyle = palette.line;
  context.fillStyle = palette.muted;
  context.textAlign = "center";
  for (const time of at) {
    const place = Math.round(x(time + origin)) + 0.5;
    context.beginPath();
    context.moveTo(place, RULER - 4);
    context.lineTo(place, plan.height);
    context.stroke();
    if (place > state.left + 24 && place < state.width - 24) context.fillText(words(time, Math.max(Math.abs(time), step)), place, RULER / 2 - 1);
  }
  context.textAlign = "left";
}

/** A picture one pixel high, made once per window, stretched at every frame: a pan costs one drawImage a row. */
function heat(context, place, row, window, palette, x) {
  row.picture ??= painted(row.busy, palette[place.kind === "gpu" ? "accent" : place.kind === "nvtx" ? "kept" : place.kind === "sync" ? "bad" : "calm"]);
  context.imageSmoothingEnabled = false;
  context.globalAlpha = place.kind === "gpu" ? 1 : 0.5; // the GPU's own time is what one looks for
  context.drawImage(row.picture, x(window.lo), place.y, x(window.hi) - x(window.lo), place.height);
  context.globalAlpha = 1;
}

/** A counter: its mean in each bucket as a filled curve, a picture made once per window as well. */
function curve(context, place, row, window, palette, x) {
  row.picture ??= filled(row.level, place.height, palette.accent);
  context.imageSmoothingEnabled = false;
  context.drawImage(row.picture, x(window.lo), place.y, x(window.hi) - x(window.lo), place.height);
  context.fillStyle = palette.line;
  context.fillRect(Math.max(0, x(window.lo)), place.y + place.height, x(window.hi) - Math.max(0, x(window.lo)), 1);
}

function filled(level, height, colour) {
  const picture = new OffscreenCanvas(level.length, height);
  const context = picture.getContext("2d");
  context.fillStyle = colour;
  for (let i = 0; i < level.length; i++) {
    if (!level[i]) continue;
    const tall = Math.max(1, Math.round(((level[i] - 1) / 254) * height));
    context.globalAlpha = 0.35;
    context.fillRect(i, height - tall, 1, tall);
    context.globalAlpha = 1;
    context.fillRect(i, height - tall, 1, 1);
  }
  return picture;
}

/** What a counter shows at a place of a window, in words; "" where nothing was sampled. */
export function levelWords(place, row, share) {
  const level = row.level[Math.min(row.level.length - 1, Math.max(0, Math.floor(share * row.level.length)))];
  if (!level) return `${place.label}: not sampled here`;
  const value = place.low + ((level - 1) / 254) * (place.high - place.low);
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 1 ? 1 : 3;
  return `${place.label}: about ${value.toLocaleString("en", { maximumFractionDigits: digits })}${place.unit ? ` ${place.unit}` : ""} (mean in this pixel; the lane reaches to ${place.high.toLocaleString("en", { maximumFractionDigits: 3 })})`;
}

function painted(busy, colour) {
  const picture = new OffscreenCanvas(busy.length, 1);
  const context = picture.getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
  const image = context.createImageData(busy.length, 1);
  // Anything that ran is to be seen: a share of 1 % gets a fifth of the ink, not a hundredth.
  busy.forEach((share, i) => image.data.set([red, green, blue, share ? 50 + (205 * share) / 255 : 0], 4 * i));
  context.putImageData(image, 0, 0);
  return picture;
}

function bars(context, place, row, window, names, palette, x, state) {
  let covered = -1;
  for (let i = 0; i < row.start.length; i++) {
    const from = Math.max(state.left - 1, x(row.start[i] + window.lo));
    const to = Math.min(state.width + 1, x(row.start[i] + row.length[i] + window.lo));
    if (to < state.left || from > state.width || (to - from < 1 && from < covered)) continue;
    const wide = Math.max(1, to - from);
    covered = from + wide;
    const name = names.get(row.name[i]) ?? "";
    context.fillStyle = fillOf(place.kind, row.kind[i], name, palette);
    context.fillRect(from, place.y, wide > 3 ? wide - 0.6 : wide, place.height);
    if (state.picked === row.first + i) {
      context.strokeStyle = palette.text;
      context.strokeRect(from + 0.5, place.y + 0.5, Math.max(2, wide - 1), place.height - 1);
    }
    if (wide > 28) text(context, name, from + 4, place, wide - 8, palette);
  }
}

function fillOf(kind, event, name, palette) {
  if (kind === "gpu" && event === 0) return colourOf(name, palette.dark);
  const plain = { gpu: event === 3 ? palette.kept : palette.flag, nvtx: palette.kept, api: palette.calm, os: palette.muted, sync: palette.bad }[kind];
  return alpha(plain, kind === "nvtx" ? 0.24 : 0.38);
}

function alpha(colour, share) {
  return `color-mix(in srgb, ${colour} ${Math.round(100 * share)}%, transparent)`;
}

function text(context, name, at, place, room, palette) {
  const most = Math.floor(room / 5.6);
  if (most < 3) return;
  context.fillStyle = palette.text;
  context.fillText(name.length > most ? `${name.slice(0, most - 1)}…` : name, at, place.y + place.height / 2 + 0.5, room);
}

function labels(context, plan, state, palette) {
  context.textAlign = "left";
  if (!state.left) return narrowLabels(context, plan, palette);
  context.fillStyle = palette.surface;
  context.fillRect(0, 0, state.left, plan.height);
  context.fillStyle = palette.muted;
  for (const row of plan.rows) if (row.label) text(context, row.label, 8, row, state.left - 16, { text: palette.muted });
  context.strokeStyle = palette.line;
  context.beginPath();
  context.moveTo(state.left - 0.5, 0);
  context.lineTo(state.left - 0.5, plan.height);
  context.stroke();
}

function narrowLabels(context, plan, palette) {
  for (const row of plan.rows) {
    if (!row.label) continue;
    const label = row.label.length > 24 ? `${row.label.slice(0, 23)}…` : row.label;
    context.fillStyle = palette.surface;
    context.globalAlpha = 0.85;
    context.fillRect(2, row.y + 1, context.measureText(label).width + 6, row.height - 2);
    context.globalAlpha = 1;
    context.fillStyle = palette.text;
    context.fillText(label, 5, row.y + row.height / 2 + 0.5);
  }
}
