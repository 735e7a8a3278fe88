"""``python -m asterism.cli``."""

import sys

from .main import main

sys.exit(main())
