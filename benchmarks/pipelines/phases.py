"""The phases of the commands that change a lake or a queue, each with the points at which it is killed."""

import random
from collections.abc import Iterator, Mapping

from benchmarks.pipelines.killing import KillPoint

__all__ = ["PHASES", "points"]

_EXPORT, _FILES, _DATABASE = (
    "trioboss.pipeline.export",
    "trioboss.pipeline.files",
    "trioboss.pipeline.database",
)
_MANIFEST, _DELTA = "trioboss.pipeline.manifest", "trioboss.pipeline.delta"
_REWRITING, _ERASURE = "trioboss.pipeline.rewriting", "trioboss.pipeline.jobs.erase"
_STAGING, _BATCH_WRITER = "trioboss.pipeline.staging", "trioboss.pipeline.batch_writer"

_AROUND = ("before", "after")
_LONG = 1.5
"""Seconds within which a kill comes while Spark works: a little more than it takes with the rows of this benchmark."""

# Module, class, function, first argument, how many calls there are at least, process.
_Step = tuple[str, str, str, str | None, int]

_COMMIT: tuple[_Step, ...] = (
    (_EXPORT, "LakeExport", "_commit", None, 1),
    (_DATABASE, "Database", "run", "commit_batch", 1),
)
_MOVE: tuple[_Step, ...] = ((_FILES, "Files", "move", None, 4),)
_ENTRY: tuple[_Step, ...] = (
    (_MANIFEST, "Manifest", "add", None, 1),
    (_MANIFEST, "Manifest", "_write", None, 1),
)
_LOG: tuple[_Step, ...] = ((_DELTA, "", "synchronize", None, 2), (_DELTA, "", "_commit", None, 2))
_FINISH: tuple[_Step, ...] = ((_DATABASE, "Database", "run", "finish_batch", 1),)
_DELETE: tuple[_Step, ...] = ((_MANIFEST, "Manifest", "delete_removed", None, 1),)

PHASES: Mapping[str, Mapping[str, tuple[_Step, ...]]] = {
    "archive": {
        "take the lake": (
            (_DATABASE, "Database", "run", "take_lake", 1),
            (_EXPORT, "LakeExport", "clean", None, 1),
        ),
        "write files": ((_EXPORT, "LakeExport", "_write", None, 2),),
        "count their rows": ((_EXPORT, "LakeExport", "find_staged", None, 1),),
        "commit the batch": _COMMIT,
        "move files": _MOVE,
        "write the manifest": _ENTRY,
        "write Delta's log": _LOG,
        "finish the batch": _FINISH,
    },
    "load": {
        "stage rows": ((_BATCH_WRITER, "", "stage_rows", None, 1),),
        "release": ((_DATABASE, "Database", "ask", None, 9),),
        "drop stages": ((_DATABASE, "Database", "drop_stage", None, 2),),
    },
    "compact": {
        "write files": ((_REWRITING, "", "_write", None, 2),),
        "count their rows": ((_EXPORT, "LakeExport", "find_staged", None, 1),),
        "commit the batch": _COMMIT,
        "move files": _MOVE,
        "write the manifest": _ENTRY,
        "write Delta's log": _LOG,
        "finish the batch": _FINISH,
        "delete replaced files": _DELETE,
    },
    "erase": {
        "search": ((_ERASURE, "", "find_in_lake", None, 1), (_ERASURE, "", "count_rows", None, 1)),
        "write files": ((_REWRITING, "", "_write", None, 2),),
        "commit the batch": _COMMIT,
        "move files": _MOVE,
        "write the manifest": _ENTRY,
        "write Delta's log": _LOG,
        "finish the batch": _FINISH,
        "delete replaced files": _DELETE,
        "delete in Postgres": ((_DATABASE, "Database", "run", "erase_jobs", 1),),
        "prove": ((_ERASURE, "_Erasure", "_prove", None, 1),),
    },
}
"""For each command and each phase its steps."""

_LASTING = {"write files", "stage rows", "search"}
"""Phases in which Spark works, and which are killed at any time."""

_PROCESSES = {
    "stage rows": "pyspark.worker",
    "release": "commit_data_source_write",
    "drop stages": "commit_data",
}
"""The processes of Spark in which phases of a load run; all others run in the command's own."""


def points(command: str, phase: str, seed: int) -> Iterator[KillPoint]:
    """Points of a phase, without end. The first ones have each step, before it and after it."""
    chance = random.Random(f"{command} {phase} {seed}")
    steps = PHASES[command][phase]
    process = _PROCESSES.get(phase, "pipeline")
    moments = (*_AROUND, "during") if phase in _LASTING else _AROUND
    number = 0
    while True:
        module, owner, name, argument, calls = steps[number % len(steps)]
        moment = moments[number // len(steps) % len(moments)]
        nth = 1 + number // (len(steps) * len(moments)) % calls
        delay = chance.uniform(0.0, _LONG)
        yield KillPoint(module, owner, name, moment, argument, nth, delay, process)
        number += 1
