"""Files that commands write: whole or not at all, under a lock, with what they were made from."""
