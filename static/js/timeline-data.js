/** Windows of the timeline: fetched about three views wide, kept, and asked for again only when the view leaves them. */

const KEPT = 32;
const DEBOUNCE_MS = 50;
const MAX_PIXELS = 6000;

export class Windows {
  /** @param setup the page's timeline-setup; @param changed called when a window has come or failed (with the error). */
  constructor(setup, changed) {
    this.setup = setup;
    this.changed = changed;
    this.kept = [];
    this.names = new Map();
    this.timer = 0;
    this.asking = null;
  }

  /** The best window that is here for [lo, hi]; asks for a better one where there is none. */
  get(lo, hi, pixels) {
    const from = Math.max(lo, this.setup.start), to = Math.min(hi, this.setup.end); // there is nothing outside to ask for
    if (to <= from) return this.nearest(lo, hi);
    const span = hi - lo;
    const fits = this.kept.filter((w) => w.lo <= from && w.hi >= to);
    const best = fits.reduce((a, b) => (a && a.hi - a.lo <= b.hi - b.lo ? a : b), null);
    if (!best || best.hi - best.lo > 4.5 * span || best.pixels < 0.8 * pixels * ((best.hi - best.lo) / span)) this.ask(lo, hi, pixels);
    return best ?? this.nearest(lo, hi);
  }

  nearest(lo, hi) {
    return this.kept.find((w) => w.lo < hi && w.hi > lo) ?? null;
  }

  ask(lo, hi, pixels) {
    const { start, end } = this.setup;
    const span = hi - lo;
    const from = Math.floor(Math.max(start, lo - span));
    const to = Math.ceil(Math.min(Math.max(end, from + 1), hi + span));
    if (to <= from) return;
    const wide = Math.min(MAX_PIXELS, Math.max(1, Math.round((pixels * (to - from)) / span)));
    const key = `lo=${from}&hi=${to}&px=${wide}`;
    if (this.asking === key) return;
    this.asking = key;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fetch(key, wide), this.kept.length ? DEBOUNCE_MS : 0);
  }

  async fetch(key, pixels) {
    try {
      const answer = await fetch(`${this.setup.urls.window}?${key}&v=${this.setup.version}`, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(answer.status === 401 ? "You are signed out. Load the page again." : `The server refused the window (${answer.status}).`);
      this.keep(decoded(await answer.json(), pixels));
      this.changed(null);
    } catch (error) {
      this.changed(error.message.startsWith("Failed to fetch") ? "The server cannot be reached." : error.message);
    } finally {
      if (this.asking === key) this.asking = null;
    }
  }

  keep(window) {
    for (const [id, name] of Object.entries(window.names)) this.names.set(Number(id), name);
    this.kept.unshift(window);
    this.kept.length = Math.min(this.kept.length, KEPT);
  }

  /** Colours have changed: pictures of busy shares are painted anew. */
  repaint() {
    for (const window of this.kept) for (const row of window.rows.values()) row.picture = null;
  }
}

function decoded(answer, pixels) {
  const rows = new Map();
  for (const row of answer.rows) {
    if (row.busy !== undefined) row.busy = Uint8Array.from(atob(row.busy), (c) => c.charCodeAt(0));
    if (row.level !== undefined) row.level = Uint8Array.from(atob(row.level), (c) => c.charCodeAt(0));
    rows.set(row.row, row);
  }
  return { lo: answer.lo, hi: answer.hi, pixels, names: answer.names, rows };
}

/** Index of the bar of a row at a time (ns), within a tolerance; -1 where there is none. */
export function barAt(row, base, time, tolerance) {
  let low = 0, high = row.start.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.start[middle] + base <= time + tolerance) low = middle + 1;
    else high = middle;
  }
  for (let i = low - 1; i >= Math.max(0, low - 3); i--) if (row.start[i] + row.length[i] + base >= time - tolerance) return i;
  return -1;
}
