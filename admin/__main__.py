"""``python -m admin``: the command ``fairway``."""

import sys

from admin.main import main

sys.exit(main())
