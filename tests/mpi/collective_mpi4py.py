"""mpi4py: buffers, pickled objects, a Python function as operation; it prefers the functions that end in _c."""

import sys
from array import array

from mpi4py import MPI


def blocks_of(comm, longest, shorter):
    """What MPI_Allgatherv is given: blocks of different lengths, an element between them."""
    counts = [longest - shorter * source for source in range(comm.size)]
    starts = [sum(counts[:source]) + source for source in range(comm.size)]
    result = array("d", [-1.0] * (sum(counts) + comm.size))
    return array("d", [float(comm.rank)] * counts[comm.rank]), [result, counts, starts, MPI.DOUBLE]


def check_blocks(rank, result, counts, starts):
    for source, (count, start) in enumerate(zip(counts, starts)):
        end = start + count
        assert result[start:end] == array("d", [float(source)] * count), f"rank {rank}: v"
        assert result[end] == -1.0, f"rank {rank}: between the blocks something was written"


def main():
    comm = MPI.COMM_WORLD.Dup()
    rank, size = comm.rank, comm.size
    for count in (0, 1, 777, 20_000):
        mine = array("i", range(rank, rank + count))
        everybody = [array("i", range(source, source + count)) for source in range(size)]
        flat = array("i", [number for block in everybody for number in block])

        sums = array("i", [-1] * count)
        comm.Allreduce(mine, sums, op=MPI.SUM)
        expected = array("i", [sum(column) for column in zip(*everybody)])
        assert sums == expected, f"rank {rank}: the sums of {count} differ"
        sums = array("i", mine)
        comm.Allreduce(MPI.IN_PLACE, sums, op=MPI.SUM)
        assert sums == expected, f"rank {rank}: the sums of {count} in place differ"

        gathered = array("i", [-1] * (count * size))
        comm.Allgather(mine, gathered)
        assert gathered == flat, f"rank {rank}: what was gathered of {count} differs"
        exchanged = array("i", [-1] * (count * size))
        comm.Alltoall(flat, exchanged)
        own = everybody[rank]
        assert exchanged == array("i", list(own) * size), f"rank {rank}: what was exchanged of {count} differs"
        for root in range(size):
            gathered = array("i", [-1] * (count * size if rank == root else 0))
            comm.Gather(mine, gathered if rank == root else None, root=root)
            assert rank != root or gathered == flat, f"rank {rank}: what root {root} gathered differs"
            part = array("i", [-1] * count)
            comm.Scatter(flat if rank == root else None, part, root=root)
            assert part == own, f"rank {rank}: what root {root} scattered differs"

    # Two on their way at once, and others before they end.
    calls = [blocks_of(comm, 1000 - 3 * call, call) for call in range(4)]
    requests = [comm.Iallgatherv(*arguments) for arguments in calls[:2]]
    for arguments in calls[2:]:
        comm.Allgatherv(*arguments)
    MPI.Request.Waitall(requests)
    for _, (result, counts, starts, _) in calls:
        check_blocks(rank, result, counts, starts)

    assert comm.allreduce([rank]) == list(range(size)), "lists are concatenated in order"
    assert comm.allgather({"rank": rank})[size - 1] == {"rank": size - 1}
    comm.Barrier()

    def first_nonzero(left, right, datatype):
        right[:] = bytes(one or other for one, other in zip(left, right))

    operation = MPI.Op.Create(first_nonzero, commute=False)
    word = bytearray([rank + 1] * 100)
    comm.Allreduce(MPI.IN_PLACE, [word, MPI.BYTE], op=operation)
    assert word == bytearray([1] * 100), f"rank {rank}: a Python function combined in another order"
    operation.Free()
    comm.Barrier()
    if rank == 0:
        print("OK collective_mpi4py", flush=True)
    comm.Free()


try:
    main()
except AssertionError as error:
    print(f"FAIL {error}", file=sys.stderr, flush=True)
    MPI.COMM_WORLD.Abort(1)
