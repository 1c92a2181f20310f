! The module without derived types, use mpi: all eight collectives, in place, and an operation of the program's own that does not commute.
module collective_usempi_operation
    implicit none
    integer, parameter :: modulus = 997

contains

    include 'collective_then.inc'

    subroutine in_order(first, second, length, datatype)
        integer :: length, datatype, first(length), second(length)

        call then(first, second, length)
    end subroutine
end module

program collective_usempi
    use mpi
    use collective_usempi_operation
    implicit none
    character(*), parameter :: name = 'collective_usempi'
    integer :: compose

    include 'collective_calls.inc'
end program
