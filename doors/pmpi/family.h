// clang-format off
/* Preprocessed with each mpicc to learn which family its MPI belongs to: the last line of the output is the name. */
#include <mpi.h>
#if defined(OPEN_MPI)
openmpi
#elif defined(MPI_ABI_VERSION) && !defined(MPICH_VERSION) && !defined(MPICH)
abi
#elif defined(MPICH_VERSION) || defined(MPICH)
mpich
#else
unknown
#endif
