"""`python -m benchmarks.adapters.peerbench FOLDER`: add trioboss to a copy of peerbench."""

import shutil
import sys
from pathlib import Path

__all__ = ["add_to"]

_ENTRY = """
from trioboss_peers import make_peers  # noqa: E402

PEERS |= make_peers(py("trioboss_adapter.py"))
"""


def add_to(folder: Path) -> None:
    """Put the adapter and the peers where peerbench looks for them; a second time changes nothing."""
    here = Path(__file__).parent
    shutil.copy(here / "trioboss_adapter.py", folder / "adapters")
    shutil.copy(here / "trioboss_peers.py", folder)
    peers = folder / "peers.py"
    if _ENTRY not in (text := peers.read_text()):
        peers.write_text(text + _ENTRY)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(str(__doc__))
    add_to(Path(sys.argv[1]))
