"""Everything on one machine, as one process tree: broker, workers, web."""
