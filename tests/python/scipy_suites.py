"""SciPy's own tests, with our functions in place of theirs."""

import importlib
from types import ModuleType

import pytest


def suite_on(ours: ModuleType, names: list[str], theirs: ModuleType, tests: str) -> ModuleType:
    """Import a file of SciPy's tests while its module `theirs` has our functions; skip where this SciPy comes without its tests."""
    originals = {name: getattr(theirs, name) for name in names}
    for name in names:
        setattr(theirs, name, getattr(ours, name))
    try:
        return importlib.import_module(tests)
    except ImportError:
        pytest.skip("this SciPy comes without its tests", allow_module_level=True)
    finally:
        for name, f in originals.items():
            setattr(theirs, name, f)


def named_tests(suite: ModuleType, *others: str) -> dict[str, object]:
    """Its tests, and other names."""
    return {k: v for k, v in vars(suite).items() if k.startswith(("test_", "Test")) or k in others}
