"""``python -m trioboss.sql NAME`` prints a statement with its fragments in place, for psql."""

import sys

from trioboss.sql import read_source

if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(read_source(name))
