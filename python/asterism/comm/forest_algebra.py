"""New star forests from old ones, and from rules.

Zhang et al. (2022), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_count, as_indices
from .communicator import as_communicator, one_call

if TYPE_CHECKING:
    from .forest import StarForest

__all__ = ["ForestAlgebra"]


class ForestAlgebra:
    """What makes a star forest of others; all of it is collective."""

    _sf: _core.StarForest

    @classmethod
    def _of(cls, core: Any) -> StarForest:
        self = cls.__new__(cls)
        self._sf = core
        return cast("StarForest", self)

    @one_call("StarForest.compose")
    def compose(self, other: StarForest) -> StarForest:
        """My roots with the leaves of `other`, whose roots are my leaves by index; unconnected edges are dropped."""
        return self._of(self._sf.compose(other._sf))

    @one_call("StarForest.compose_inverse")
    def compose_inverse(self, other: StarForest) -> StarForest:
        """My roots with the roots of `other` as leaves, through leaves of equal position."""
        return self._of(self._sf.compose_inverse(other._sf))

    def inverse(self) -> StarForest:
        """Leaves become roots; every root must have at most one leaf."""
        return self._of(self._sf.inverse())

    @one_call("StarForest.embed_roots")
    def embed_roots(self, selected: Any) -> StarForest:
        """Only the edges of the selected roots; nothing is renumbered."""
        return self._of(self._sf.embed_roots(as_indices(selected, "embed_roots: selected")))

    @one_call("StarForest.embed_leaves")
    def embed_leaves(self, selected: Any) -> StarForest:
        """Only the edges of the selected leaves; nothing is renumbered."""
        return self._of(self._sf.embed_leaves(as_indices(selected, "embed_leaves: selected")))

    @one_call("StarForest.strided")
    def strided(self, k: int) -> StarForest:
        """Every edge k times: root r has the roots ``r k ... r k + k - 1``."""
        return self._of(self._sf.strided(as_count(k, "strided: k")))

    @one_call("StarForest.section")
    def section(self, root_dofs: Any) -> tuple[StarForest, NDArray[np.int64]]:
        """From points to unknowns: root point r has ``root_dofs[r]``. Also returns each leaf point's number."""
        core, leaf_dofs = self._sf.section(as_indices(root_dofs, "section: root_dofs"))
        return self._of(core), np.asarray(leaf_dofs, dtype=np.int64)

    @classmethod
    @one_call("StarForest.concatenate")
    def concatenate(
        cls, forests: Sequence[StarForest], shared_roots: bool = False, shared_leaves: bool = False
    ) -> StarForest:
        """All edges of several forests; spaces stand behind each other unless they are shared."""
        return cls._of(_core.StarForest.concatenate([f._sf for f in forests], shared_roots, shared_leaves))

    @classmethod
    @one_call("StarForest.from_sizes")
    def from_sizes(cls, comm: Any, local_size: int, indices: Any) -> StarForest:
        """Leaves 0, 1, ... hang on global indices, of which every rank owns `local_size` in rank order."""
        layout = _core.Layout(as_communicator(comm), as_count(local_size, "from_sizes: local_size"))
        return cls._of(_core.StarForest.from_layout(layout, as_indices(indices, "from_sizes: indices")))

    @classmethod
    @one_call("StarForest.matching")
    def matching(cls, comm: Any, root_ids: Any, leaf_ids: Any) -> StarForest:
        """Leaf l hangs on the one root anywhere that has the same number, ``root_ids[r] == leaf_ids[l]``."""
        return cls._of(
            _core.StarForest.matching(
                as_communicator(comm),
                as_indices(root_ids, "matching: root_ids"),
                as_indices(leaf_ids, "matching: leaf_ids"),
            )
        )

    @classmethod
    @one_call("StarForest.all_gather")
    def all_gather(cls, comm: Any, nroots: int) -> StarForest:
        """Every rank's leaves are all roots of all ranks, in rank order."""
        return cls._of(_core.StarForest.all_gather(as_communicator(comm), as_count(nroots, "all_gather: nroots")))

    @classmethod
    @one_call("StarForest.all_to_all")
    def all_to_all(cls, comm: Any, n: int) -> StarForest:
        """Give n roots to each rank; my leaves are those that each rank has for me."""
        return cls._of(_core.StarForest.all_to_all(as_communicator(comm), as_count(n, "all_to_all: n")))
