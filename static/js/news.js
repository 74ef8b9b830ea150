/** Every page's own line to the server: how many kernels wait for review, and, as the event "news", that something changed. */

import { say } from "./app.js";
import { SIGNED_OUT, Socket } from "./socket.js";

const count = document.getElementById("review-count");
let connectedBefore = false;

function take(message) {
  if (message.waiting !== undefined) count.textContent = message.waiting || "";
  if (message.changed) document.dispatchEvent(new CustomEvent("news"));
}

if (count) new Socket(() => "/ws/home", {
  onMessage: take,
  onState: (up, code) => {
    if (code === SIGNED_OUT) say("You have signed out in another tab, or your session has ended. Sign in to go on; this page hears nothing new.", "bad");
    if (up && connectedBefore) document.dispatchEvent(new CustomEvent("news")); // what came meanwhile
    connectedBefore ||= up;
  },
});
