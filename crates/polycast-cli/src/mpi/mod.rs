//! Which MPI a launcher belongs to, and how programs are started with it.
