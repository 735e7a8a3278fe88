"""The package itself: its names are loaded when they are used."""

import subprocess
import sys
from pathlib import Path

import asterism as am


def fresh(script):
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_names_are_loaded_when_they_are_used():
    assert (
        fresh("import asterism, sys; print('numpy' in sys.modules, 'asterism._core' in sys.modules)").split()
        == ["False"] * 2
    )
    assert (
        fresh("import asterism as am; print(am.solve(am.Matrix.from_scipy(__import__('numpy').eye(2)), [1.0, 2.0])[0])")
        == "[1. 2.]\n"
    )
    # a module that is loaded does not hide a function, whichever comes first
    assert "function" in fresh(
        "import asterism.solvers.least_squares, asterism as am; print(am.least_squares, am.solve)"
    )


def test_every_public_name_is_there():
    for name in am.__all__:
        assert getattr(am, name) is not None, name
    assert set(am.__all__) <= set(dir(am)) and not [n for n in dir(am) if n.startswith("_") and n != "__version__"]
    # type checkers see the same names
    text = Path(am.__file__).read_text()
    assert all(f" as {name}" in text for name in am.__all__)


def test_a_checkout_without_the_compiled_library():
    """Modules that do not need it can be used; others say what is missing."""
    block = "import sys; sys.modules['asterism._core'] = None; import asterism as am; am.errors.ShapeError('x'); "
    assert "ImportError" in fresh(block + "\ntry: am.Matrix\nexcept ImportError as e: print(type(e).__name__, e)")


def test_a_misspelt_name_is_an_attribute_error():
    assert "has no attribute 'Matrx'" in fresh(
        "import asterism as am\ntry: am.Matrx\nexcept AttributeError as e: print(e)"
    )


def test_an_import_after_a_removal_from_sys_modules_is_an_error():
    """As notebooks do that load everything anew; the process ended."""
    code = """
import sys
import asterism as am
am.gallery.poisson((5, 5))
for name in [name for name in sys.modules if name.split(".")[0] == "asterism"]: del sys.modules[name]
import asterism as am
try: am.gallery.poisson((5, 5))
except ImportError as e: print("told:", e)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "told: asterism was removed from sys.modules" in done.stdout
