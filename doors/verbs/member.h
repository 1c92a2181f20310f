/* member.h: one queue pair in one group; see member.c for its life and data.c for its datagrams. */
#ifndef POLYCAST_VERBS_MEMBER_H
#define POLYCAST_VERBS_MEMBER_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "verbs.h"

/* Before each datagram that is received stands the global routing header, or what RoCE puts in its place. */
#define ROUTING_HEADER_BYTES 40

/* Work requests per call. */
#define BATCH 32

/* A place in the ring of receive buffers, and the request that hands it to the device. */
struct place {
    struct ibv_recv_wr request;
    struct ibv_sge memory;
};

/* The same of the ring of datagrams to be sent. */
struct send_place {
    struct ibv_send_wr request;
    struct ibv_sge memory;
};

/*
 * The memory is one piece:  | receive place 0 | 1 | … | send place 0 | 1 | … |     all of `place_bytes`
 *
 * 1. A receive place belongs to the device (posted), to the queue of completions, to `come`, or to the caller (lent); it is
 *    posted again at the next look. So there are never more completions than places, and the queue cannot overflow.
 * 2. Send places are used in order and freed in order: a request that asks for a completion carries in its wr_id how many
 *    places are free when it has ended. The last request of each call asks.
 * 3. After `is_broken` nothing is posted any more.
 */
struct polycast_verbs_member {
    struct rdma_event_channel *events;
    struct rdma_cm_id *id;
    struct ibv_pd *domain;
    struct ibv_comp_channel *channel;
    struct ibv_cq *received;
    struct ibv_cq *sent;
    struct ibv_mr *registered;
    struct ibv_ah *destination;
    unsigned char *memory;
    size_t memory_bytes;
    struct place *places;
    struct send_place *sends;
    uint32_t receive_places;
    uint32_t send_places;
    uint32_t place_bytes;
    uint32_t datagram_bytes;
    uint32_t group_queue_pair;
    uint32_t group_key;
    union ibv_gid own_address;
    uint16_t own_local_id;
    struct sockaddr_storage group;

    uint32_t next_send; /* the place that is used next */
    uint32_t free_sends;

    struct ibv_wc come[BATCH]; /* completions that were polled and not handed on */
    int come_count;
    int come_next;
    uint32_t lent[BATCH]; /* places whose bytes the caller has */
    int lent_count;

    bool is_received_armed;
    bool is_sent_armed;
    bool awaits_room;
    bool is_broken;
    bool is_member; /* joined, or joining */
    bool is_lost;
    int64_t looked_tenths; /* of seconds: when events were looked at */
    struct polycast_verbs_counts counts;
};

/* member.c */
int look_at_events(struct polycast_verbs_member *member);

/* data.c */
int post_receives(struct polycast_verbs_member *member, const uint32_t *places, int count);
void reap_sends(struct polycast_verbs_member *member);
int64_t send_datagrams(struct polycast_verbs_member *member, const void *bytes, size_t length, size_t each);
int receive_datagrams(struct polycast_verbs_member *member, struct polycast_verbs_datagram *datagrams,
                      int most);
int arm(struct polycast_verbs_member *member);

#endif
