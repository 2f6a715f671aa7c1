"""The unit of systemd and the manifests of Kubernetes in the guide are valid, and leave a worker time to stop."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trioboss.cli.parser import make_parser

FOLDER = Path(__file__).parent.parent.parent / "docs" / "snippets" / "services"
UNIT = FOLDER / "shop-worker@.service"
STOP = 7  # seconds that a worker may need after its grace: P9 in GUARANTEES.md


def verify(unit: str, folder: Path) -> str:
    """The faults that systemd finds in a unit. It checks that the program exists: ours is that of this environment."""
    file = folder / UNIT.name.replace("@", "@81")
    file.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={Path(sys.executable).parent / 'trioboss'}", unit))
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, timeout=60)
    return "\n".join(line for line in done.stderr.splitlines() if file.name in line)


needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


@needs_systemd
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    assert verify(UNIT.read_text("utf-8"), tmp_path) == ""


@needs_systemd
def test_systemd_finds_a_setting_that_does_not_exist(tmp_path):
    assert "TimeoutStop" in verify(UNIT.read_text("utf-8").replace("TimeoutStopSec", "TimeoutStop"), tmp_path)


def test_the_unit_leaves_a_worker_time_to_stop():
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(UNIT.read_text("utf-8"))
    service = parser["Service"]
    given = make_parser().parse_args(service["ExecStart"].split()[1:])

    assert int(service["TimeoutStopSec"]) > given.grace + STOP
    assert service["Restart"] == "always"


# -- Kubernetes: fields as in its API reference, since no schema of it is installed

PROBE = {"httpGet": {"path": str, "port": str}, "periodSeconds": int, "failureThreshold": int}
DEPLOYMENT = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str},
    "spec": {
        "replicas": int,
        "selector": {"matchLabels": dict},
        "template": {
            "metadata": {"labels": dict},
            "spec": {
                "terminationGracePeriodSeconds": int,
                "containers": [
                    {
                        "name": str,
                        "image": str,
                        "command": [str],
                        "env": [
                            {"name": str, "valueFrom": {"secretKeyRef": {"name": str, "key": str}}},
                        ],
                        "ports": [{"name": str, "containerPort": int}],
                        "startupProbe": PROBE,
                        "readinessProbe": PROBE,
                        "livenessProbe": PROBE,
                    }
                ],
            },
        },
    },
}


JOB = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str},
    "spec": {
        "backoffLimit": int,
        "ttlSecondsAfterFinished": int,
        "template": {
            "spec": {
                "restartPolicy": str,
                "containers": DEPLOYMENT["spec"]["template"]["spec"]["containers"],
            },
        },
    },
}


def wrong(value: Any, fields: Any, path: str = "") -> list[str]:
    """The parts of a value that are no fields, or have another type."""
    if isinstance(fields, dict) and isinstance(value, dict):
        unknown = [f"{path}.{name}" for name in value if name not in fields]
        known = [name for name in value if name in fields]
        return unknown + [
            each for name in known for each in wrong(value[name], fields[name], f"{path}.{name}")
        ]
    if isinstance(fields, list) and isinstance(value, list):
        return [each for item in value for each in wrong(item, fields[0], f"{path}[]")]
    return [] if isinstance(fields, type) and isinstance(value, fields) else [path]


def read(name: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((FOLDER / name).read_text("utf-8"))


@pytest.fixture
def deployment() -> dict[str, Any]:
    return read("shop-workers.yaml")


def test_the_migration_has_only_fields_of_kubernetes_and_the_image_of_the_workers(deployment):
    migration = read("shop-migrate.yaml")

    assert wrong(migration, JOB) == []
    assert (migration["apiVersion"], migration["kind"]) == ("batch/v1", "Job")
    (step,) = migration["spec"]["template"]["spec"]["containers"]
    (worker,) = deployment["spec"]["template"]["spec"]["containers"]
    assert step["image"] == worker["image"]
    assert migration["metadata"]["name"].endswith(step["image"].rpartition(":")[2].replace(".", "-"))
    assert step["env"] != worker["env"]  # another role


def test_the_deployment_has_only_fields_of_kubernetes(deployment):
    assert wrong(deployment, DEPLOYMENT) == []
    assert (deployment["apiVersion"], deployment["kind"]) == ("apps/v1", "Deployment")


@pytest.mark.parametrize(
    "broken", [{"spec": {"replica": 3}}, {"spec": {"replicas": "3"}}, {"spec": {"selector": "app"}}]
)
def test_a_field_that_does_not_exist_or_has_another_type_is_noticed(broken):
    assert wrong(broken, DEPLOYMENT)


def test_the_deployment_selects_its_own_pods(deployment):
    spec = deployment["spec"]

    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


def test_the_deployment_leaves_a_worker_time_to_stop_and_probes_its_port(deployment):
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (port,) = container["ports"]
    given = make_parser().parse_args(container["command"][1:])

    assert pod["terminationGracePeriodSeconds"] > given.grace + STOP
    assert given.health.endswith(f":{port['containerPort']}")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] == port["name"]
        assert container[probe]["httpGet"]["path"] in ("/ready", "/live")
