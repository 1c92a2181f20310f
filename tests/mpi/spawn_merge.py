"""Workers that appear later, merge, and disconnect, twice (mpi4py's issues 15 and 223; Open MPI's 7901, 12004 and 12016)."""
import sys
from array import array

from mpi4py import MPI

CALLS = 300


def calls(merged, knows_all):
    for call in range(CALLS):
        root = call % merged.size
        data = array('i', [call if merged.rank == root else -1] * (1 + 37 * call))
        merged.Bcast(data, root=root)
        assert data[-1] == call, (call, data[-1], knows_all)
        assert merged.allreduce(1) == merged.size


parent = MPI.Comm.Get_parent()
if parent != MPI.COMM_NULL:
    merged = parent.Merge(high=True)
    calls(merged, False)
    merged.Free()
    parent.Barrier()
    parent.Disconnect()
    sys.exit()
for turn in range(2):
    children = MPI.COMM_WORLD.Spawn(sys.executable, [__file__], maxprocs=2, root=0)
    merged = children.Merge(high=False)
    calls(merged, True)
    assert MPI.COMM_WORLD.bcast({'x': list(range(1000))}, root=0)['x'][-1] == 999
    merged.Free()
    children.Barrier()
    children.Disconnect()
if MPI.COMM_WORLD.rank == 0:
    print('OK spawn_merge', flush=True)
