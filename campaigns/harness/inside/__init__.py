"""What runs inside a sandbox. These files are copied in alone: they import the standard library and each other only."""
