"""Deploying with roles: the admin migrates what the app declares; the worker's role cannot, and names the command."""

import os
import subprocess
import sys

import psycopg
from psycopg.conninfo import make_conninfo

import trioboss

app = trioboss.App(label="shop")


@app.schedule("0 3 * * *", tz="Europe/Berlin")
@app.worker("invoices", retry_limit=5)
async def write_invoice(job: trioboss.RunningJob) -> object:
    return job.data


def run(user: str, *command: str) -> str:
    """Run `trioboss` as a database role; return its last line."""
    folder, module = os.path.split(os.path.splitext(__file__)[0])
    dsn = make_conninfo(os.environ["TRIOBOSS_DSN"], user=user)
    words = [sys.executable, "-m", "trioboss", command[0], f"{module}:app", *command[1:], "--dsn", dsn]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def main() -> None:
    with psycopg.connect(os.environ["TRIOBOSS_DSN"], autocommit=True) as owner:
        owner.execute("CREATE ROLE shop_deploy LOGIN")
        owner.execute("CREATE ROLE shop_worker LOGIN")
    try:
        roles = ["--admin", "shop_deploy", "--worker", "shop_worker"]
        subprocess.run(
            [sys.executable, "-m", "trioboss", "grants", *roles, "--apply"], capture_output=True, check=True
        )
        print(run("shop_worker", "worker"))
        print(run("shop_deploy", "migrate", "--plan"))
        print(run("shop_deploy", "migrate"))
        print(run("shop_deploy", "migrate"))
    finally:
        with psycopg.connect(os.environ["TRIOBOSS_DSN"], autocommit=True) as owner:
            owner.execute("REASSIGN OWNED BY shop_deploy TO CURRENT_USER")
            owner.execute("DROP OWNED BY shop_deploy, shop_worker")
            owner.execute("DROP ROLE shop_deploy, shop_worker")


if __name__ == "__main__":
    main()
