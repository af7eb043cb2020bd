"""First stages: BM25 by PISA, and the hard negatives that a build finds with it."""
