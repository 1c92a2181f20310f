"""`python -m polycast …` is `polycast …`, of this environment whatever PATH says."""

import os
import sys

from polycast import tool

os.execv(tool, ["polycast", *sys.argv[1:]])
