/** Single keys: `data-key="a"` on a link, a button or a summary makes that key press it. They can be switched off. */

const STORE = "keys-off";
const off = () => localStorage.getItem(STORE) === "1";
const typing = (el) => el?.closest("input, textarea, select, [contenteditable]");

function press(target) {
  if (target.matches("summary")) {
    const menu = target.parentElement;
    menu.open = !menu.open;
    (menu.open ? menu.querySelector("input:not([type=hidden]), textarea, select") : target)?.focus();
  } else if (target.matches("a, button")) target.click();
  else {
    target.scrollIntoView({ block: "center" });
    target.focus({ preventScroll: true });
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || typing(event.target)) return;
  if (document.querySelector("dialog[open]") || (off() && event.key !== "?")) return;
  const found = [...document.querySelectorAll(`[data-key="${CSS.escape(event.key)}"]`)].find((el) => el.checkVisibility());
  if (!found || found.disabled) return;
  event.preventDefault();
  if (event.repeat && !found.matches("a")) return; // a key that is held down decides once
  press(found);
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-help]")) document.getElementById("help")?.showModal();
});

const box = document.getElementById("keys-on");
if (box) {
  box.checked = !off();
  box.addEventListener("change", () => localStorage.setItem(STORE, box.checked ? "0" : "1"));
}
