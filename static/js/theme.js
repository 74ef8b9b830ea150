/** Plotly in the page's own colours, light and dark, and again when the system changes its mind. */

const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map();

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const CONFIG = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

/** The part of every layout that is the same everywhere. */
export function layout(title, extra) {
  const axis = { gridcolor: colour("line"), zerolinecolor: colour("line"), linecolor: colour("line"), tickcolor: colour("line") };
  const { xaxis = {}, yaxis = {}, ...rest } = extra;
  return {
    title: { text: title, x: 0, xref: "paper", xanchor: "left", y: 0.985, yanchor: "top", font: { size: 13, color: colour("text") } },
    paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    font: { family: "system-ui, sans-serif", size: 11, color: colour("muted") },
    margin: { l: 52, r: 12, t: 56, b: 40 }, hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("edge"), font: { color: colour("text") }, align: "left" },
    xaxis: { ...axis, ...apart(xaxis, 4) }, yaxis: { ...axis, ...apart(yaxis, 8) }, ...rest,
  };
}

/** An axis whose title keeps clear of its tick labels, however wide they are. */
function apart(axis, standoff) {
  return axis.title ? { automargin: true, ...axis, title: { ...axis.title, standoff } } : axis;
}

/** Draw now, and again in the new colours when the scheme changes. */
export function draw(element, make) {
  drawn.set(element, make);
  paint(element, make);
}

function paint(element, make) {
  if (!window.Plotly || !element.isConnected) return;
  const { traces, layout } = make();
  window.Plotly.react(element, traces, layout, CONFIG);
}

dark.addEventListener("change", () => {
  for (const [element, make] of drawn) element.isConnected ? paint(element, make) : drawn.delete(element);
});

/** Text that goes into a Plotly label, where a small subset of HTML would be read. */
export function plain(text) {
  return String(text ?? "").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

export function times(value) {
  if (value === null || value === undefined) return "not measured";
  return `${value >= 10 ? value.toFixed(1) : value >= 0.1 ? value.toFixed(2) : value.toPrecision(2)}×`;
}
