"""``python -m estimator``."""

import sys

from estimator.main import main

sys.exit(main())
