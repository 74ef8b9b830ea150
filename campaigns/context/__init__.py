"""What an agent must know, as Markdown cards: hardware, models, the language that it writes, and rules."""
