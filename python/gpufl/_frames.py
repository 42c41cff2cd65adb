# SPDX-License-Identifier: Apache-2.0
"""Tables of a session as pandas DataFrames that share the session's memory."""

from typing import TYPE_CHECKING, Any, Dict

if TYPE_CHECKING:
    import pandas

    from ._native import Table


def _import_pandas() -> Any:
    try:
        import numpy
        import pandas
    except ImportError as error:
        raise ImportError(f"gpufl's DataFrames need NumPy and pandas, and {error.name or 'one of them'} cannot be "
                          "imported: install pandas (apt-get install python3-pandas, or pip install pandas), or read "
                          "session.table(name), which any Arrow library takes") from error
    return numpy, pandas


def frame_of(table: "Table") -> "pandas.DataFrame":
    """Categoricals for texts, nullable integers where a value can be unknown, plain NumPy types elsewhere."""
    numpy, pandas = _import_pandas()

    def array(values: Any, kind: str) -> Any:
        return numpy.frombuffer(values, dtype=kind) if len(table) else numpy.empty(0, dtype=kind)

    def mask(unknown: Any) -> Any:
        """A mask owned by the frame: pandas before 2.0 needs a writable mask to group, sort and count. If nothing is
        unknown, the mask is zero pages that take no memory."""
        shared = array(unknown, "bool")
        return shared.copy() if shared.any() else numpy.zeros(len(table), dtype="bool")

    columns: Dict[str, Any] = {}
    for name in table.column_names:
        kind, values, unknown, words = table.column(name)
        data = array(values, kind)
        if words is not None:
            columns[name] = pandas.Categorical.from_codes(data, categories=words)
        elif unknown is None:
            columns[name] = data
        elif kind == "bool":
            columns[name] = pandas.arrays.BooleanArray(data, mask(unknown))
        else:
            columns[name] = pandas.arrays.IntegerArray(data, mask(unknown))
    return pandas.DataFrame(columns, copy=False)
