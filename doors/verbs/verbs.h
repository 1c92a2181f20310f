/* verbs.h: what polycast-verbs.so offers to the library, which opens it at run time. crates/polycast-net/src/verbs/interface.rs
 * mirrors it; a test holds one against the other. */
#ifndef POLYCAST_VERBS_H
#define POLYCAST_VERBS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define POLYCAST_VERBS_VERSION 1

/* The port of a device that an address belongs to. */
struct polycast_verbs_port {
    char device[64];
    uint32_t port;
    uint32_t datagram_bytes;  /* the largest: the active MTU */
    uint64_t bits_per_second; /* 0: not known */
    uint32_t is_ethernet;     /* RoCE */
    uint32_t is_active;
    uint32_t partition; /* the first key of the table; without bit 15 a limited member */
    uint32_t reserved;
};

/* What failed, and why: an errno. */
struct polycast_verbs_failure {
    const char *step;
    int32_t error;
    uint32_t reserved;
};

/* Bytes that have come; they stay until the next call of `receive`. */
struct polycast_verbs_datagram {
    const void *bytes;
    size_t length;
};

struct polycast_verbs_counts {
    uint64_t failed_sends; /* work requests that ended with an error */
    uint64_t failed_receives;
    uint64_t own;  /* datagrams of this process that came back */
    uint64_t lost; /* times that the membership was lost: a port went down, the subnet manager changed, … */
    uint64_t joined;    /* times that it was joined, the first included */
    uint64_t port_down; /* times that the port was found to be down */
};

struct polycast_verbs_member;

/* Functions that return int: 0 or a number, or -errno. A member is used by one thread at a time. */
struct polycast_verbs {
    uint32_t version;
    uint32_t reserved;
    /* Asks for the device of this address; sends nothing. */
    int (*port)(const struct sockaddr *address, struct polycast_verbs_port *port,
                struct polycast_verbs_failure *failure);
    /* Joins a group with room for about so many bytes to be received; less where less can be locked. */
    struct polycast_verbs_member *(*join)(const struct sockaddr *address, const struct sockaddr *group,
                                          size_t room_bytes, struct polycast_verbs_failure *failure);
    void (*leave)(struct polycast_verbs_member *member);
    /* Datagrams of `each` bytes, the last may be shorter. Returns the bytes that were taken; -EAGAIN: none. */
    int64_t (*send)(struct polycast_verbs_member *member, const void *bytes, size_t length, size_t each);
    int (*receive)(struct polycast_verbs_member *member, struct polycast_verbs_datagram *datagrams, int most);
    /* From now on the descriptor tells of what comes; 1: something has come already. */
    int (*arm)(struct polycast_verbs_member *member);
    /* Looks at events, and joins again if the membership was lost. */
    int (*renew)(struct polycast_verbs_member *member);
    int (*descriptor)(const struct polycast_verbs_member *member);
    size_t (*room_bytes)(const struct polycast_verbs_member *member);
    size_t (*datagram_bytes)(const struct polycast_verbs_member *member);
    size_t (*queued_bytes)(struct polycast_verbs_member *member);
    void (*count)(struct polycast_verbs_member *member, struct polycast_verbs_counts *counts);
};

extern const struct polycast_verbs polycast_verbs;

#endif
