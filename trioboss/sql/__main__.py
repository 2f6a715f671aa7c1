"""``python -m trioboss.sql NAME`` prints a statement with its fragments in place, for psql."""

import sys

from trioboss.sql import read_source

if __name__ == "__main__":
    print("\n".join(map(read_source, sys.argv[1:])))
