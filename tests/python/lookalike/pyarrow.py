# SPDX-License-Identifier: Apache-2.0
"""As much of pyarrow as takes a table: from its Arrow C stream, like the real one, and to its end."""
from arrow_consumer import Consumer

__version__ = "0"  # older than any that pandas would use


class Table:
    def __init__(self, columns, num_rows):
        self._columns, self.num_rows = columns, num_rows

    @property
    def column_names(self):
        return list(self._columns)

    def to_pydict(self):
        return dict(self._columns)


def table(data):
    consumer = Consumer(data)
    result = Table(consumer.columns(), consumer.batch.length)
    consumer.release()
    return result
