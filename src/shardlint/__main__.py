"""`python -m shardlint`."""

import sys

from shardlint.front.main import main

sys.exit(main())
