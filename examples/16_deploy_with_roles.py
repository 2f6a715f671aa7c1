"""Deploying with a database role for each program, and a second version while the first one runs."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

import trioboss

VERSION = int(os.environ.get("SHOP_VERSION", "1"))  # in production: two images with one module
APP = f"{Path(__file__).stem}:app"
ROLES = {"admin": "shop_deploy", "worker": "shop_jobs", "producer": "shop_web", "reader": "shop_staff"}
app = trioboss.App(label="shop")


@app.worker("invoices", retry_limit=5 * VERSION)
async def write_invoice(job: trioboss.RunningJob) -> str:
    return f"by version {VERSION}"


def start(kind: str, *words: str, version: int = 1) -> subprocess.Popen[str]:
    """Start `trioboss` as the role of this kind."""
    dsn = make_conninfo(os.environ["TRIOBOSS_DSN"], user=ROLES[kind])
    env = os.environ | {"TRIOBOSS_DSN": dsn, "SHOP_VERSION": str(version)}
    command, out, err = [sys.executable, "-m", "trioboss", *words], subprocess.PIPE, subprocess.STDOUT
    return subprocess.Popen(command, cwd=Path(__file__).parent, env=env, text=True, stdout=out, stderr=err)


def run(kind: str, *words: str, version: int = 1) -> str:
    """Run it; return its last line, without the address of a page."""
    lines = start(kind, *words, version=version).communicate()[0].splitlines()
    return [line for line in lines if not line.startswith("  ")][-1]


def write_one(worker: subprocess.Popen[str]) -> str:
    """Send a job, and wait until this worker has completed it."""
    id = run("producer", "send", "invoices")
    assert any(id in line and "completed" in line for line in worker.stdout or ())
    return run("reader", "jobs", "invoices", "--newest", "--limit", "1", "--data").split('"')[1]


def deploy() -> None:
    print(run("worker", "worker", APP))  # it may not create the queue, and names the command that does
    print(run("admin", "migrate", APP))
    old = start("worker", "worker", APP)
    print(write_one(old))
    print(run("admin", "migrate", APP, "--plan", version=2))
    print(run("admin", "migrate", APP, version=2))
    print(write_one(old))
    new = start("worker", "worker", APP, version=2)
    assert any("taking jobs" in line for line in new.stdout or ())
    old.terminate()  # it ends when its jobs have ended
    print("exit code", old.wait())
    print(write_one(new))
    new.terminate()
    new.communicate()


def main() -> None:
    roles = ", ".join(ROLES.values())
    sql = psycopg.connect(os.environ["TRIOBOSS_DSN"], autocommit=True).execute
    sql("; ".join(f"CREATE ROLE {role} LOGIN" for role in ROLES.values()).encode())
    try:
        options = [word for kind, role in ROLES.items() for word in (f"--{kind}", role)]
        grants = [sys.executable, "-m", "trioboss", "grants", *options, "--apply"]
        subprocess.run(grants, capture_output=True, check=True)
        deploy()
    finally:
        sql(f"REASSIGN OWNED BY {roles} TO CURRENT_USER; DROP OWNED BY {roles}; DROP ROLE {roles}".encode())


if __name__ == "__main__":
    main()
