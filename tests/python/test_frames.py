#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""DataFrames of a session share its memory, yet all common pandas operations give the same results as on a copy."""
import warnings

import fixture
import pandas
from gpufl.analyzer import GpuFlightSession

# Each takes a frame and one of its columns.
OPERATIONS = {
    "groupby": lambda frame, column: frame.groupby(column, observed=True).size(),
    "groupby, nothing dropped": lambda frame, column: frame.groupby(column, observed=True, dropna=False).size(),
    "groupby and first": lambda frame, column: frame.groupby(column, observed=True).first(),
    "groupby and sum": lambda frame, column: frame.groupby(lambda row: row % 2)[column].sum(),
    "groupby and max": lambda frame, column: frame.groupby(lambda row: row % 2)[column].max(),
    "groupby and cumulate": lambda frame, column: frame.groupby(lambda row: row % 2)[column].cummax(),
    "unique": lambda frame, column: pandas.Series(frame[column].unique()),
    "nunique": lambda frame, column: frame[column].nunique(),
    "value_counts": lambda frame, column: frame[column].value_counts(),
    "factorize": lambda frame, column: pandas.Series(frame[column].factorize()[0]),
    "duplicated": lambda frame, column: frame[column].duplicated(),
    "drop_duplicates": lambda frame, column: frame.drop_duplicates(column),
    "sort_values": lambda frame, column: frame.sort_values(column),
    "set_index": lambda frame, column: frame.set_index(column).sort_index(),
    "isin": lambda frame, column: frame[frame[column].isin(frame[column].head(3))],
    "equal to the first": lambda frame, column: frame[frame[column] == frame[column].iloc[0]],
    "merge": lambda frame, column: frame.head(100).merge(frame[[column]].head(5), on=column),
    "describe": lambda frame, column: frame[column].describe(),
    "sum": lambda frame, column: frame[column].sum(),
    "mean": lambda frame, column: frame[column].mean(),
    "max": lambda frame, column: frame[column].max(),
    "cumsum": lambda frame, column: frame[column].cumsum(),
    "diff": lambda frame, column: frame[column].diff(),
    "shift": lambda frame, column: frame[column].shift(),
    "rank": lambda frame, column: frame[column].rank(),
    "quantile": lambda frame, column: frame[column].quantile(.5),
    "rolling": lambda frame, column: frame[column].astype("float64").rolling(5).mean(),
    "cut": lambda frame, column: pandas.cut(frame[column], 4),
    "fillna": lambda frame, column: frame[column].fillna(0),
    "dropna": lambda frame, column: frame[column].dropna(),
    "plus one": lambda frame, column: frame[column] + 1,
    "astype": lambda frame, column: frame[column].astype(object),
    "to_numpy": lambda frame, column: pandas.Series(frame[column].to_numpy()),
    "pivot": lambda frame, column: frame.pivot_table(index=column, aggfunc="size"),
    "concat": lambda frame, column: pandas.concat([frame[[column]], frame[[column]]]),
    "take": lambda frame, column: frame[column].take([0, 0]),
    "where": lambda frame, column: frame[column].where(frame[column].notna()),
    "a new column": lambda frame, column: frame.assign(new=frame[column]),
}


def answer_of(operation, frame, column):
    """What the operation gives, or the error that it raises; nonsense, like the mean of texts, is refused by pandas."""
    try:
        return operation(frame, column)
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"


def are_equal(left, right):
    if any(isinstance(one, (pandas.DataFrame, pandas.Series)) for one in (left, right)):
        return type(left) is type(right) and left.equals(right)
    return left is right or left == right or (pandas.isna(left) and pandas.isna(right))


def frames_to_try():
    """Every table, from the session that has most of it, and from one that has nothing."""
    sessions = [GpuFlightSession(path) for path in fixture.GOLDEN_SESSIONS]
    for name in GpuFlightSession.table_names():
        fullest = max(sessions, key=lambda session: len(session.table(name)))  # pylint: disable=cell-var-from-loop
        yield name, getattr(fullest, name)
        yield f"empty {name}", getattr(GpuFlightSession(fixture.GOLDEN / "empty"), name)


class Operations(fixture.TestCase):
    def test_every_operation_on_every_column_answers_as_on_a_copy(self):
        wrong = []
        calls = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for table, frame in frames_to_try():
                own = frame.copy(deep=True)
                for column in frame.columns:
                    for name, operation in OPERATIONS.items():
                        calls += 1
                        answer, wanted = (answer_of(operation, one, column) for one in (frame, own))
                        if not are_equal(answer, wanted):
                            wrong.append(f"{table}.{column} {name}: {answer}, on a copy: {wanted}"[:300])
        self.assertGreater(calls, 10000)
        self.assertEqual(wrong, [], f"{len(wrong)} of {calls}")

    def test_groups_by_a_column_that_can_be_unknown_count_its_rows(self):
        kernels = GpuFlightSession(fixture.GOLDEN / "trace").kernels
        self.assertEqual(kernels.groupby("stream_id").size().sum(), len(kernels))

    def test_what_a_frame_marks_as_unknown_is_its_own(self):
        session = GpuFlightSession(fixture.GOLDEN / "trace")
        kernels = session.kernels
        known = kernels.stream_id.notna().tolist()
        kernels.stream_id.array[0] = pandas.NA
        self.assertTrue(pandas.isna(kernels.stream_id.iloc[0]))
        again = GpuFlightSession(fixture.GOLDEN / "trace").kernels
        self.assertEqual(again.stream_id.notna().tolist(), known)
        arrow = session.table("kernels").column("stream_id")[2]
        self.assertEqual([not unknown for unknown in bytes(arrow)], known)


if __name__ == "__main__":
    fixture.main()
