! The module with overloaded interfaces: use mpi. With a row of a matrix as a derived type.
program bcast_usempi
    use mpi
    implicit none
    integer, parameter :: n = 3000
    integer :: ints(n), rank, ranks, root, ierr, i, failures, all_failures
    double precision :: reals(n)
    integer :: matrix(40, 50), row
    character(len=40) :: text, expected

    failures = 0
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    call MPI_Type_vector(50, 1, 40, MPI_INTEGER, row, ierr)
    call MPI_Type_commit(row, ierr)
    do root = 0, ranks - 1
        write (expected, '(a,i4)') 'text from rank ', root
        ints = -1
        reals = -1
        text = ' '
        matrix = -7
        if (rank == root) then
            ints = [(root * n + i, i = 1, n)]
            reals = [(root + i / 8d0, i = 1, n)]
            text = expected
            matrix(3, :) = [(root - i, i = 1, 50)]
        end if
        call MPI_Bcast(ints, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
        if (ierr /= MPI_SUCCESS) failures = failures + 1
        call MPI_Bcast(reals, n, MPI_DOUBLE_PRECISION, root, MPI_COMM_WORLD, ierr)
        call MPI_Bcast(text, len(text), MPI_CHARACTER, root, MPI_COMM_WORLD, ierr)
        call MPI_Bcast(matrix(3, 1), 1, row, root, MPI_COMM_WORLD, ierr)
        if (any(ints /= [(root * n + i, i = 1, n)])) failures = failures + 1
        if (any(reals /= [(root + i / 8d0, i = 1, n)])) failures = failures + 1
        if (text /= expected) failures = failures + 1
        if (any(matrix(3, :) /= [(root - i, i = 1, 50)])) failures = failures + 1
        if (any(matrix(1:2, :) /= -7) .or. any(matrix(4:, :) /= -7)) failures = failures + 1
    end do
    call MPI_Type_free(row, ierr)

    call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (failures > 0) write (0, *) 'FAIL rank', rank, ':', failures, 'wrong broadcasts'
    if (rank == 0 .and. all_failures == 0) print '(a)', 'OK bcast_usempi'
    if (all_failures > 0) call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    call MPI_Finalize(ierr)
end program
