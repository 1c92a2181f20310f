"""mpi4py: buffers, pickled objects, derived types; it opens libmpi with RTLD_LOCAL and prefers MPI_Bcast_c."""

import sys
from array import array

from mpi4py import MPI

LARGEST_BYTES = 100_001


def broadcast_bytes(comm, root, size):
    expected = bytes((root * 31 + i * 7) % 251 for i in range(size))
    message = bytearray(expected if comm.rank == root else b"\xa5" * size)
    comm.Bcast([message, MPI.BYTE], root=root)
    assert message == expected, f"rank {comm.rank}: {size} bytes from root {root} differ"


def broadcast_object(comm, root):
    expected = {"root": root, "numbers": list(range(500)), "text": "x" * 3000}
    received = comm.bcast(expected if comm.rank == root else None, root=root)
    assert received == expected, f"rank {comm.rank}: the object from root {root} differs"


def broadcast_column(comm, root):
    rows, columns = 30, 40
    column = MPI.INT.Create_vector(rows, 1, columns).Commit()
    matrix = array("i", [-1] * (rows * columns))
    if comm.rank == root:
        matrix[0::columns] = array("i", range(root, root + rows))
    comm.Bcast([matrix, 1, column], root=root)
    column.Free()
    assert matrix[0::columns] == array("i", range(root, root + rows)), f"rank {comm.rank}: the column differs"
    assert matrix[1::columns] == array("i", [-1] * rows), f"rank {comm.rank}: the next column was overwritten"


def main():
    comm = MPI.COMM_WORLD.Dup()
    for root in range(comm.size):
        for size in (0, 1, 777, 4096, LARGEST_BYTES):
            broadcast_bytes(comm, root, size)
        broadcast_object(comm, root)
        broadcast_column(comm, root)
    comm.Barrier()
    if comm.rank == 0:
        print("OK bcast_mpi4py", flush=True)
    comm.Free()


try:
    main()
except AssertionError as error:
    print(f"FAIL {error}", file=sys.stderr, flush=True)
    MPI.COMM_WORLD.Abort(1)
