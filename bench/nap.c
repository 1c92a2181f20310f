#define _GNU_SOURCE
#include "nap.h"

#include <time.h>

static void nap(int64_t nap_ns) {
    nanosleep(&(struct timespec){.tv_sec = nap_ns / 1000000000, .tv_nsec = nap_ns % 1000000000}, NULL);
}

void nap_until_message(int source, int tag, MPI_Comm comm, int64_t first_ns, int64_t longest_ns) {
    int64_t nap_ns = first_ns;
    int there = 0;
    for (;;) {
        MPI_Iprobe(source, tag, comm, &there, MPI_STATUS_IGNORE);
        if (there)
            return;
        nap(nap_ns);
        nap_ns = nap_ns * 2 < longest_ns ? nap_ns * 2 : longest_ns;
    }
}

void nap_until_complete(MPI_Request *request, MPI_Status *status, int64_t nap_ns) {
    int complete = 0;
    for (;;) {
        MPI_Test(request, &complete, status);
        if (complete)
            return;
        nap(nap_ns);
    }
}
