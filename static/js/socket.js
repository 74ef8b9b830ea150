/** A WebSocket that comes back: with backoff after a loss, at once when the page wakes or the network returns. */

const FIRST_MS = 500;
const LAST_MS = 15000;
const DOUBT_MS = 30000;
/** Codes with which the server closes for good. */
export const SIGNED_OUT = 4403;
export const GONE = 4404;

export class Socket {
  /** `address()` is asked at every connection, so that it can name the last event that the page has. */
  constructor(address, { onMessage, onState }) {
    Object.assign(this, { address, onMessage, onState, wait: FIRST_MS, timer: null, ws: null, heardAt: Date.now() });
    addEventListener("online", () => this.wake());
    addEventListener("pageshow", () => this.wake());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.wake());
    this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const ws = (this.ws = new WebSocket(`${scheme}//${location.host}${this.address()}`));
    ws.onopen = () => {
      this.wait = FIRST_MS;
      this.onState?.(true);
    };
    ws.onmessage = (event) => {
      if (ws !== this.ws) return;
      this.heardAt = Date.now();
      this.onMessage(JSON.parse(event.data));
    };
    ws.onclose = (event) => ws === this.ws && this.lost(event.code);
  }

  lost(code) {
    this.onState?.(false, code);
    if (code === SIGNED_OUT || code === GONE) return;
    this.timer = setTimeout(() => this.connect(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(LAST_MS, this.wait * 1.8);
  }

  /** Ask again. A socket that looks open may be dead after a sleep, and would not tell: one that was silent for long
   *  is replaced, which costs nothing, since the address says what the page has. */
  wake() {
    if (this.ws.readyState === WebSocket.OPEN && Math.abs(Date.now() - this.heardAt) > DOUBT_MS) {
      this.heardAt = Date.now();
      this.ws.close();
      this.connect();
    } else if (this.ws.readyState === WebSocket.OPEN) this.ws.send("{}");
    else if (this.ws.readyState !== WebSocket.CONNECTING) { // after a sign-in in another tab, too
      this.wait = FIRST_MS;
      this.connect();
    }
  }
}
