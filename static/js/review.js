/** The review queue without reloads: neighbours are fetched ahead, decisions bring the next candidate in place. */

const place = document.getElementById("candidate");
const ahead = new Map();

async function load(url) {
  const answer = await fetch(url, { headers: { "HX-Request": "true" } });
  if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
  return answer.text();
}

async function go(url, push = true) {
  let html;
  try {
    html = ahead.get(url) ? await ahead.get(url) : await load(url);
  } catch {
    location.assign(url);
    return;
  }
  ahead.clear();
  window.htmx.swap(place, html, { swapStyle: "innerHTML" });
  if (push) history.pushState({}, "", url);
  scrollTo(0, 0);
  fetchAhead();
}

function fetchAhead() {
  const url = place.querySelector("[data-next]")?.dataset.next;
  if (!url || ahead.has(url)) return;
  const coming = load(url);
  coming.catch(() => ahead.delete(url));
  ahead.set(url, coming);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-nav]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
addEventListener("popstate", () => go(location.pathname, false));
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target !== place) return;
  ahead.clear();
  fetchAhead();
  const problem = place.querySelector("#bar [role=alert]");
  problem ? problem.scrollIntoView({ block: "nearest" }) : scrollTo(0, 0);
  const count = document.getElementById("review-count");
  const waiting = place.querySelector("[data-waiting]")?.dataset.waiting;
  if (count && waiting !== undefined) count.textContent = waiting === "0" ? "" : waiting;
});
fetchAhead();
