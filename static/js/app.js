/** What every page does: says when the server could not be reached, and empties forms that were sent. */

const notice = document.getElementById("notice");

/** Show a sentence above the content. Text only: nothing that comes in is ever read as HTML. */
export function say(text, tone = "") {
  const line = document.createElement("div");
  line.className = `notice ${tone}`;
  line.textContent = text;
  notice.replaceChildren(line);
  float();
}

/** What comes while one reads lies above the page instead of pushing it down. A confirmation goes by itself; a refusal stays. */
const SEEN_MS = 8000;
let seen = 0;
function float() {
  notice.classList.add("float");
  clearTimeout(seen);
  if (!notice.querySelector(".bad, [role=alert]")) seen = setTimeout(() => notice.replaceChildren(), SEEN_MS);
}
document.addEventListener("htmx:afterSwap", ({ detail }) => detail.target === notice && float());

/** On a narrow screen the navigation scrolls: it begins at where one is. */
const here = document.querySelector("nav [aria-current]");
if (here) here.parentElement.scrollLeft = here.offsetLeft - 24;

document.addEventListener("htmx:sendError", () => say("The server cannot be reached. Nothing was changed; try again.", "bad"));
document.addEventListener("htmx:responseError", (event) => {
  const { status, responseText } = event.detail.xhr;
  const isSentence = event.detail.xhr.getResponseHeader("Content-Type")?.startsWith("text/plain");
  say(isSentence && responseText ? responseText : `The server refused (${status}). Nothing was changed; load the page again.`, "bad");
});
/** A pane that scrolls is shown whole, and back: `data-expands` names it. */
document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-expands]");
  if (!button) return;
  const whole = document.getElementById(button.dataset.expands).classList.toggle("whole");
  button.setAttribute("aria-expanded", String(whole));
  [button.textContent, button.dataset.label] = [button.dataset.label, button.textContent];
  if (!whole) button.scrollIntoView({ block: "nearest" });
});
/** What a person has opened in a part that comes anew by itself stays open. */
let opened = [];
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  opened = [...detail.target.querySelectorAll("details[open][id]:not(.menu)")].map((details) => details.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
});
document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.detail.elt.closest("form[data-clear]");
  if (!form || !event.detail.xhr || event.detail.xhr.status >= 400 || event.detail.xhr.status === 0) return; // a refused text stays
  form.reset();
  form.closest("details")?.removeAttribute("open");
});
/** A button that stands outside its form (`form="…"`) sends its value along, as it does without htmx. */
document.addEventListener("htmx:configRequest", (event) => {
  const button = event.detail.triggeringEvent?.submitter;
  if (button?.name && !event.detail.elt.contains(button)) event.detail.parameters[button.name] = button.value;
});
/** The second half of a double click is no second decision: by then another candidate may lie under the pointer. */
document.addEventListener("click", (event) => {
  if (event.detail < 2 || !event.target.closest("form button:not([type=button]), button[form]")) return;
  event.preventDefault();
  event.stopPropagation();
}, true);
/** A form of its own page is sent once: a second Enter while the answer is on its way would do all of it again. */
const AGAIN_MS = 3000;
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.hasAttribute("hx-post") || form.method !== "post") return;
  const before = Number(form.dataset.sentAt ?? -Infinity);
  if (performance.now() - before < AGAIN_MS) event.preventDefault();
  else form.dataset.sentAt = String(performance.now());
});
addEventListener("pageshow", () => document.querySelectorAll("form[data-sent-at]").forEach((form) => delete form.dataset.sentAt));
/** Ctrl or Cmd with Enter sends the form that one writes in, where it is plain by which button: the only one, or the marked one. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.repeat) return;
  const form = event.target.matches?.("textarea") && event.target.form;
  const buttons = form ? [...form.elements].filter((element) => element.type === "submit") : [];
  const button = buttons.length === 1 ? buttons[0] : buttons.find((element) => element.matches(".go"));
  if (!button || button.disabled) return;
  event.preventDefault();
  form.requestSubmit(button);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.activeElement?.closest("details.menu[open]");
  if (!menu) return;
  menu.removeAttribute("open");
  menu.querySelector("summary").focus();
});
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.removeAttribute("open");
});
