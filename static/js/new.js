/** The new campaign's form shows only the options of the chosen agent. Without scripts all are there. */

const agent = document.getElementById("id_agent");

function showOptions() {
  for (const field of document.querySelectorAll("[data-agent]")) field.hidden = !field.dataset.agent.split(" ").includes(agent.value);
}

agent?.addEventListener("change", showOptions);
showOptions();
