"""The list of metrics is complete, and the dashboard and the alert rules use no others."""

import json
import re
from pathlib import Path

import psycopg
import pytest
import trio
from worker_helpers import TIMEOUT

from trioboss.cli.health import Metrics
from trioboss.events import LeaderChanged

ROOT = Path(__file__).parent.parent.parent
NAME = re.compile(r"\btrioboss_\w+")
LISTED = re.compile(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", re.MULTILINE)
ALERTS = {
    "TriobossOldestJobWaitsTooLong": "trioboss_oldest_age_seconds",
    "TriobossJobsFail": "trioboss_failed_total",
    "TriobossTickMissed": "trioboss_tick_late_seconds",
    "TriobossLeasesLost": "trioboss_lost_total",
    "TriobossKeysBlocked": "trioboss_blocked_keys",
    "TriobossJobsWithoutWorker": "trioboss_unserved_jobs",
}


def listed():
    """Each metric of the document: its kind and its meaning, by name."""
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8")
    return {name: (kind, meaning) for name, kind, meaning in LISTED.findall(text)}


def known(name):
    return re.sub(r"_(bucket|sum|count)$", "", name) in listed()


@pytest.fixture
async def leading(boss):
    """The boss, once it leads."""
    async with boss.events(LeaderChanged) as events:
        with trio.fail_after(TIMEOUT):
            while not boss.statistics().listener.leads:
                await anext(events)
    return boss


async def handle(job):
    pass


async def test_the_document_lists_every_metric_with_its_kind_and_meaning(leading):
    await leading.work("short", handle)
    text = "\n".join(await Metrics(leading).lines())

    helps = dict(re.findall(r"^# HELP (\w+) (.+)$", text, re.MULTILINE))
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    assert listed() == {name: (kinds[name], helps[name]) for name in helps}


async def test_the_leader_measures_the_database_for_all(leading, dsn):
    await leading.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
    await leading.send("orders", singleton_key="a")
    await leading.fail("orders", (await leading.fetch("orders"))[0])
    await leading.work("orders", handle)
    await leading.send("graves")
    await leading.schedule("short", "0 0 1 1 *")
    with psycopg.connect(dsn) as conn:
        conn.execute("UPDATE trioboss.schedule SET updated_on = now() - interval '400 days'")

    metrics = Metrics(leading)
    lines = [line for line in await metrics.lines() if not line.startswith("#")]

    assert 'trioboss_blocked_keys{queue="orders"} 1' in lines
    assert 'trioboss_unserved_jobs{queue="graves"} 1' in lines
    assert 'trioboss_queue_size{queue="orders"} 0' in lines
    (late,) = [line for line in lines if line.startswith('trioboss_tick_late_seconds{queue="short"}')]
    assert float(late.split()[-1]) > 0


async def test_a_worker_that_does_not_lead_measures_nothing(dsn, leading):
    import trioboss

    async with trioboss.open_boss(dsn, migrate=False, supervise=False) as follower:
        text = "\n".join(await Metrics(follower).lines())

    assert "trioboss_queue_size" not in text
    assert "trioboss_leads 0" in text


def test_the_dashboard_uses_metrics_that_exist():
    dashboard = json.loads((ROOT / "observability" / "grafana-dashboard.json").read_text("utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]

    used = {name for expression in expressions for name in NAME.findall(expression)}
    assert {name for name in used if not known(name)} == set()
    assert {name for name in listed() if not any(name in each for each in used)} == set()
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_there_are_alerts_for_what_an_operator_has_to_know():
    yaml = pytest.importorskip("yaml")
    (group,) = yaml.safe_load((ROOT / "observability" / "alerts.yaml").read_text("utf-8"))["groups"]
    rules = {rule["alert"]: rule for rule in group["rules"]}

    for rule in rules.values():
        names = NAME.findall(rule["expr"])
        assert names
        assert all(map(known, names)), rule["expr"]
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert {"summary", "remedy"} == rule["annotations"].keys()
        assert rule["labels"]["severity"] in ("page", "warn")
    assert {alert for alert, name in ALERTS.items() if name not in rules[alert]["expr"]} == set()
