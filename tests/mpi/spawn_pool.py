"""mpi4py.futures: pools that come and go."""
from mpi4py.futures import MPIPoolExecutor


def work(number):
    from mpi4py import MPI
    return sum(range(number)) + MPI.COMM_SELF.allreduce(0)


if __name__ == '__main__':
    for turn in range(2):
        with MPIPoolExecutor(3) as pool:
            assert sum(pool.map(work, range(200))) == 1313400
    with MPIPoolExecutor(2) as pool:
        assert pool.submit(work, 5).result() == 10
    print('OK spawn_pool', flush=True)
