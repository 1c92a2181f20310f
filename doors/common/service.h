/* A call that is served, between its beginning and its end. */
#ifndef POLYCAST_DOOR_SERVICE_H
#define POLYCAST_DOOR_SERVICE_H

#include "door.h"

/* What this rank does in a call. */
struct part {
    int sent, received; /* blocks */
    int is_in_place; /* what would be sent, or the part of it that stays here, is where it is to be received */
};

/* Data as the runtime sees it: blocks of the same length, one behind the other. */
struct stretch {
    const struct data *data;
    const struct blocks *blocks; /* if they are not alike */
    int number;                  /* of blocks */
    size_t bytes;                /* of each */
    struct element element;
    enum memory memory;
    void *place;
    int is_copy;
    int is_nothing; /* the program's memory is not looked at: zeros are sent from the place, and nobody wants what comes there */
    size_t own; /* this rank's block has only so many bytes; 0: all */
    int rank;   /* whose block that is */
};

/* What is wrong to this rank alone: what it sends, what it receives, that both are one place. */
struct wrong {
    int send, receive, place;
};

/* It does not move, for it points to what it has itself. */
struct service {
    struct call call;
    const struct communicator *state;
    struct part part;
    struct stretch sent, received;
    int refusal; /* the MPI's error, which follows when this rank has taken part; MPI_SUCCESS: none */
};

/* wrong.c */
struct wrong door_wrong(const struct call *call, const struct part *part);
/* What the MPI says of it: an error, or MPI_SUCCESS if it does not mind. Where errors end the job, the MPI ends it here. */
int door_refusal(const struct call *call, const struct part *part, struct wrong wrong, size_t bytes);

/* What is handed in stands at `sent.place` then, and what is received is to come to `received.place`. 0: the call is for stock; see
 * door_serve. 1 and an error: nothing is to be run. */
int door_begin_service(const struct call *call, const struct communicator *state, size_t bytes,
                       struct service *service, int *error);
/* The runtime is through with it. 0: the call is for stock after all, which says that the communicator was revoked. */
int door_end_service(struct service *service, int error, int *result);

#endif
