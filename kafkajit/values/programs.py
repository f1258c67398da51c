"""Programs that kernels interpret: tables of numbers, compiled from schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkajit.kernel.intrinsics import WIDE
from kafkajit.storage.source import Int64s

CONSTANT = -(2**63)  # the bit of a cell whose text is in `texts`


@dataclass(frozen=True)
class Form:
    """The columns of a program's rows that a block of memory fills in.

    `places` has those for the place of a cell, each with that of the cell's number. `checked` has
    the column of the operation, the one that reads text, and the one that checks it, too.
    """

    columns: int
    places: tuple[tuple[int, int], ...]
    checked: tuple[int, int, int]


@dataclass(frozen=True)
class Programs:
    """Programs as the kernel takes them; and, for each row, the field and what is wrong with it."""

    form: Form
    rows: Int64s
    texts: npt.NDArray[np.uint8]
    symbols: Int64s
    limits: npt.NDArray[np.uint64]
    fields: list[str]
    faults: dict[int, str]  # of the rows that fail

    @classmethod
    def of(
        cls,
        form: Form,
        rows: list[list[int]],
        texts: bytes,
        symbols: list[int],
        limits: list[list[int]],
        fields: list[str],
        faults: dict[int, str],
    ) -> Programs:
        arrays = (
            np.array(rows, dtype=np.int64).reshape(-1),
            np.frombuffer(texts + bytes(WIDE), dtype=np.uint8),
            np.array(symbols or [0], dtype=np.int64),
            np.array(limits or [[0] * 4], dtype=np.uint64),
        )
        for array in arrays:
            array.setflags(write=False)  # one signature of the kernel
        return cls(form, *arrays, fields, faults)

    def bound(self, bases: Int64s, checks_text: bool) -> Any:
        """The programs with the places of a block's cells."""
        rows = self.rows.copy()
        table = rows.reshape(-1, self.form.columns)
        for place, cell in self.form.places:
            # The cell -1 stands for none, and its place is not used.
            table[:, place] = bases[table[:, cell]] if len(bases) else 0
        if checks_text:
            code, text, checked = self.form.checked
            table[table[:, code] == text, code] = checked
        rows.setflags(write=False)
        return rows, self.texts, self.symbols, self.limits
