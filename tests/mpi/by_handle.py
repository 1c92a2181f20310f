"""libmpi opened by an interpreter, and called by handles: past what is preloaded.

by_handle.py local|global|deep [mixed]: how it is opened; mixed: MPI_Init and each second call are by the program's own scope.
For Open MPI, whose handles are addresses. (MPI.jl's issues 444, 451 and 587.)
"""
import ctypes
import os
import sys

MODES = {'local': os.RTLD_LOCAL, 'global': os.RTLD_GLOBAL, 'deep': os.RTLD_LOCAL | os.RTLD_DEEPBIND}
CALLS = 300

library = ctypes.CDLL('libmpi.so.40', mode=MODES[sys.argv[1]] | os.RTLD_NOW)
other = ctypes.CDLL(None) if 'mixed' in sys.argv else library
assert other.MPI_Init(None, None) == 0


def variable(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, name)))


world, integer, add = variable('ompi_mpi_comm_world'), variable('ompi_mpi_int'), variable('ompi_mpi_op_sum')
rank, size = ctypes.c_int(), ctypes.c_int()
library.MPI_Comm_rank(world, ctypes.byref(rank))
library.MPI_Comm_size(world, ctypes.byref(size))
for call in range(CALLS):
    by, root = (library if call % 2 else other), call % size.value
    count = 1 + call * 97 % 20000
    data = (ctypes.c_int * count)(*([call] * count if rank.value == root else [0] * count))
    assert by.MPI_Bcast(data, count, integer, root, world) == 0 and data[count - 1] == call, (rank.value, call)
    one, total = ctypes.c_int(1), ctypes.c_int()
    assert by.MPI_Allreduce(ctypes.byref(one), ctypes.byref(total), 1, integer, add, world) == 0
    assert total.value == size.value, (rank.value, call)
library.MPI_Barrier(world)
if rank.value == 0:
    print('OK by_handle', flush=True)
other.MPI_Finalize()
