/* A bare UDP multicast of the same bytes: not MPI, and not reliable. What a network and its emulation can do at
 * best; it stands beside the broadcasts as the measure of them.
 *
 *     root       44 datagrams of 1472 bytes per system call (UDP_SEGMENT); its own send buffer paces it
 *     receivers  append what comes, in the order in which it comes (UDP_GRO)
 *
 * Datagrams are payload from end to end. Without a number in them a lost one is not known as such: the receiver
 * waits until nothing has come for a while, and the repetition is lost. One that was overtaken shows as wrong
 * data, which here means the same. */
#ifndef POLYCAST_BENCH_BLAST_H
#define POLYCAST_BENCH_BLAST_H

#include <mpi.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct blast {
    int socket;
    int rank;
    struct sockaddr_in group;
};

/* Joins a random group on `interface`, or where the route to the group leads if it is "". One rank per host.
 * Collective over `control`. Returns false with a sentence in `error`, on all ranks alike. */
bool blast_open(struct blast *blast, const char *interface, MPI_Comm control, char *error, int error_size);
void blast_close(struct blast *blast);

/* Throws away what a lost repetition left in the socket. */
void blast_drain(struct blast *blast);

/* Sends `buffer` to everybody, or fills it. Gives up when nothing has come for `silence_ns`. Returns whether
 * this rank sent or received all bytes. */
bool blast_run(struct blast *blast, unsigned char *buffer, int bytes, int root, int64_t silence_ns);

#endif
