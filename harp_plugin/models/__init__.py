"""Models: where they are loaded from, what they are made of, and how they run over packed texts."""
