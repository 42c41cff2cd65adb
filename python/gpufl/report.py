# SPDX-License-Identifier: Apache-2.0
"""Reports of recorded sessions, as text and as one HTML file.

    from gpufl.report import generate_report

    print(generate_report("./logs", log_prefix="my_app", top_n=10))
    generate_report("./logs", output_path="report.html")
"""

import os
import sys
from typing import Any, Optional, Union

from ._options import raise_unknown
from .analyzer import GpuFlightSession


class TextReport:
    """The report that `gpufl report` prints."""

    def __init__(self, session: GpuFlightSession, top_n: int = 10):
        if not isinstance(session, GpuFlightSession):
            raise TypeError(f"{type(self).__name__}(): session must be GpuFlightSession, not {type(session).__name__}")
        self.session = session
        self.top_n = top_n

    def generate(self) -> str:
        return self.session.report_text(top_n=self.top_n)

    def print(self) -> None:
        sys.stdout.write(self.generate())

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.generate())


class HtmlReport(TextReport):
    """The page that `gpufl report --html` writes."""

    def generate(self) -> str:
        return self.session.report_html(top_n=self.top_n)


def generate_report(log_dir: Union[str, "os.PathLike[str]"], log_prefix: Optional[str] = None, top_n: int = 10,
                    output_path: Union[str, "os.PathLike[str]", None] = None, session_id: Optional[str] = None,
                    **others: Any) -> str:
    """Returns the report of a session; also writes it to output_path if given. HTML if output_path ends with .html."""
    for name in others:
        raise_unknown("generate_report", name, ("log_dir", "log_prefix", "top_n", "output_path", "session_id"))
    session = GpuFlightSession(log_dir, log_prefix=log_prefix, session_id=session_id)
    is_html = output_path is not None and os.fspath(output_path).lower().endswith((".html", ".htm"))
    report = HtmlReport(session, top_n) if is_html else TextReport(session, top_n)
    if output_path is not None:
        report.save(output_path)
    return report.generate()
