/* manager.c: the stand-in for librdmacm.so.1. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "emulated.h"

#define MAX_EVENTS 16

/* These are of libibverbs: the headers turn some of their names into others. */
extern struct ibv_qp *ibv_create_qp(struct ibv_pd *, struct ibv_qp_init_attr *);

struct channel {
    struct rdma_event_channel channel;
    struct rdma_cm_event *events[MAX_EVENTS];
    int count;
    int identifiers;
};

struct identifier {
    struct rdma_cm_id id;
    struct in_addr address;
    struct sockaddr_storage group;
    void *group_context;
    bool is_joined; /* from the call until it is left */
    int unacknowledged;
};

EXPORT struct rdma_event_channel *rdma_create_event_channel(void) {
    struct channel *channel = calloc(1, sizeof *channel);
    /* A semaphore: each read takes one. */
    channel->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    emulated_counts.event_channels++;
    return &channel->channel;
}

EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *of) {
    struct channel *channel = (struct channel *)of;
    if (channel->identifiers != 0) {
        REFUSE("an event channel is destroyed before its identifiers");
    }
    for (int at = 0; at < channel->count; at++) {
        free(channel->events[at]);
        emulated_counts.events--;
    }
    close(of->fd);
    free(channel);
    emulated_counts.event_channels--;
}

EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                          enum rdma_port_space space) {
    if (channel == NULL || space != RDMA_PS_UDP) {
        errno = EINVAL;
        return -1;
    }
    struct identifier *identifier = calloc(1, sizeof *identifier);
    identifier->id =
        (struct rdma_cm_id){.channel = channel, .context = context, .ps = space, .qp_type = IBV_QPT_UD};
    ((struct channel *)channel)->identifiers++;
    emulated_counts.identifiers++;
    *id = &identifier->id;
    return 0;
}

EXPORT int rdma_destroy_id(struct rdma_cm_id *id) {
    struct identifier *identifier = (struct identifier *)id;
    if (id->qp != NULL) {
        REFUSE("an identifier is destroyed before its queue pair");
    }
    if (identifier->unacknowledged != 0) {
        REFUSE("rdma_destroy_id waits for ever: an event is not acknowledged");
    }
    ((struct channel *)id->channel)->identifiers--;
    emulated_counts.identifiers--;
    free(identifier);
    return 0;
}

EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address) {
    struct identifier *identifier = (struct identifier *)id;
    struct ifaddrs *all, *found = NULL;
    if (getifaddrs(&all) != 0) {
        return -1;
    }
    /* An address belongs to an interface; the emulation sends from its first IPv4 address. */
    for (struct ifaddrs *at = all; at != NULL && found == NULL; at = at->ifa_next) {
        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != address->sa_family) {
            continue;
        }
        bool is_it =
            address->sa_family == AF_INET
                ? ((struct sockaddr_in *)at->ifa_addr)->sin_addr.s_addr ==
                      ((struct sockaddr_in *)address)->sin_addr.s_addr
                : memcmp(&((struct sockaddr_in6 *)at->ifa_addr)->sin6_addr,
                         &((struct sockaddr_in6 *)address)->sin6_addr, 16) == 0 &&
                      if_nametoindex(at->ifa_name) == ((struct sockaddr_in6 *)address)->sin6_scope_id;
        found = is_it ? at : NULL;
    }
    bool has_ipv4 = false;
    for (struct ifaddrs *at = all; at != NULL && found != NULL && !has_ipv4; at = at->ifa_next) {
        if (at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET &&
            strcmp(at->ifa_name, found->ifa_name) == 0) {
            identifier->address = ((struct sockaddr_in *)at->ifa_addr)->sin_addr;
            has_ipv4 = true;
        }
    }
    freeifaddrs(all);
    struct ibv_context *device = has_ipv4 ? emulated_device() : NULL;
    if (device == NULL) {
        errno = ENODEV;
        return -1;
    }
    id->verbs = device;
    id->port_num = 1;
    memcpy(&id->route.addr.src_storage, address,
           address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    uint8_t *own = id->route.addr.addr.ibaddr.sgid.raw;
    if (emulated_settings()->is_infiniband) {
        own[0] = 0xfe;
        own[1] = 0x80;
    } else {
        own[10] = own[11] = 0xff;
    }
    memcpy(own + 12, &identifier->address, 4);
    return 0;
}

EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *domain, struct ibv_qp_init_attr *attributes) {
    if (id->verbs == NULL || domain->context != id->verbs || id->qp != NULL) {
        errno = EINVAL;
        return -1;
    }
    struct ibv_qp *pair = ibv_create_qp(domain, attributes);
    if (pair == NULL) {
        return -1;
    }
    struct ibv_qp_attr step = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = RDMA_UDP_QKEY};
    int error = ibv_modify_qp(pair, &step, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    step.qp_state = IBV_QPS_RTR;
    error = error != 0 ? error : ibv_modify_qp(pair, &step, IBV_QP_STATE);
    step.qp_state = IBV_QPS_RTS;
    error = error != 0 ? error : ibv_modify_qp(pair, &step, IBV_QP_STATE | IBV_QP_SQ_PSN);
    if (error != 0) {
        REFUSE("a queue pair does not become ready to send");
    }
    id->qp = pair;
    id->pd = domain;
    return 0;
}

EXPORT void rdma_destroy_qp(struct rdma_cm_id *id) {
    if (ibv_destroy_qp(id->qp) != 0) {
        REFUSE("a queue pair is destroyed that is still a member of a group");
    }
    id->qp = NULL;
}

/* The group's name: an IPv6 address with the signature and the partition, or IPv4's (RFC 4391, and the port space's mark). */
static union ibv_gid name_of(const struct sockaddr *address) {
    union ibv_gid name = {.raw = {0xff, 0x12, 0x60, 0x01}};
    name.raw[4] = (uint8_t)(emulated_settings()->partition >> 8 | 0x80);
    name.raw[5] = (uint8_t)emulated_settings()->partition;
    if (address->sa_family == AF_INET6) {
        memcpy(name.raw + 6, ((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr + 6, 10);
    } else {
        name.raw[2] = 0x40;
        memcpy(name.raw + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    }
    return name;
}

static void queue_event(struct identifier *identifier, enum rdma_cm_event_type kind, int status) {
    struct channel *channel = (struct channel *)identifier->id.channel;
    if (channel->count == MAX_EVENTS) {
        REFUSE("%d events that nobody takes", MAX_EVENTS);
    }
    struct rdma_cm_event *event = calloc(1, sizeof *event);
    event->id = &identifier->id;
    event->event = kind;
    event->status = status;
    event->param.ud.private_data = identifier->group_context;
    channel->events[channel->count++] = event;
    emulated_counts.events++;
    uint64_t one = 1;
    (void)!write(channel->channel.fd, &one, sizeof one);
}

static void on_lost(void *of, int status) {
    queue_event(of, RDMA_CM_EVENT_MULTICAST_ERROR, status);
}

EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *address, void *context) {
    struct identifier *identifier = (struct identifier *)id;
    bool is_multicast = address->sa_family == AF_INET
                            ? IN_MULTICAST(ntohl(((struct sockaddr_in *)address)->sin_addr.s_addr))
                            : IN6_IS_ADDR_MULTICAST(&((struct sockaddr_in6 *)address)->sin6_addr);
    /* The strict reading: of the family that the identifier is bound to; RoCE over IPv4 has no groups of IPv6. */
    if (id->verbs == NULL || !is_multicast || address->sa_family != id->route.addr.src_addr.sa_family ||
        identifier->is_joined || (!emulated_settings()->is_infiniband && address->sa_family == AF_INET6)) {
        errno = EINVAL;
        return -1;
    }
    memcpy(&identifier->group, address,
           address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    identifier->group_context = context;
    identifier->is_joined = true;
    bool is_refused = emulated_settings()->is_not_joined || !emulated_port_is_active(false);
    queue_event(identifier, is_refused ? RDMA_CM_EVENT_MULTICAST_ERROR : RDMA_CM_EVENT_MULTICAST_JOIN,
                is_refused ? -ENETUNREACH : 0);
    return 0;
}

EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *address) {
    struct identifier *identifier = (struct identifier *)id;
    if (!identifier->is_joined || memcmp(&identifier->group, address, sizeof(struct sockaddr_in)) != 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    if (identifier->unacknowledged != 0) {
        REFUSE("rdma_leave_multicast waits for ever: an event is not acknowledged");
    }
    if (id->qp != NULL) {
        emulated_detach((struct emulated_qp *)id->qp);
    }
    identifier->is_joined = false;
    return 0;
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel *of, struct rdma_cm_event **place) {
    struct channel *channel = (struct channel *)of;
    uint64_t one;
    if (channel->count == 0 && (fcntl(of->fd, F_GETFL) & O_NONBLOCK) == 0) {
        REFUSE("rdma_get_cm_event would wait for ever");
    }
    if (channel->count == 0 || read(of->fd, &one, sizeof one) != sizeof one) {
        errno = EAGAIN;
        return -1;
    }
    struct rdma_cm_event *event = channel->events[0];
    memmove(channel->events, channel->events + 1, (size_t)--channel->count * sizeof *channel->events);
    struct identifier *identifier = (struct identifier *)event->id;
    identifier->unacknowledged++;
    if (event->event == RDMA_CM_EVENT_MULTICAST_JOIN) {
        /* The queue pair is attached when the event is taken. */
        union ibv_gid name = name_of((struct sockaddr *)&identifier->group);
        struct emulated_qp *pair = (struct emulated_qp *)event->id->qp;
        int error = pair == NULL ? 0 : emulated_attach(pair, &name, identifier->address);
        if (error != 0) {
            event->event = RDMA_CM_EVENT_MULTICAST_ERROR;
            event->status = -error;
        } else if (pair != NULL) {
            pair->lost = on_lost;
            pair->of = identifier;
        }
        event->param.ud.ah_attr = (struct ibv_ah_attr){
            .grh = {.dgid = name, .hop_limit = 1}, .dlid = 0xc000, .is_global = 1, .port_num = 1};
        event->param.ud.qp_num = GROUP_QUEUE_PAIR;
        event->param.ud.qkey = RDMA_UDP_QKEY;
    }
    *place = event;
    return 0;
}

EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event) {
    ((struct identifier *)event->id)->unacknowledged--;
    free(event);
    emulated_counts.events--;
    return 0;
}
