#include "call.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *served_as, *variable;
} COLLECTIVES[] = {
    [BCAST] = {"bcast", "bcast", "POLYCAST_BCAST"},
    [SCATTER] = {"scatter", "scatter", "POLYCAST_SCATTER"},
    [GATHER] = {"gather", "gather", "POLYCAST_GATHER"},
    [ALLGATHER] = {"allgather", "allgather", "POLYCAST_ALLGATHER"},
    [ALLGATHERV] = {"allgatherv", "allgather", "POLYCAST_ALLGATHER"},
    [ALLTOALL] = {"alltoall", "alltoall", "POLYCAST_ALLTOALL"},
    [BARRIER] = {"barrier", "barrier", "POLYCAST_BARRIER"},
    [REDUCE] = {"reduce", "reduce", "POLYCAST_REDUCE"},
    [ALLREDUCE] = {"allreduce", "allreduce", "POLYCAST_ALLREDUCE"},
};

bool collective_read(const char *name, enum collective *collective) {
    for (size_t i = 0; i < sizeof COLLECTIVES / sizeof *COLLECTIVES; i++) {
        if (strcmp(name, COLLECTIVES[i].name) == 0) {
            *collective = (enum collective)i;
            return true;
        }
    }
    return false;
}

const char *collective_name(enum collective collective) {
    return COLLECTIVES[collective].served_as;
}

const char *collective_variable(enum collective collective) {
    return COLLECTIVES[collective].variable;
}

bool collective_has_source(enum collective collective) {
    return collective == BCAST || collective == SCATTER;
}

bool collective_ends_at_root(enum collective collective) {
    return collective == GATHER || collective == REDUCE;
}

/* How many parts of equal size a buffer has. */
static int parts(const struct call *call) {
    switch (call->collective) {
    case BCAST:
    case BARRIER:
        return 1;
    case REDUCE:
    case ALLREDUCE:
        return (int)sizeof(double);
    default:
        return call->ranks;
    }
}

size_t call_room(const struct call *call) {
    const size_t count = (size_t)parts(call);
    return call->collective == BARRIER ? 0 : ((size_t)call->bytes + count - 1) / count * count;
}

int call_block(const struct call *call) {
    const bool has_blocks = call->collective >= SCATTER && call->collective <= ALLTOALL;
    int largest = has_blocks ? 0 : (int)call_room(call);
    for (int rank = 0; rank < call->ranks && has_blocks; rank++)
        largest = call->counts[rank] > largest ? call->counts[rank] : largest;
    return largest;
}

bool call_open(struct call *call, enum collective collective, int bytes, int rank, int ranks) {
    *call = (struct call){.collective = collective, .bytes = bytes, .rank = rank, .ranks = ranks};
    call->counts = malloc((size_t)ranks * sizeof(int));
    call->offsets = malloc((size_t)ranks * sizeof(int));
    if (!call->counts || !call->offsets) {
        call_close(call);
        return false;
    }
    const int block = (int)(call_room(call) / (size_t)ranks);
    for (int peer = 0, offset = 0; peer < ranks; peer++) {
        const int moved = collective != ALLGATHERV || (ranks % 2 == 1 && peer == ranks - 1) ? 0 : block / 2;
        call->counts[peer] = peer % 2 == 0 ? block - moved : block + moved;
        call->offsets[peer] = offset;
        offset += call->counts[peer];
    }
    return true;
}

void call_close(struct call *call) {
    free(call->counts);
    free(call->offsets);
    call->counts = call->offsets = NULL;
}

void call_run(const struct call *call, const unsigned char *send, unsigned char *receive, MPI_Comm comm) {
    const int own = call->counts[call->rank], root = call->root;
    const int elements = (int)(call_room(call) / sizeof(double));
    switch (call->collective) {
    case BCAST:
        MPI_Bcast(receive, call->bytes, MPI_BYTE, root, comm);
        break;
    case SCATTER:
        MPI_Scatter(send, own, MPI_BYTE, receive, own, MPI_BYTE, root, comm);
        break;
    case GATHER:
        MPI_Gather(send, own, MPI_BYTE, receive, own, MPI_BYTE, root, comm);
        break;
    case ALLGATHER:
        MPI_Allgather(send, own, MPI_BYTE, receive, own, MPI_BYTE, comm);
        break;
    case ALLGATHERV:
        MPI_Allgatherv(send, own, MPI_BYTE, receive, call->counts, call->offsets, MPI_BYTE, comm);
        break;
    case ALLTOALL:
        MPI_Alltoall(send, own, MPI_BYTE, receive, own, MPI_BYTE, comm);
        break;
    case BARRIER:
        MPI_Barrier(comm);
        break;
    case REDUCE:
        MPI_Reduce(send, receive, elements, MPI_DOUBLE, MPI_SUM, root, comm);
        break;
    case ALLREDUCE:
        MPI_Allreduce(send, receive, elements, MPI_DOUBLE, MPI_SUM, comm);
        break;
    }
}
