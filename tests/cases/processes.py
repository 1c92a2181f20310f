"""Ranks of Python that start processes beside MPI, as loaders of data do: by fork, by a server that forks, anew, and programs, with and without mpi4py of
their own. Collectives go on meanwhile and afterwards."""

import array
import multiprocessing
import os
import subprocess
import sys

ROUNDS = 20
# What a job of one rank is not to inherit: that it is part of another, and is to report.
OF_THE_JOB = ("OMPI", "PMIX", "PMI_", "HYDRA", "PRTE", "POLYCAST_REPORT")


def square(x):
    return x * x


def rounds(comm, count):
    for call in range(count):
        root = call % comm.size
        numbers = array.array("q", [call if comm.rank == root else -1]) * (1 + call * 53 % 30000)
        comm.Bcast(numbers, root=root)
        assert numbers[0] == call and numbers[-1] == call, (call, numbers[0], numbers[-1])
        total = array.array("q", [0])
        comm.Allreduce(array.array("q", [comm.rank]), total)
        assert total[0] == comm.size * (comm.size - 1) // 2, (call, total[0])


def said_by_a_program(line, environment=None):
    command = [sys.executable, "-c", line]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert not done.stderr, done.stderr
    return done.stdout


def main():
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rounds(comm, 300)
    for method in ("fork", "forkserver", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            squares = pool.map_async(square, range(50))
            rounds(comm, ROUNDS)
            assert squares.get(240)[-1] == 49 * 49
        rounds(comm, ROUNDS)
    assert said_by_a_program("print(1)") == "1\n"
    alone = {name: value for name, value in os.environ.items() if not name.startswith(OF_THE_JOB)}
    assert said_by_a_program("from mpi4py import MPI; print(MPI.COMM_WORLD.size)", alone) == "1\n"
    rounds(comm, ROUNDS)
    comm.Barrier()
    if comm.rank == 0:
        print("OK processes", flush=True)


if __name__ == "__main__":
    main()
