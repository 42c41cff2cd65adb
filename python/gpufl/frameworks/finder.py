# SPDX-License-Identifier: Apache-2.0
"""Calls back when the program imports a module later."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Callable, Optional, Sequence


class Finder(importlib.abc.MetaPathFinder):
    """Finds no modules itself; calls back after the module has been imported. Looking up its spec has no effect,
    because libraries do that to check whether the module is installed."""

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
        """Wraps the loader's exec_module for one call; the wrapper is removed afterwards."""
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._on_imported()

        loader.exec_module = exec_module
