"""The smallest agent: turns the incumbent's tunable parameters by chance, submits, waits for the verdict, again.

No model and nothing but Python's own library. Replace ``next_candidate`` by your own idea of what to try.

    export AUTORESEARCH_URL=http://localhost:8000 AUTORESEARCH_TOKEN=arw_…
    python docs/examples/agent_loop.py CAMPAIGN
    python docs/examples/agent_loop.py --new rmsnorm --idea "more partial sums, one walk less" --attempts 10
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
import urllib.error
import urllib.request
from typing import Any

TRIES = 200
"""Random points looked at before the grid counts as used up."""


class Refused(Exception):
    """The server's ``error`` and ``hint``; ``status`` is HTTP's, 0 where nobody answered."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{body.get('error', '')} {body.get('hint', '')}")
        self.status, self.body = status, body


class Server:
    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url.rstrip("/"), token

    def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request. Waits and asks again when it is told to slow down, or the server restarts."""
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        for delay_s in (1, 2, 4, 8, None):
            try:
                request = urllib.request.Request(f"{self.url}/api{path}", data, headers)
                with urllib.request.urlopen(request, timeout=90) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                if error.code not in (429, 502, 503) or delay_s is None:
                    raise Refused(error.code, told(error.read())) from None
                time.sleep(float(error.headers.get("Retry-After") or delay_s))
            except (urllib.error.URLError, TimeoutError) as error:
                if delay_s is None:
                    found = {
                        "error": f"No answer at {self.url} ({getattr(error, 'reason', error)}).",
                        "hint": "Is `manage.py up` running there?",
                    }
                    raise Refused(0, found) from None
                time.sleep(delay_s)
            except ValueError:
                raise Refused(0, told(b"")) from None
        raise AssertionError("unreachable")


def told(answer: bytes) -> dict[str, Any]:
    """What a refusal says. Something else than JSON comes from another server at that address."""
    try:
        found = json.loads(answer)
    except ValueError:
        found = None
    strange = {"error": "What answered there is no Autoresearch.", "hint": "AUTORESEARCH_URL is the page's address."}
    return found if isinstance(found, dict) else strange


def with_values(text: str, values: dict[str, str]) -> str:
    """The source with other values in its lines ``NAME = value;  // tunable: a, b, c`` (or ``# tunable:``)."""
    for name, value in values.items():
        line = rf"^([^#\n]*?\b{re.escape(name)}\b[^=\n]*=\s*)([^;#=\n]+?)(\s*;?\s*(?://|#)\s*tunable:)"
        text = re.sub(line, lambda match, value=value: match[1] + value + match[3], text, flags=re.MULTILINE)
    return text


def next_candidate(task: dict[str, Any], tried: set[tuple[str, ...]]) -> tuple[dict[str, str], str] | None:
    """Files and title of a point that was not tried, or None when none is left."""
    incumbent = task["incumbent"]
    tunables = incumbent["tunables"]
    tried.add(tuple(t["value"] for t in tunables))
    for _ in range(TRIES if tunables else 0):
        point = tuple(random.choice(t["choices"]) for t in tunables)
        if point not in tried:
            tried.add(point)
            values = {t["name"]: value for t, value in zip(tunables, point, strict=True)}
            changed = {path: with_values(text, values) for path, text in incumbent["files"].items()}
            return changed, ", ".join(f"{name} = {value}" for name, value in values.items())
    return None


def verdict_of(server: Server, campaign: int, attempt: int) -> dict[str, Any]:
    while True:
        found = server.ask(f"/campaigns/{campaign}/attempts/{attempt}/verdict?timeout_s=60")
        if found["done"]:
            return found


def run(server: Server, campaign: int) -> int:
    """Until the campaign ends. 0 when a kernel was kept."""
    tried: set[tuple[str, ...]] = set()
    while True:
        task = server.ask(f"/campaigns/{campaign}/task")
        if task["campaign"]["state"] not in ("queued", "running"):
            print(f"The campaign is {task['campaign']['state']}: it takes no candidate now.")
            break
        candidate = next_candidate(task, tried)
        try:
            if candidate is None:
                server.ask(f"/campaigns/{campaign}/nothing-more", {"reason": f"{len(tried)} points tried, none left"})
                break
            files, title = candidate
            body = {"files": files, "title": title, "rationale": "a point drawn by chance"}
            sent = server.ask(f"/campaigns/{campaign}/attempts", body)
        except Refused as refused:
            if "attempt" in refused.body:  # the same program was tried before: draw another point
                continue
            print(refused)
            break
        print(f"{sent['attempt']:>4} waits for its verdict: {title}", flush=True)
        found = verdict_of(server, campaign, sent["attempt"])
        gain = f"{found['speedup']:.3f}×" if found["speedup"] is not None else "not measured"
        print(f"{found['number']:>4} {found['verdict'] or found['phase']:<14} {gain:>12}  {title}", flush=True)
    best = server.ask(f"/campaigns/{campaign}")["best"]
    print(f"best: {best['speedup']:.3f}× (attempt {best['attempt']})" if best else "nothing was kept")
    return 0 if best else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", type=int, nargs="?", help="the number of a campaign with the agent `external`")
    parser.add_argument("--new", metavar="PROBLEM", help="create a campaign on this problem (scope `create`)")
    parser.add_argument("--idea", default="Turn the declared parameters.")
    parser.add_argument("--attempts", type=int, default=20)
    parser.add_argument("--seed", type=int, help="draw the same points again")
    options = parser.parse_args()
    random.seed(options.seed)
    server = Server(
        os.environ.get("AUTORESEARCH_URL", "http://localhost:8000"), os.environ.get("AUTORESEARCH_TOKEN", "")
    )
    try:
        if options.new:
            wanted = {"problem": options.new, "idea": options.idea, "budget_attempts": options.attempts}
            options.campaign = server.ask("/campaigns", wanted)["id"]
            print(f"campaign {options.campaign}", flush=True)
        if options.campaign is None:
            parser.error("which campaign? Give its number, or --new PROBLEM")
        return run(server, options.campaign)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
