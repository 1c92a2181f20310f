/* ---- Segments through the ranks ------------------------------------------------------------------------ */

/* AHEAD: segments that are under way from one rank to another at the most. */
enum { AHEAD = 8, TAG = 0 };

struct requests {
    MPI_Request in[AHEAD], out[AHEAD][2];
};

/* After an error: receives are called back, so that nothing comes into the buffer later; sends end alone. */
static void give_up(struct requests *requests) {
    for (int slot = 0; slot < AHEAD; slot++) {
        if (requests->in[slot] != MPI_REQUEST_NULL) {
            PMPI_Cancel(&requests->in[slot]);
            PMPI_Wait(&requests->in[slot], MPI_STATUS_IGNORE);
        }
        for (int child = 0; child < 2; child++) {
            if (requests->out[slot][child] != MPI_REQUEST_NULL) {
                PMPI_Request_free(&requests->out[slot][child]);
            }
        }
    }
}

/* A message in segments, all of one length but the last. */
struct message {
    char *data;
    int bytes, segment, segments;
};

static int length_of(const struct message *message, int segment) {
    return segment < message->segments - 1 ? message->segment : message->bytes - segment * message->segment;
}

static int receive(const struct message *message, int segment, int from, MPI_Comm channel,
                   struct requests *requests) {
    return PMPI_Irecv(message->data + segment * message->segment, length_of(message, segment), MPI_BYTE, from,
                      TAG, channel, &requests->in[segment % AHEAD]);
}

/* To each child, when the segment that had its slot before has left. */
static int pass_on(const struct message *message, int segment, const int to[2], MPI_Comm channel,
                   struct requests *requests) {
    int error = MPI_SUCCESS;
    for (int child = 0; child < 2 && !error; child++) {
        MPI_Request *request = &requests->out[segment % AHEAD][child];
        error = PMPI_Wait(request, MPI_STATUS_IGNORE);
        if (!error && segment < message->segments) {
            error = PMPI_Isend(message->data + segment * message->segment, length_of(message, segment),
                               MPI_BYTE, to[child], TAG, channel, request);
        }
    }
    return error;
}

/*     from the parent   0   1   2   3   4        receives are posted AHEAD of the segment that is waited for;
 *     to each child         0   1   2   3   4    the last rounds only wait until everything has left
 */
static int pipeline(const struct message *message, struct neighbours to, MPI_Comm channel) {
    struct requests requests;
    int segments = message->segments, posted = 0, error = MPI_SUCCESS;
    for (int slot = 0; slot < AHEAD; slot++) {
        requests.in[slot] = requests.out[slot][0] = requests.out[slot][1] = MPI_REQUEST_NULL;
    }
    for (int i = 0; i < segments + AHEAD && !error; i++) {
        for (; posted < segments && posted < i + AHEAD && !error; posted++) {
            error = receive(message, posted, to.parent, channel, &requests);
        }
        error = error ? error : PMPI_Wait(&requests.in[i % AHEAD], MPI_STATUS_IGNORE);
        error = error ? error : pass_on(message, i, to.child, channel, &requests);
    }
    if (error) {
        give_up(&requests);
    }
    return error;
}
