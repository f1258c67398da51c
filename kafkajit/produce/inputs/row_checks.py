"""Rows that cannot be records as they stand: their places, and the transactions they belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.format.limits import MAX_INT32
from kafkajit.format.topic import check_topic
from kafkajit.produce.inputs.rows import BadInputError, Rows, in_column, is_null, refuse
from kafkajit.produce.open_transactions import without_producers
from kafkajit.produce.options import ProduceOptions


def check_places(columns: Mapping[str, pa.Array], options: ProduceOptions) -> None:
    """Raise if a row has no place in a log."""
    for name, check in _CHECKS.items():
        if name in columns:
            with in_column(name):
                check(columns[name], options)


def check_markers(rows: Rows) -> None:
    """Raise if rows without a column controlType are markers: they would become records."""
    epochs = rows.columns.get("coordinatorEpoch")
    if epochs is not None:
        with in_column("coordinatorEpoch"):
            refuse(
                ~is_null(epochs),
                lambda _: (
                    "only a transaction's marker has one, and the column controlType is missing: "
                    "export it, too, or ignore this column if it is another program's"
                ),
            )


def check_transactions(columns: Mapping[str, pa.Array]) -> None:
    """Raise if a transaction's producer is not known: another one's marker would end it."""
    for name, is_lost in without_producers(columns):
        with in_column(name):
            refuse(
                is_lost.to_numpy(zero_copy_only=False),
                lambda _: (
                    "the producer of the transaction is unknown: export producerId and "
                    "producerEpoch, too, or ignore isTransactional and controlType"
                ),
            )


def _check_topics(column: pa.Array, options: ProduceOptions) -> None:
    if options.topic is not None:
        return
    refuse(is_null(column), lambda _: "a record needs a topic: fill it, or name one for all")
    for name in column.unique().to_pylist():
        try:
            check_topic(name)
        except ValueError as error:
            row = pc.index(column, name).as_py()
            raise BadInputError(str(error), row=row) from None


def _check_partitions(column: pa.Array, options: ProduceOptions) -> None:
    if options.partitions is None:
        refuse(
            is_null(column),
            lambda _: "a record needs a partition: fill it, or pass the number of partitions",
        )
    most = MAX_INT32 if options.partitions is None else options.partitions - 1
    numbers = column.fill_null(0).to_numpy()
    refuse(
        (numbers < 0) | (numbers > most),
        lambda row: (
            f"there is no partition {numbers[row]}"
            + ("" if options.partitions is None else f" in a topic of {options.partitions}")
        ),
    )


def _check_offsets(column: pa.Array, _: ProduceOptions) -> None:
    refuse(is_null(column), lambda _: "every record needs an offset, and this one has none")
    numbers = column.to_numpy()
    refuse(numbers < 0, lambda row: f"the offset {numbers[row]} is below 0")


_CHECKS: dict[str, Callable[[pa.Array, ProduceOptions], None]] = {
    "topic": _check_topics,
    "partition": _check_partitions,
    "offset": _check_offsets,
}
