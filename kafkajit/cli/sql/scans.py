"""Finds out from Spark's analyzed plan whether a query scans one table once.

Spark copies a relation when it rewrites LATERAL joins, correlated subqueries and CTEs. The number
of scans of a view therefore does not follow from a statement's text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Operators with one input. Spark never copies these together with the plan below them: the rules of
# its optimizer that copy a plan begin at a join, a set operation, a CTE or a subquery.
_CHAIN = {
    "Aggregate",
    "Distinct",
    "Expand",
    "Filter",
    "Generate",
    "GlobalLimit",
    "LocalLimit",
    "Offset",
    "Project",
    "Sort",
    "SubqueryAlias",
    "View",
    "Window",
}
_RELATION = "DataSourceV2Relation"


def filters_one_scan(df: DataFrame, source: str) -> bool:
    """Whether the query scans one table of a data source, once, and has a condition on it.

    True only for a plan that is a chain of operators down to one relation, without any subquery
    in an expression. The answer for all other plans is False, even if they scan the table once.
    """
    plan: Any = df._jdf.queryExecution().analyzed()
    has_filter = False
    while plan.subqueries().isEmpty():
        operator = plan.getClass().getSimpleName()
        if operator == _RELATION:
            return has_filter and str(plan.table().name()) == source
        children = plan.children()
        if operator not in _CHAIN or children.size() != 1:
            return False
        has_filter = has_filter or operator == "Filter"
        plan = children.apply(0)
    return False
