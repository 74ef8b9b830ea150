"""Bring your own agent: what an agent with a token may ask and do. ``operations`` says what; ``rest`` and
``campaigns.mcp`` only carry it. See ``docs/bring-your-own-agent.md``."""
