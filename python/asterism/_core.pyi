# The compiled core is internal: the typed public layer is the Python modules beside this file.
from typing import Any

def __getattr__(name: str) -> Any: ...
