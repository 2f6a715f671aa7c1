"""The contents of Spark's UI for a session: its pages and its REST API read one store, which is there without them."""

import attrs

__all__ = ["Query", "queries_of"]


@attrs.frozen
class Query:
    """A line of the tab SQL, and the metrics of the boxes on its page."""

    description: str
    metrics: dict[str, dict[str, str]]
    """For each operator of the plan, the values of its metrics as the page prints them."""


def queries_of(spark, described="trioboss"):
    """The queries of a session whose descriptions begin so, in their order."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    found = [executions.apply(n) for n in range(executions.size())]
    return [
        Query(execution.description(), _metrics(store, execution.executionId()))
        for execution in found
        if execution.description().startswith(described)
    ]


def _metrics(store, execution):
    values, nodes = store.executionMetrics(execution), store.planGraph(execution).allNodes()
    metrics = {}
    for node in (nodes.apply(n) for n in range(nodes.size())):
        of_node = (node.metrics().apply(n) for n in range(node.metrics().size()))
        metrics[node.name()] = {
            metric.name(): values.get(metric.accumulatorId()).get()
            for metric in of_node
            if values.contains(metric.accumulatorId())
        }
    return metrics
