"""Stage 1 of a build: sources become the tables pages, sections, sentences, links, redirects."""
