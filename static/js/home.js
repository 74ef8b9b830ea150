/** Home, kept up to date: news.js says that something changed, and the part is fetched again, at most twice a second. */

const part = document.getElementById("home");
const GAP_MS = 500;
let busy = false, again = false;

async function refresh() {
  if (busy) return void (again = true);
  busy = true;
  try {
    const answer = await fetch(part.dataset.src, { headers: { "HX-Request": "true" } });
    if (answer.ok && !answer.redirected) {
      const html = await answer.text();
      if (!part.contains(document.activeElement)) part.innerHTML = html; // our own template, all escaped
      else again = true; // do not pull a link from under the keyboard
    }
  } catch { /* the socket says when the server is back */ }
  setTimeout(() => {
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }, GAP_MS);
}

document.addEventListener("news", refresh);
