/** A page's one line to the server: how many kernels wait for review and, on Home, as the event "news", that something
 *  changed. A campaign's page hears both over its own socket and hands it to `take`. */

import { say } from "./app.js";
import { SIGNED_OUT, Socket } from "./socket.js";

const count = document.getElementById("review-count");
const home = document.getElementById("home");
let connectedBefore = false;

export function take(message) {
  if (message.waiting !== undefined) count.textContent = message.waiting || "";
  if (message.changed) document.dispatchEvent(new CustomEvent("news"));
}

if (count && !document.getElementById("live")) new Socket(() => (home ? "/ws/home" : "/ws/page"), {
  onMessage: take,
  onState: (up, code) => {
    if (code === SIGNED_OUT) say("You have signed out in another tab, or your session has ended. Sign in to go on; this page hears nothing new.", "bad");
    if (up && connectedBefore) document.dispatchEvent(new CustomEvent("news")); // what came meanwhile
    connectedBefore ||= up;
  },
});
