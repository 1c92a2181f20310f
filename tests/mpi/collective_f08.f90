! The module with derived types for handles, use mpi_f08: all eight collectives, in place, and an operation of the program's own that does not commute.
module collective_f08_operation
    use mpi_f08
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    implicit none
    integer, parameter :: modulus = 997

contains

    include 'collective_then.inc'

    subroutine in_order(first, second, length, datatype)
        type(c_ptr), value :: first, second
        integer :: length
        type(MPI_Datatype) :: datatype
        integer, pointer :: a(:), b(:)

        call c_f_pointer(first, a, [length])
        call c_f_pointer(second, b, [length])
        call then(a, b, length)
    end subroutine
end module

program collective_f08
    use mpi_f08
    use collective_f08_operation
    implicit none
    character(*), parameter :: name = 'collective_f08'
    type(MPI_Op) :: compose

    include 'collective_calls.inc'
end program
