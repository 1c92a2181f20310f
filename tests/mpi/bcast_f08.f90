! The module with derived types for handles and optional error arguments: use mpi_f08. With array sections.
program bcast_f08
    use mpi_f08
    implicit none
    integer, parameter :: n = 3000
    integer :: ints(n), sparse(3 * n), rank, ranks, root, i, failures, all_failures, ierr
    complex(kind=kind(0d0)) :: numbers(n)
    type(MPI_Comm) :: comm
    type(MPI_Datatype) :: pairs

    failures = 0
    call MPI_Init()
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, ranks)
    call MPI_Type_contiguous(2, MPI_INTEGER, pairs)
    call MPI_Type_commit(pairs)
    do root = 0, ranks - 1
        ints = -1
        sparse = -1
        numbers = (-1, -1)
        if (rank == root) then
            ints = [(root * n + i, i = 1, n)]
            sparse(2::3) = [(root - i, i = 1, n)]
            numbers = [(cmplx(root, i, kind(0d0)), i = 1, n)]
        end if
        call MPI_Bcast(ints, n / 2, pairs, root, comm)
        ! The compiler, or the library, gathers the section and puts it back.
        call MPI_Bcast(sparse(2::3), n, MPI_INTEGER, root, comm, ierr)
        if (ierr /= MPI_SUCCESS) failures = failures + 1
        call MPI_Bcast(numbers, n, MPI_DOUBLE_COMPLEX, root, comm)
        if (any(ints /= [(root * n + i, i = 1, n)])) failures = failures + 1
        if (any(sparse(2::3) /= [(root - i, i = 1, n)])) failures = failures + 1
        if (any(sparse(1::3) /= -1) .or. any(sparse(3::3) /= -1)) failures = failures + 1
        if (any(numbers /= [(cmplx(root, i, kind(0d0)), i = 1, n)])) failures = failures + 1
    end do
    call MPI_Type_free(pairs)
    call MPI_Comm_free(comm)

    call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (failures > 0) write (0, *) 'FAIL rank', rank, ':', failures, 'wrong broadcasts'
    if (rank == 0 .and. all_failures == 0) print '(a)', 'OK bcast_f08'
    if (all_failures > 0) call MPI_Abort(MPI_COMM_WORLD, 1)
    call MPI_Finalize()
end program
