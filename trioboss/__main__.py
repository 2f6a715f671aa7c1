"""`python -m trioboss` is `trioboss`."""

import sys

from trioboss.cli import main

sys.exit(main())
