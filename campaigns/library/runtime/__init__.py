"""The part of an exported package that does the work. It is copied into the package as it is, and needs torch only."""
