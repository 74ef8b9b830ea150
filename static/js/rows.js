/** Rows of attempts: they grow in place to show the change, and take what the socket brings. */

/** As many columns as are shown: one more would be made up, and take its width from the others. */
const span = (row) => [...row.closest("table").tHead.rows[0].cells].filter((cell) => cell.checkVisibility()).length;

addEventListener("resize", () => {
  for (const cell of document.querySelectorAll("tr.more > td")) cell.colSpan = span(cell);
});

const open = async (row, button) => {
  button.setAttribute("aria-expanded", "true");
  button.textContent = "▾";
  const more = document.createElement("tr");
  more.className = "more";
  const cell = more.insertCell();
  cell.colSpan = row.isConnected ? span(row) : 9;
  cell.textContent = "…";
  row.querySelector("tr.more")?.remove();
  row.append(more);
  try {
    const answer = await fetch(button.dataset.src, { headers: { "HX-Request": "true" } });
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    cell.innerHTML = await answer.text(); // our own template: everything from outside is escaped in it
  } catch {
    cell.textContent = "The change could not be loaded; close the row and open it again.";
  }
};

const close = (row, button) => {
  row.querySelector("tr.more")?.remove();
  button.setAttribute("aria-expanded", "false");
  button.textContent = "▸";
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.grow-row");
  if (!button) return;
  const row = button.closest("tbody");
  button.getAttribute("aria-expanded") === "true" ? close(row, button) : open(row, button);
});

/** Parse one `<tbody>`. */
export function parseRow(html) {
  const template = document.createElement("template");
  template.innerHTML = `<table>${html}</table>`;
  return template.content.querySelector("tbody");
}

/** Put a row in its place, newest first: over the one with its number, or before the next lower one. Rows that lie
 *  beyond "Show earlier" are left to it. An open row stays open, and is loaded anew when its state has changed. */
export function placeRow(table, fresh) {
  const number = Number(fresh.dataset.number);
  const old = document.getElementById(fresh.id);
  if (old) return replaceRow(old, fresh);
  for (const row of table.tBodies) {
    if (row.id === "earlier") return false;
    if (Number(row.dataset.number) < number) {
      row.before(fresh);
      return true;
    }
  }
  table.append(fresh);
  return true;
}

function replaceRow(old, fresh) {
  const more = old.querySelector("tr.more");
  const focused = old.contains(document.activeElement) && document.activeElement.matches("button.grow-row, a");
  const selector = focused && document.activeElement.matches("button") ? "button.grow-row" : "a";
  const button = fresh.querySelector("button.grow-row");
  if (more && button && old.dataset.kind === fresh.dataset.kind) {
    fresh.append(more);
    button.setAttribute("aria-expanded", "true");
    button.textContent = "▾";
  }
  old.replaceWith(fresh);
  if (more && button && old.dataset.kind !== fresh.dataset.kind) open(fresh, button);
  if (focused) fresh.querySelector(selector)?.focus();
  return true;
}
