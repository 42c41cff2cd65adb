# SPDX-License-Identifier: Apache-2.0
"""As much of polars as takes a table: from its Arrow C stream, like the real one, and to its end."""
from arrow_consumer import Consumer


class DataFrame:
    def __init__(self, data):
        consumer = Consumer(data)
        self._columns = consumer.columns()
        self.height = consumer.batch.length
        consumer.release()

    @property
    def columns(self):
        return list(self._columns)

    def __getitem__(self, name):
        return self._columns[name]
