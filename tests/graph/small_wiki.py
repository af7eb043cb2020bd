"""A small wiki that meets every filter of the graph, and options that turn all of them on."""

ALL = {
    "min_lead_words": 5,
    "title_anchors": 0.25,
    "functional_anchors": "drop",
    "numeric_anchors": "drop",
    "long_anchors": "drop",
    "same_site_links": "drop",
    "disambiguation_pages": "drop",
    "list_pages": "drop",
    "near_duplicate_leads": "drop",
}
SIXTY_FIVE_WORDS = "many words " * 32 + "more"
LEAD = "The {} is a small red fruit that grows on trees in the cold north of the old world and is"
LEAD += " eaten raw or cooked in many of the towns along the coast of that sea"
PAGES = {
    "Apple": LEAD.format("apple") + " by [[Ant|ants]].",
    "Crab apple": LEAD.format("apple") + " by [[ant]]s and a [[Apple]].",
    "Ant": "An ant is an insect that eats an [[apple]], see [[Apple|here]] or [[Crab apple]].",
    "Mercury (planet)": "Mercury (planet) is a planet that no [[ant]] has ever seen or eaten.",
    "Mercury": "A [[Mercury (planet)|Mercury]] or [[Mercury (planet)]] is one. {{Disambig}}",
    "List of fruits": "All the fruits: [[Apple|the apple]], [[Crab apple|crab]], and no [[ant]].",
    "Short": "Short [[ant]].\n== More ==\nSee [[Mercury]] and a [[list of fruits]] and [[Short]].",
    "Years": "A [[Mercury (planet)|1984]] and [[Ant|№ 8]] and [[Ant|8th]] one are"
    f" here with [[Ant|{SIXTY_FIVE_WORDS}]], which is all of it.",
    "Long": "A [[short]] page with [[Mercury (planet)|Mercury]] in its long lead.",
}
