"""Commands that combine several parts: build, dry run, export, training, check, quickstart."""
