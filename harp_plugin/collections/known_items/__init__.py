"""Judged queries made from a corpus: index terms, redirects and held-out links."""
