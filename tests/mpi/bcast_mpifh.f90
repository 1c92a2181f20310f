! The oldest Fortran interface, which declares nothing: include 'mpif.h'.
program bcast_mpifh
    implicit none
    include 'mpif.h'
    integer, parameter :: n = 3000
    integer :: ints(n), rank, ranks, root, ierr, i, failures, all_failures
    double precision :: reals(n)
    character(len=40) :: text, expected

    failures = 0
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    do root = 0, ranks - 1
        write (expected, '(a,i4)') 'text from rank ', root
        ints = -1
        reals = -1
        text = ' '
        if (rank == root) then
            ints = [(root * n + i, i = 1, n)]
            reals = [(root + i / 8d0, i = 1, n)]
            text = expected
        end if
        call MPI_Bcast(ints, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
        if (ierr /= MPI_SUCCESS) failures = failures + 1
        call MPI_Bcast(reals, n, MPI_DOUBLE_PRECISION, root, MPI_COMM_WORLD, ierr)
        call MPI_Bcast(text, len(text), MPI_CHARACTER, root, MPI_COMM_WORLD, ierr)
        if (any(ints /= [(root * n + i, i = 1, n)])) failures = failures + 1
        if (any(reals /= [(root + i / 8d0, i = 1, n)])) failures = failures + 1
        if (text /= expected) failures = failures + 1
    end do

    call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (failures > 0) write (0, *) 'FAIL rank', rank, ':', failures, 'wrong broadcasts'
    if (rank == 0 .and. all_failures == 0) print '(a)', 'OK bcast_mpifh'
    if (all_failures > 0) call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    call MPI_Finalize(ierr)
end program
