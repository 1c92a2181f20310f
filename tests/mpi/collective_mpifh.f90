! The oldest Fortran interface: its MPI_IN_PLACE is a variable, its datatypes and operations are numbers.
program collective_mpifh
    implicit none
    include 'mpif.h'
    integer, parameter :: n = 700
    integer :: ints(n), sums(n), rank, ranks, root, ierr, i, r, failures
    integer, allocatable :: all_ints(:), others(:)
    double precision :: reals(n), largest(n)
    integer :: pairs(2), places(2)

    failures = 0
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    allocate (all_ints(n * ranks), others(n * ranks))
    ints = [(rank * n + i, i = 1, n)]
    call MPI_Allreduce(ints, sums, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (any(sums /= [(ranks * (ranks - 1) / 2 * n + ranks * i, i = 1, n)])) failures = failures + 1
    sums = ints
    call MPI_Allreduce(MPI_IN_PLACE, sums, n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
    if (any(sums /= [((ranks - 1) * n + i, i = 1, n)])) failures = failures + 1
    pairs = [mod(rank, 2), rank]
    call MPI_Allreduce(pairs, places, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
    if (ranks > 1 .and. any(places /= [1, 1])) failures = failures + 1
    call MPI_Allgather(ints, n, MPI_INTEGER, all_ints, n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    if (any(all_ints /= [(i, i = 1, n * ranks)])) failures = failures + 1
    all_ints = -1
    all_ints(rank * n + 1:rank * n + n) = ints
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, all_ints, n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    if (any(all_ints /= [(i, i = 1, n * ranks)])) failures = failures + 1
    all_ints = [((rank * ranks + r, i = 1, n), r = 0, ranks - 1)]
    call MPI_Alltoall(all_ints, n, MPI_INTEGER, others, n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    if (any(others /= [((r * ranks + rank, i = 1, n), r = 0, ranks - 1)])) failures = failures + 1
    do root = 0, ranks - 1
        reals = [(rank + i / 8d0, i = 1, n)]
        call MPI_Reduce(reals, largest, n, MPI_DOUBLE_PRECISION, MPI_MAX, root, MPI_COMM_WORLD, ierr)
        if (rank == root .and. any(largest /= [(ranks - 1 + i / 8d0, i = 1, n)])) failures = failures + 1
        call MPI_Gather(ints, n, MPI_INTEGER, all_ints, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
        if (rank == root .and. any(all_ints /= [(i, i = 1, n * ranks)])) failures = failures + 1
        all_ints = [(i, i = 1, n * ranks)]
        sums = -1
        call MPI_Scatter(all_ints, n, MPI_INTEGER, sums, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
        if (any(sums /= ints)) failures = failures + 1
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
    end do

    if (failures > 0) then
        write (0, *) 'FAIL rank', rank, ':', failures, 'wrong results'
        call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(a)', 'OK collective_mpifh'
    call MPI_Finalize(ierr)
end program
