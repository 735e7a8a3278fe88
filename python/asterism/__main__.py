"""``python -m asterism``."""

import sys

from .cli import main

sys.exit(main())
