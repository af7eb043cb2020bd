"""Stage 1 of a build: sources become tables of pages, links, redirects, index terms and others."""
