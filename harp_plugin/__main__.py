"""`python -m harp_plugin`: the command ``harp``."""

import sys

from .cli import console

sys.exit(console())
