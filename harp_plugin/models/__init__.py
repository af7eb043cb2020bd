"""Models: this package loads them, trains them, and runs them over packed texts."""
