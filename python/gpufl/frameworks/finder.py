# SPDX-License-Identifier: Apache-2.0
"""Waiting for a module that the program may import later."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Callable, Optional, Sequence


class Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself; calls back when the module has been imported. Merely being asked for it changes nothing:
    libraries look whether it is there."""

    def __init__(self, name: str, on_imported: Callable[[], None]):
        self.name = name
        self._on_imported = on_imported
        self._is_asking = False

    def find_spec(self, name: str, path: Optional[Sequence[str]],
                  target: Optional[ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name != self.name or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_asking = False
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        """The loader's own way of running the module, once more than it knows; nothing of this is left afterwards."""
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._on_imported()

        loader.exec_module = exec_module
