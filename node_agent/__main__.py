"""``python -m node_agent``."""

import sys

from node_agent.main import main

sys.exit(main())
