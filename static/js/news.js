/** Every page's own line to the server: how many kernels wait for review, and, as the event "news", that something changed. */

import { Socket } from "./socket.js";

const count = document.getElementById("review-count");
let connectedBefore = false;

function take(message) {
  if (message.waiting !== undefined) count.textContent = message.waiting || "";
  if (message.changed) document.dispatchEvent(new CustomEvent("news"));
}

if (count) new Socket(() => "/ws/home", {
  onMessage: take,
  onState: (up) => {
    if (up && connectedBefore) document.dispatchEvent(new CustomEvent("news")); // what came meanwhile
    connectedBefore ||= up;
  },
});
