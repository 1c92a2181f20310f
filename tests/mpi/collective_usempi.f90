! The module without derived types, use mpi: all eight collectives, in place, and an operation of the program's own that does not commute.
module collective_usempi_operation
    implicit none
    integer, parameter :: modulus = 997

contains

    ! Maps x -> a x + b (mod 997) as 1000 a + b, one after the other: another order gives another map.
    subroutine then(first, second, length)
        integer, intent(in) :: length, first(length)
        integer, intent(inout) :: second(length)
        integer :: a(length), b(length)

        a = second / 1000
        b = mod(second, 1000)
        second = mod(first / 1000 * a, modulus) * 1000 + mod(mod(first, 1000) * a + b, modulus)
    end subroutine

    subroutine in_order(first, second, length, datatype)
        integer :: length, datatype, first(length), second(length)

        call then(first, second, length)
    end subroutine
end module

program collective_usempi
    use mpi
    use collective_usempi_operation
    implicit none
    integer, parameter :: n = 700
    integer :: maps(n), sums(n), next(n), expected(n), rank, ranks, root, ierr, i, r, length, failures
    integer, allocatable :: all_ints(:), others(:)
    integer :: compose

    failures = 0
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    allocate (all_ints(n * ranks), others(n * ranks))
    call MPI_Op_create(in_order, .false., compose, ierr)
    maps = map_of(rank)
    expected = map_of(0)
    do r = 1, ranks - 1
        next = map_of(r)
        length = n
        call then(expected, next, length)
        expected = next
    end do

    call MPI_Allreduce(maps, sums, n, MPI_INTEGER, compose, MPI_COMM_WORLD, ierr)
    call expect(all(sums == expected), 'an allreduce in order')
    sums = maps
    call MPI_Allreduce(MPI_IN_PLACE, sums, n, MPI_INTEGER, compose, MPI_COMM_WORLD, ierr)
    call expect(all(sums == expected), 'an allreduce in order in place')
    sums = rank + [(i, i = 1, n)]
    call MPI_Allreduce(MPI_IN_PLACE, sums, n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
    call expect(all(sums == ranks - 1 + [(i, i = 1, n)]), 'an allreduce in place')

    all_ints = -1
    all_ints(rank * n + 1:rank * n + n) = [(rank * n + i, i = 1, n)]
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, all_ints, n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call expect(all(all_ints == [(i, i = 1, n * ranks)]), 'an allgather in place')
    all_ints = [((rank * ranks + r, i = 1, n), r = 0, ranks - 1)]
    call MPI_Alltoall(all_ints, n, MPI_INTEGER, others, n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call expect(all(others == [((r * ranks + rank, i = 1, n), r = 0, ranks - 1)]), 'an all-to-all')
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, all_ints, n, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call expect(all(all_ints == others), 'an all-to-all in place')

    do root = 0, ranks - 1
        sums = -1
        if (rank == root) sums = root + [(i, i = 1, n)]
        call MPI_Bcast(sums, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
        call expect(all(sums == root + [(i, i = 1, n)]), 'a broadcast')

        sums = maps
        if (rank == root) then
            call MPI_Reduce(MPI_IN_PLACE, sums, n, MPI_INTEGER, compose, root, MPI_COMM_WORLD, ierr)
            call expect(all(sums == expected), 'a reduction in order in place')
        else
            call MPI_Reduce(sums, next, n, MPI_INTEGER, compose, root, MPI_COMM_WORLD, ierr)
            call expect(all(sums == maps), 'what was handed in')
        end if

        all_ints = -1
        if (rank == root) then
            all_ints(rank * n + 1:rank * n + n) = rank
            call MPI_Gather(MPI_IN_PLACE, 0, MPI_INTEGER, all_ints, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
            call expect(all(all_ints == [((r, i = 1, n), r = 0, ranks - 1)]), 'a gather in place')
        else
            sums = rank
            call MPI_Gather(sums, n, MPI_INTEGER, all_ints, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
            call expect(all(all_ints == -1), 'what only the root is sent')
        end if

        all_ints = [(i, i = 1, n * ranks)]
        if (rank == root) then
            call MPI_Scatter(all_ints, n, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
            call expect(all(all_ints == [(i, i = 1, n * ranks)]), 'what a scatter leaves in place')
        else
            call MPI_Scatter(all_ints, n, MPI_INTEGER, sums, n, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
            call expect(all(sums == [(rank * n + i, i = 1, n)]), 'a scatter')
        end if
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
    end do

    call MPI_Op_free(compose, ierr)
    if (failures > 0) call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(a)', 'OK collective_usempi'
    call MPI_Finalize(ierr)

contains

    ! Of each element another one.
    function map_of(rank) result(maps)
        integer, intent(in) :: rank
        integer :: maps(n), i

        maps = [((1 + mod(rank * 31 + i, modulus - 1)) * 1000 + mod(rank * 7 + 3 * i, modulus), i = 1, n)]
    end function

    subroutine expect(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what

        if (holds) return
        write (0, *) 'FAIL rank', rank, ': ', what
        failures = failures + 1
    end subroutine
end program
