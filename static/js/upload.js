/** Upload by drop or field, with progress. A failed upload loses nothing: the chosen file stays, and can be sent again. */

const form = document.getElementById("upload");
const field = form.querySelector("input[type=file]");
const shown = document.getElementById("upload-progress");
const said = document.getElementById("upload-said");
const stop = document.getElementById("stop");
const limit = Number(form.dataset.limit);
let chosen = null;

function say(text) {
  said.textContent = text;
  said.hidden = !text;
}

function choose(file) {
  chosen = file;
  say(file && file.size > limit ? `${file.name} has ${words(file.size)}; the limit is ${form.dataset.limitWords}. Capture a shorter window.` : "");
  return file && file.size <= limit;
}

function words(bytes) {
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function send(file) {
  const data = new FormData();
  data.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
  data.append("file", file);
  const request = new XMLHttpRequest();
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "application/json");
  request.responseType = "json";
  request.upload.onprogress = (event) => progress(event.loaded, event.total);
  request.onload = () => answered(request);
  request.onerror = () => ended("The connection broke off. The file is still chosen: upload again.");
  request.onabort = () => ended("Stopped. The file is still chosen.");
  stop.onclick = () => request.abort();
  stop.hidden = shown.hidden = false;
  say("");
  form.querySelector("button.go").disabled = true;
  request.send(data);
}

function progress(loaded, total) {
  const percent = total ? (100 * loaded) / total : 0;
  shown.querySelector("progress").value = percent;
  shown.querySelector("span").textContent = percent < 100 ? `${percent.toFixed(0)} % of ${words(total)}` : "checking …";
}

function answered(request) {
  if (request.response?.url) location.assign(request.response.url);
  else ended([request.response?.error, request.response?.hint].filter(Boolean).join(" ") || `The server refused the upload (${request.status}). The file is still chosen.`);
}

function ended(text) {
  stop.hidden = shown.hidden = true;
  form.querySelector("button.go").disabled = false;
  say(text);
}

field.addEventListener("change", () => choose(field.files[0]));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const file = chosen ?? field.files[0];
  if (file && choose(file)) send(file);
});
for (const type of ["dragenter", "dragover"]) document.addEventListener(type, (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  form.classList.add("over");
});
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) form.classList.remove("over"); });
document.addEventListener("drop", (event) => {
  const file = event.dataTransfer?.files[0];
  if (!file) return;
  event.preventDefault();
  form.classList.remove("over");
  if (choose(file)) send(file);
});
