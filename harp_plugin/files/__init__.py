"""Files that a command writes: whole or not at all, locked, and with a record of their origin."""
