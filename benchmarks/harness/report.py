"""The results of a command: printed as tables, stored as raw JSON, drawn as SVG.

The raw files stay in `benchmarks/results/`, which git ignores. `benchmarks publish` makes the small summary of a run
that is kept in git (`summary`).
"""

import json
import time
from pathlib import Path
from typing import Any

import attrs

from benchmarks.harness.meters import NOISY
from benchmarks.harness.plots import Plot, draw
from benchmarks.harness.tables import Table

__all__ = ["Noise", "Report"]


@attrs.define
class Noise:
    """How much other processes used the machine during each run."""

    runs: list[tuple[str, float]] = attrs.field(factory=list)

    def add(self, name: str, cores: float) -> None:
        """Record one run."""
        self.runs.append((name, cores))

    def notes(self) -> list[str]:
        """Return the note of a table whose runs were disturbed."""
        noisy = [(name, cores) for name, cores in self.runs if cores > NOISY]
        if not noisy:
            return []
        worst = max(cores for _, cores in noisy)
        names = list(dict.fromkeys(name for name, _ in noisy))
        listed = f": {'; '.join(names)}" if len(names) <= 4 else ""
        runs = f"{len(noisy)} of {len(self.runs)} runs"
        return [f"noisy: other processes used up to {worst:.1f} cores during {runs}{listed}"]


@attrs.define
class Report:
    """The result of one command."""

    command: str
    tables: list[Table] = attrs.field(factory=list)
    plots: list[Plot] = attrs.field(factory=list)
    measures: dict[str, Any] = attrs.field(factory=dict)
    noise: Noise = attrs.field(factory=Noise)

    def render(self) -> str:
        """Return all tables as Markdown."""
        return "\n\n".join(table.render() for table in self.tables) + "\n"

    def save(self, folder: Path, environment: dict[str, Any], append: Path | None = None) -> Path:
        """Store everything as JSON, in a new file of the folder or in place of the file that was appended to."""
        path = append or folder / f"{self.command}-{time.strftime('%Y%m%d-%H%M%S')}.json"
        earlier = json.loads(path.read_text())["runs"] if path.exists() else []
        path.parent.mkdir(parents=True, exist_ok=True)
        run = {
            "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "command": environment["command"],
            "commit": environment.get("versions", {}).get("commit"),
        }
        content = {
            "command": self.command,
            "environment": environment,
            "runs": [*earlier, run],
            "tables": [attrs.asdict(table) for table in self.tables],
            "plots": [attrs.asdict(plot) for plot in self.plots],
            "measures": self.measures,
            "noise": self.noise.runs,
        }
        path.write_text(json.dumps(content, indent=1, default=str) + "\n")
        return path

    def plot(self, path: Path) -> None:
        """Draw the plots into an SVG file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(draw(self.plots))
