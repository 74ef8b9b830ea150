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
  shown = url;
  if (push) history.pushState({}, "", url);
  window.htmx.swap(place, html, { swapStyle: "innerHTML" });
  arrive();
  fetchAhead();
}

/** At the top of a new candidate, with the keyboard and a screen reader's voice there too, and its name on the tab. */
function arrive() {
  scrollTo(0, 0);
  document.title = place.querySelector("[data-title]").dataset.title;
  place.querySelector("h1")?.focus({ preventScroll: true });
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
/** The address of what is shown. Only a change of it is a step back or forward: a jump within the page is none. */
let shown = location.pathname;
addEventListener("popstate", () => location.pathname !== shown && go(location.pathname, false));
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target !== place) return;
  ahead.clear();
  fetchAhead();
  const address = place.querySelector("[data-address]").dataset.address;
  if (event.detail.requestConfig && address !== shown) {
    shown = address; // a decision has brought the next one
    history.pushState({}, "", address);
  }
  const problem = place.querySelector("#bar [role=alert]");
  problem ? problem.scrollIntoView({ block: "nearest" }) : arrive();
});
/** A flag was decided: what holds an approval back may be gone. What was typed into the bar stays. */
document.addEventListener("flag-decided", async () => {
  const bar = document.getElementById("bar");
  if (!bar) return;
  const typed = document.getElementById("reject-reason")?.value;
  try {
    const html = await load(bar.dataset.src);
    window.htmx.swap(bar, html, { swapStyle: "outerHTML" });
    if (typed) document.getElementById("reject-reason").value = typed;
  } catch { /* the bar still says what it said, and the server decides */ }
});
fetchAhead();
