/*
 * emulated.h: a stand-in for libibverbs.so.1 and librdmacm.so.1, with just the calls that polycast-verbs.so uses.
 *
 * A queue pair in a group is a UDP socket in an IPv4 group that is made from the group's name. Written to the manual pages;
 * where they leave something open, to the stricter reading: what is wrong, but would be forgiven by most devices, fails here.
 * What happens is said by VERBS_EMULATION, words with commas:
 *
 *   ib | roce        what the port is; roce (over IPv4) is the default
 *   null             the port swallows what is sent, and what is received is nothing in particular: costs no time
 *   mtu=1024         the active MTU
 *   absent=h1:h2     hosts without a device
 *   on=h1            the words behind it hold on this host only
 *   partition=0x7fff the only key of the partition table; by default the full member's 0xffff
 *   memlock=BYTES    so much can be registered
 *   lose=20          of 1000 datagrams that come
 *   down=N           the port goes down after N datagrams, for the next 3 looks at its state
 *   unjoin=N         the membership is lost after N datagrams
 *   sendfail=N       the Nth request to send ends with an error, and the queue pair with it
 *   nojoin           groups cannot be joined
 */
#ifndef EMULATED_H
#define EMULATED_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define ROUTING_HEADER_BYTES 40
#define GROUP_QUEUE_PAIR 0xffffff
#define WIRE_HEADER_BYTES 16

/* The program has done what would fail, or wait for ever, with a device. */
#define REFUSE(...)                                                                                          \
    do {                                                                                                     \
        fprintf(stderr, "verbs emulation: " __VA_ARGS__);                                                    \
        fputc('\n', stderr);                                                                                 \
        abort();                                                                                             \
    } while (0)

struct settings {
    bool is_infiniband, is_null, is_absent, is_not_joined;
    uint32_t mtu, partition, lose;
    uint64_t memlock, down, unjoin, sendfail;
};

/* A request to send that the wire has not taken. */
struct emulated_send {
    uint64_t id;
    uint32_t length; /* of the datagram, in `bytes` of the pair */
    enum ibv_wc_status status;
    bool is_signaled;
};

struct emulated_qp {
    struct ibv_qp qp;
    struct ibv_qp_cap cap;
    uint16_t partition;
    uint32_t key;
    int socket; /* -1: in no group */
    bool is_member;
    struct sockaddr_in to;  /* the group's */
    struct in_addr address; /* of the port */
    uint8_t group[16];
    /* Rings of requests. */
    struct ibv_recv_wr *receives;
    struct ibv_sge *receive_memory;
    uint32_t first_receive, receives_posted;
    struct emulated_send *sends;
    unsigned char *bytes;
    uint32_t first_send, sends_waiting;
    uint32_t sends_posted; /* until a completion that comes with or after them is polled */
    uint32_t unsignaled;   /* that have left since the last completion */
    uint64_t sent;
    uint64_t arrived;
    /* librdmacm is told when a membership ends. */
    void (*lost)(void *of, int status);
    void *of;
};

struct emulated_channel {
    struct ibv_comp_channel channel; /* its descriptor is an epoll */
    int event;                       /* an eventfd: can be read while a queue has an event */
    struct emulated_cq *queues[2];
};

struct emulated_cq {
    struct ibv_cq cq;
    struct ibv_wc *entries;
    uint32_t first, count;
    bool is_armed;
    bool has_event; /* that nobody has taken */
    uint32_t unacknowledged;
    struct emulated_qp *qp; /* one per queue is enough */
};

/* How many of all kinds there are. */
struct emulated_counts {
    int contexts, domains, registered, queues, channels, pairs, handles, identifiers, event_channels, events;
};
EXPORT extern struct emulated_counts emulated_counts;

EXPORT const struct settings *emulated_settings(void);
EXPORT struct ibv_context *emulated_device(void);
EXPORT bool emulated_port_is_active(bool is_looked_at);

/* completion.c */
int emulated_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *completions);
int emulated_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void emulated_complete(struct emulated_cq *cq, const struct ibv_wc *completion);
void emulated_look(struct emulated_cq *cq);

/* queue_pair.c */
int emulated_post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **refused);
int emulated_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **refused);
const struct ibv_mr *emulated_registered(uint32_t key);
void emulated_fail(struct emulated_qp *pair);

/* wire.c */
EXPORT int emulated_attach(struct emulated_qp *pair, const union ibv_gid *group, struct in_addr address);
EXPORT void emulated_detach(struct emulated_qp *pair);
void emulated_receive(struct emulated_qp *pair);
void emulated_write_header(struct emulated_qp *pair, unsigned char *place, uint32_t key);
void emulated_flush(struct emulated_qp *pair);
void emulated_watch(struct emulated_qp *pair);

#endif
