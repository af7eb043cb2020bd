"""Pair groups → checkpoint: the Tevatron plugin.

`harp_plugin.training.run.train` is the way in. Losses register in
`harp_plugin.training.losses.LOSSES`, tasks in `harp_plugin.tasks.TASKS`.
"""
