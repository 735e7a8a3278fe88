"""New star forests from old ones, and from rules: Zhang et al. (2022), section 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..base.indices import as_count, as_indices
from ..errors import InputError
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
        """Join two forests: the leaves of `other` hang on my roots, where its roots are my leaves.

        Parameters
        ----------
        other : StarForest
            On the same communicator. Its root i meets my leaf at position i, on each rank.

        Returns
        -------
        StarForest
            My root space, and the leaf space of `other`. Edges that do not meet are dropped. A bcast over it is a bcast over this forest
            and then one over `other`.

        Raises
        ------
        InputError
            A leaf is listed several times, in one of the two; or `other` is no star forest.
        CommError
            The two are on different communicators.

        Notes
        -----
        Collective. Cost: a bcast of 16 bytes an edge over `other`, and the set-up of the new forest.

        Examples
        --------
        >>> import asterism as am
        >>> coarse = am.StarForest(None, 1, None, [[0, 0], [0, 0]])            # two leaves on one root
        >>> fine = am.StarForest(None, 2, None, [[0, 0], [0, 1], [0, 1]])      # three leaves on these two
        >>> coarse.compose(fine).degree()
        array([3])
        """
        return self._of(self._sf.compose(_core_of(other, "compose: other")))

    @one_call("StarForest.compose_inverse")
    def compose_inverse(self, other: StarForest) -> StarForest:
        """Join two forests at their leaves: the roots of `other` become leaves on my roots.

        Parameters
        ----------
        other : StarForest
            On the same communicator, with at most one leaf a root. Its leaf at position i meets mine, on each rank.

        Returns
        -------
        StarForest
            My root space; its leaf space is the root space of `other`. Edges that do not meet are dropped.

        Raises
        ------
        InputError
            A leaf is listed several times, or a root of `other` has several leaves; or `other` is no star forest.
        CommError
            The two are on different communicators.

        Notes
        -----
        Collective. Cost: a reduce of 16 bytes an edge over `other`, and the set-up of the new forest.
        """
        return self._of(self._sf.compose_inverse(_core_of(other, "compose_inverse: other")))

    def inverse(self) -> StarForest:
        """Turn all edges round: leaves become roots, and roots leaves.

        Returns
        -------
        StarForest
            Its root space is my leaf space, its leaf space my root space.

        Raises
        ------
        InputError
            A root has several leaves, or a leaf is listed several times.

        Notes
        -----
        Collective. Cost: a reduce of 16 bytes an edge, and the set-up of the new forest.
        """
        return self._of(self._sf.inverse())

    @one_call("StarForest.embed_roots")
    def embed_roots(self, selected: Any) -> StarForest:
        """Keep the edges of some roots.

        Parameters
        ----------
        selected : array of int
            My roots that are kept, unsorted or repeated as you like.

        Returns
        -------
        StarForest
            Both spaces stay as they are: nothing is renumbered.

        Raises
        ------
        InputError
            An index is outside of my root space.

        Notes
        -----
        Collective. Cost: a bcast of a byte an edge, and the set-up of two forests.
        """
        return self._of(self._sf.embed_roots(as_indices(selected, "embed_roots: selected")))

    @one_call("StarForest.embed_leaves")
    def embed_leaves(self, selected: Any) -> StarForest:
        """Keep the edges of some leaves.

        Parameters
        ----------
        selected : array of int
            Positions of my leaf space that are kept, unsorted or repeated as you like. One without a leaf has no effect.

        Returns
        -------
        StarForest
            Both spaces stay as they are: nothing is renumbered.

        Raises
        ------
        InputError
            A position is outside of my leaf space.

        Notes
        -----
        Collective. Cost: the set-up of the new forest.
        """
        return self._of(self._sf.embed_leaves(as_indices(selected, "embed_leaves: selected")))

    @one_call("StarForest.strided")
    def strided(self, k: int) -> StarForest:
        """Make k edges of each: root r becomes the roots ``r k ... r k + k - 1``, and so does each leaf.

        Parameters
        ----------
        k : int
            1 or more, the same on all ranks.

        Returns
        -------
        StarForest
            Of k times the sizes. To move k values a point, arrays (n, k) with this forest do the same and keep no list of edges.

        Raises
        ------
        InputError
            k is 0, or not the same on all ranks.

        Notes
        -----
        Collective. Cost: the set-up of a forest of k times the edges.
        """
        return self._of(self._sf.strided(as_count(k, "strided: k")))

    @one_call("StarForest.section")
    def section(self, root_dofs: Any) -> tuple[StarForest, NDArray[np.int64]]:
        """Go from points to their unknowns.

        Parameters
        ----------
        root_dofs : array of int, shape (nroots,)
            How many unknowns each of my root points has. They stand behind each other, in the order of the points.

        Returns
        -------
        forest : StarForest
            Of the unknowns: those of a leaf point hang on those of its root.
        leaf_dofs : array of int64, shape (nleafspace,)
            How many unknowns each leaf point has: as many as its root; 0 without one.

        Raises
        ------
        ShapeError
            There are not as many counts as roots.
        InputError
            A count is negative, or a leaf is listed several times.

        Notes
        -----
        Collective. Cost: a bcast of 16 bytes a point, and the set-up of the new forest.

        Examples
        --------
        >>> import asterism as am
        >>> points = am.StarForest(None, 2, None, [[0, 1], [0, 0]])
        >>> unknowns, counts = points.section([1, 3])
        >>> counts, unknowns.nleaves
        (array([3, 1]), 4)
        """
        core, leaf_dofs = self._sf.section(as_indices(root_dofs, "section: root_dofs"))
        return self._of(core), np.asarray(leaf_dofs, dtype=np.int64)

    @classmethod
    @one_call("StarForest.concatenate")
    def concatenate(
        cls, forests: Sequence[StarForest], shared_roots: bool = False, shared_leaves: bool = False
    ) -> StarForest:
        """Join all edges of several forests.

        Parameters
        ----------
        forests : sequence of StarForest
            One or more, on the same communicator. The first one's transport is taken.
        shared_roots, shared_leaves : bool
            Whether all have one root space, or leaf space, as large as the largest. Else their spaces stand behind each other.

        Returns
        -------
        StarForest

        Raises
        ------
        InputError
            The list is empty, or has something else than star forests.
        CommError
            The forests are on different communicators.

        Notes
        -----
        Collective. Cost: the set-up of the new forest; without ``shared_roots`` also that of a forest for each, and a bcast of 8 bytes an
        edge.
        """
        given = [_core_of(f, f"concatenate: forest {i}") for i, f in enumerate(forests)]
        return cls._of(_core.StarForest.concatenate(given, shared_roots, shared_leaves))

    @classmethod
    @one_call("StarForest.from_sizes")
    def from_sizes(cls, comm: Any, local_size: int, indices: Any) -> StarForest:
        """Let leaves hang on global indices, which the ranks own in their order.

        Parameters
        ----------
        comm : None or mpi4py.MPI.Comm
        local_size : int
            How many global indices this rank owns: its root space.
        indices : array of int, shape (nleaves,)
            The global index that each of my leaves 0, 1, 2, ... hangs on.

        Returns
        -------
        StarForest

        Raises
        ------
        InputError
            An index is outside of the global range, which ends at the sum of all ``local_size``.

        Notes
        -----
        Collective. Cost: that of `StarForest`, and an all-gather of the sizes.

        Examples
        --------
        >>> import asterism as am
        >>> am.StarForest.from_sizes(None, 4, [3, 0, 3]).degree()
        array([1, 0, 0, 2])
        """
        layout = _core.Layout(as_communicator(comm), as_count(local_size, "from_sizes: local_size"))
        return cls._of(_core.StarForest.from_layout(layout, as_indices(indices, "from_sizes: indices")))

    @classmethod
    @one_call("StarForest.matching")
    def matching(cls, comm: Any, root_ids: Any, leaf_ids: Any) -> StarForest:
        """Let each leaf hang on the one root, on any rank, that has the same number.

        Parameters
        ----------
        comm : None or mpi4py.MPI.Comm
        root_ids : array of int, shape (nroots,)
            The number of each of my roots: 0 or more, and no other root's on any rank.
        leaf_ids : array of int, shape (nleaves,)
            The number of each of my leaves 0, 1, 2, ... Several may have the same.

        Returns
        -------
        StarForest

        Raises
        ------
        InputError
            A number is negative, two roots have the same, or no root has that of a leaf.

        Notes
        -----
        Collective. A directory of all roots is spread over the ranks. Cost: three exchanges with the ranks that have my part of it, of 16
        bytes a root and 24 bytes a leaf; memory of that order and of the number of ranks; and the set-up of the forest.
        """
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
        """Let every rank have all roots of all ranks as its leaves, in rank order.

        Parameters
        ----------
        comm : None or mpi4py.MPI.Comm
        nroots : int
            How many roots this rank has.

        Returns
        -------
        StarForest
            As many leaves as there are roots on all ranks.

        Raises
        ------
        ShapeError
            ``nroots`` is negative.

        Notes
        -----
        Collective. Memory: of the order of all roots, on each rank.
        """
        return cls._of(_core.StarForest.all_gather(as_communicator(comm), as_count(nroots, "all_gather: nroots")))

    @classmethod
    @one_call("StarForest.all_to_all")
    def all_to_all(cls, comm: Any, n: int) -> StarForest:
        """Let every rank have n roots for each rank; its leaves are those that each rank has for it.

        Parameters
        ----------
        comm : None or mpi4py.MPI.Comm
        n : int
            The same on all ranks.

        Returns
        -------
        StarForest
            Of n times the number of ranks roots and leaves here: n for, and of, each rank in rank order.

        Raises
        ------
        InputError
            n is not the same on all ranks.
        ShapeError
            n is negative.

        Notes
        -----
        Collective. Memory: of the order of n times the number of ranks, on each rank.
        """
        return cls._of(_core.StarForest.all_to_all(as_communicator(comm), as_count(n, "all_to_all: n")))


def _core_of(forest: Any, what: str) -> _core.StarForest:
    if not isinstance(forest, ForestAlgebra):
        raise InputError(f"{what} is a {type(forest).__name__}; an asterism.StarForest is needed.")
    return forest._sf
