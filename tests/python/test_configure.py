"""Options of the whole process belong to the process, not to a solver."""

import os
import subprocess
import sys

import pytest

import asterism as am

OF_PROCESS = sorted(am.configure())


@pytest.fixture(autouse=True)
def as_before():
    """Leave the process as it was."""
    before = am.configure()
    yield
    am.configure(**before)


def test_what_is_in_force_is_told():
    assert am.configure()["memory_cap"] == "0"
    assert am.configure(memory_cap=10**12, sf_debug=True) == {
        **am.configure(),
        "memory_cap": str(10**12),
        "sf_debug": "true",
    }
    am.configure(memory_cap=1000)
    with pytest.raises(am.errors.OutOfMemoryError, match="cap of 1000"):
        am.solve(am.gallery.poisson((50, 50)), [1.0] * 2500)
    am.configure(memory_cap=0)
    assert am.solve(am.gallery.poisson((50, 50)), [1.0] * 2500)[1].converged


@pytest.mark.parametrize("name", OF_PROCESS)
def test_a_solver_refuses_them(name):
    A = am.gallery.poisson((5, 5))
    value = am.configure()[name]
    for make in (
        lambda: am.Solver(A, **{name: value}),
        lambda: am.Solver(A, f"-{name} {value}"),
        lambda: am.solve(A, [1.0] * 25, options={name: value}),
    ):
        with pytest.raises(am.OptionError, match=rf"-{name} .* asterism.configure\({name}="):
            make()


def test_wrong_names_and_values_change_nothing():
    before = am.configure()
    for call, text in (
        (lambda: am.configure(memory_cap=5000, sf_transport="pigeons"), "pigeons"),
        (lambda: am.configure(memory_cap="much"), "much"),
        (lambda: am.configure(memory_cap=-1), "-memory_cap .*-1"),
        (lambda: am.configure(gpu_memory_cap=-1), "-gpu_memory_cap .*-1"),
        (lambda: am.configure(memory_cup=5), "Did you mean memory_cap"),
        (lambda: am.configure(ksp_type="cg"), "ksp_type is an option of a solver"),
    ):
        with pytest.raises(am.OptionError, match=text):
            call()
        assert am.configure() == before


def test_it_wins_over_the_environment_and_lasts():
    script = """
import asterism as am
A = am.gallery.poisson((5, 5))
print(am.configure()["sf_transport"])
am.configure(sf_transport="auto")
am.Solver(A)  # does not bring back what the environment says
am.use_argv(["-sf_debug"])
print(am.configure()["sf_transport"], am.configure()["sf_debug"], am.StarForest(None, 1, None, [[0, 0]]).transport)
"""
    env = {**os.environ, "ASTERISM_OPTIONS": "-sf_transport p2p -ksp_rtol 1e-3"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, timeout=60)
    assert done.stdout.split() == ["p2p", "auto", "true", "auto"], done.stdout + done.stderr


def test_ranks_that_differ_are_told(on_ranks):
    on_ranks(
        2,
        """
A = am.gallery.poisson((9, 9), comm)
am.configure(reproducible=rank == 1, memory_cap=10**9 + rank)
told = message(lambda: am.Solver(A))
assert "-reproducible is false on rank 0; true on rank 1" in told and "memory_cap" not in told, told
am.configure(reproducible=False)
am.solve(A, np.ones(A.local_shape[0]))
""",
        limit=60,
    )


def test_options_may_be_the_text_of_a_file():
    text = "# found by advise\n-ksp_type gmres  # restarts\n-ksp_gmres_restart 7\n\n#-pc_type none\n-pc_type jacobi\n"
    s = am.Solver(am.gallery.poisson((5, 5)), text)
    said = {o["name"]: o["value"] for o in s.options_in_force()}
    assert (said["ksp_type"], said["ksp_gmres_restart"], said["pc_type"]) == ("gmres", "7", "jacobi")
