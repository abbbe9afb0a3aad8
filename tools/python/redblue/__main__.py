"""`python -m redblue` is the command."""

import os
import sys

from . import _redblue

sys.exit(_redblue.run_as_program([os.fsencode(word) for word in sys.argv[1:]]))
