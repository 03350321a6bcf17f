"""``python -m queue_dispatcher``."""

import sys

from queue_dispatcher.main import main

if __name__ == "__main__":
    sys.exit(main())
