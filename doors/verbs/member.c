/*
 * member.c: how a member of a group comes and goes.
 *
 *   event channel, identifier ── bind to the address ─▶ device, port
 *   protection domain, completion channel, two completion queues, registered memory
 *   queue pair (librdmacm takes it to "ready to send"), all receive places posted
 *   join ── event ─▶ address handle, number and key of the group
 *
 * The device's own events (ibv_get_async_event) are not read: librdmacm has one context per device and process, which the MPI
 * may use too. A port that goes down and a subnet manager that changes end memberships, of which librdmacm tells us.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "member.h"

#define EXPORT __attribute__((visibility("default")))

/* A subnet manager answers within milliseconds, mostly. */
#define JOIN_MILLISECONDS 2000

#define SEND_PLACES 128
#define LEAST_RECEIVE_PLACES 64

static int fail(struct polycast_verbs_failure *failure, const char *step, int error) {
    *failure = (struct polycast_verbs_failure){.step = step, .error = error == 0 ? EIO : error};
    return -failure->error;
}

static socklen_t length_of(const struct sockaddr *address) {
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static uint32_t mtu_bytes(enum ibv_mtu mtu) {
    return 128U << mtu;
}

static uint64_t bits_per_second(const struct ibv_port_attr *port) {
    /* Lanes, and megabits per second of each: InfiniBand Architecture Specification, PortInfo. */
    static const struct {
        uint8_t code;
        uint32_t value;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}},
      speeds[] = {{1, 2500},   {2, 5000},   {4, 10000},  {8, 10000},
                  {16, 14063}, {32, 25781}, {64, 53125}, {128, 106250}};
    uint64_t width = 0, speed = 0;
    for (size_t at = 0; at < sizeof widths / sizeof *widths; at++) {
        width = widths[at].code == port->active_width ? widths[at].value : width;
    }
    for (size_t at = 0; at < sizeof speeds / sizeof *speeds; at++) {
        speed = speeds[at].code == port->active_speed ? speeds[at].value : speed;
    }
    return width * speed * 1000 * 1000;
}

static int describe(struct rdma_cm_id *id, struct polycast_verbs_port *port,
                    struct polycast_verbs_failure *failure) {
    struct ibv_port_attr attributes;
    int error = ibv_query_port(id->verbs, id->port_num, &attributes);
    if (error != 0) {
        return fail(failure, "ibv_query_port", error);
    }
    uint16_t partition = 0xffff;
    /* Where it cannot be told, it is no hindrance that we know of. */
    (void)ibv_query_pkey(id->verbs, id->port_num, 0, &partition);
    *port = (struct polycast_verbs_port){
        .port = id->port_num,
        .datagram_bytes = mtu_bytes(attributes.active_mtu),
        .bits_per_second = bits_per_second(&attributes),
        .is_ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET,
        .is_active = attributes.state == IBV_PORT_ACTIVE,
        .partition = ntohs(partition),
    };
    const char *name = ibv_get_device_name(id->verbs->device);
    strncpy(port->device, name == NULL ? "?" : name, sizeof port->device - 1);
    return 0;
}

static int do_not_wait(int descriptor, struct polycast_verbs_failure *failure) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags != -1 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 ? 0
                                                                              : fail(failure, "fcntl", errno);
}

/* An identifier that is bound to the device of the address. Both are the caller's to free, also after a failure. */
static int bind_to(const struct sockaddr *address, struct rdma_event_channel **events, struct rdma_cm_id **id,
                   struct polycast_verbs_failure *failure) {
    *id = NULL;
    *events = rdma_create_event_channel();
    if (*events == NULL) {
        return fail(failure, "rdma_create_event_channel", errno);
    }
    /* Who takes events, also on the way out, takes those that are there. */
    if (do_not_wait((*events)->fd, failure) != 0) {
        return -failure->error;
    }
    if (rdma_create_id(*events, id, NULL, RDMA_PS_UDP) != 0) {
        *id = NULL;
        return fail(failure, "rdma_create_id", errno);
    }
    struct sockaddr_storage copy = {0};
    memcpy(&copy, address, length_of(address));
    if (rdma_bind_addr(*id, (struct sockaddr *)&copy) != 0) {
        return fail(failure, "rdma_bind_addr", errno);
    }
    return (*id)->verbs == NULL ? fail(failure, "rdma_bind_addr", ENODEV) : 0;
}

static int find_port(const struct sockaddr *address, struct polycast_verbs_port *port,
                     struct polycast_verbs_failure *failure) {
    struct rdma_event_channel *events;
    struct rdma_cm_id *id;
    int error = bind_to(address, &events, &id, failure);
    if (error == 0) {
        error = describe(id, port, failure);
    }
    if (id != NULL) {
        rdma_destroy_id(id);
    }
    if (events != NULL) {
        rdma_destroy_event_channel(events);
    }
    return error;
}

/* Locked memory is limited: half as many places, and again, until they fit. */
static int register_memory(struct polycast_verbs_member *member, struct polycast_verbs_failure *failure) {
    for (;;) {
        size_t bytes = (size_t)(member->receive_places + member->send_places) * member->place_bytes;
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return fail(failure, "mmap", errno);
        }
        /* A child of the program must not make the kernel copy pages that the device writes to. */
        (void)madvise(memory, bytes, MADV_DONTFORK);
        member->registered = ibv_reg_mr(member->domain, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
        if (member->registered != NULL) {
            member->memory = memory;
            member->memory_bytes = bytes;
            return 0;
        }
        int error = errno;
        munmap(memory, bytes);
        if (error != ENOMEM || member->receive_places / 2 < LEAST_RECEIVE_PLACES) {
            return fail(failure, "ibv_reg_mr", error);
        }
        member->receive_places /= 2;
    }
}

/* Completion queues and the queue pair, as large as the device lets them be. */
static int make_queues(struct polycast_verbs_member *member, struct polycast_verbs_failure *failure) {
    member->channel = ibv_create_comp_channel(member->id->verbs);
    if (member->channel == NULL) {
        return fail(failure, "ibv_create_comp_channel", errno);
    }
    if (do_not_wait(member->channel->fd, failure) != 0) {
        return -failure->error;
    }
    member->received =
        ibv_create_cq(member->id->verbs, (int)member->receive_places, NULL, member->channel, 0);
    if (member->received == NULL) {
        return fail(failure, "ibv_create_cq", errno);
    }
    member->sent = ibv_create_cq(member->id->verbs, (int)member->send_places, NULL, member->channel, 0);
    if (member->sent == NULL) {
        return fail(failure, "ibv_create_cq", errno);
    }
    struct ibv_qp_init_attr attributes = {
        .send_cq = member->sent,
        .recv_cq = member->received,
        .cap = {.max_send_wr = member->send_places,
                .max_recv_wr = member->receive_places,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
    };
    return rdma_create_qp(member->id, member->domain, &attributes) == 0
               ? 0
               : fail(failure, "rdma_create_qp", errno);
}

/* Prepares all requests, and posts those to receive. */
static int post_all(struct polycast_verbs_member *member, struct polycast_verbs_failure *failure) {
    member->places = calloc(member->receive_places, sizeof *member->places);
    if (member->places == NULL) {
        return fail(failure, "calloc", ENOMEM);
    }
    member->sends = calloc(member->send_places, sizeof *member->sends);
    if (member->sends == NULL) {
        return fail(failure, "calloc", ENOMEM);
    }
    for (uint32_t at = 0; at < member->send_places; at++) {
        struct send_place *place = &member->sends[at];
        uintptr_t memory =
            (uintptr_t)member->memory + (uintptr_t)(member->receive_places + at) * member->place_bytes;
        place->memory = (struct ibv_sge){memory, 0, member->registered->lkey};
        place->request = (struct ibv_send_wr){.sg_list = &place->memory, .num_sge = 1, .opcode = IBV_WR_SEND};
    }
    for (uint32_t at = 0; at < member->receive_places; at++) {
        struct place *place = &member->places[at];
        uintptr_t memory = (uintptr_t)member->memory + (uintptr_t)at * member->place_bytes;
        place->memory =
            (struct ibv_sge){memory, ROUTING_HEADER_BYTES + member->datagram_bytes, member->registered->lkey};
        place->request = (struct ibv_recv_wr){.wr_id = at, .sg_list = &place->memory, .num_sge = 1};
        int error = post_receives(member, &at, 1);
        if (error != 0) {
            return fail(failure, "ibv_post_recv", error);
        }
    }
    return 0;
}

static int start_joining(struct polycast_verbs_member *member) {
    member->is_lost = false;
    member->is_member = rdma_join_multicast(member->id, (struct sockaddr *)&member->group, NULL) == 0;
    return member->is_member ? 0 : -errno;
}

/* What the group is reached by; the one before, after a membership was lost. */
static int take_group(struct polycast_verbs_member *member, struct rdma_ud_param *group) {
    struct ibv_ah *destination = ibv_create_ah(member->domain, &group->ah_attr);
    if (destination == NULL) {
        return -errno;
    }
    if (member->destination != NULL) {
        ibv_destroy_ah(member->destination);
    }
    member->destination = destination;
    member->group_queue_pair = group->qp_num;
    member->group_key = group->qkey;
    member->counts.joined++;
    return 0;
}

/* Takes all events that are there; -EAGAIN while the group is being joined. */
static int take_events(struct polycast_verbs_member *member) {
    int outcome = member->destination == NULL ? -EAGAIN : 0;
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(member->events, &event) == 0) {
        switch (event->event) {
        case RDMA_CM_EVENT_MULTICAST_JOIN:
            outcome = take_group(member, &event->param.ud);
            break;
        case RDMA_CM_EVENT_MULTICAST_ERROR:
            member->counts.lost++;
            member->is_lost = true;
            outcome = event->status < 0 ? event->status : -EIO;
            break;
        case RDMA_CM_EVENT_ADDR_CHANGE:
            member->counts.lost++;
            member->is_lost = true;
            break;
        case RDMA_CM_EVENT_DEVICE_REMOVAL:
            member->counts.lost++;
            member->is_broken = true;
            outcome = -ENODEV;
            break;
        default:
            break;
        }
        rdma_ack_cm_event(event);
    }
    return outcome;
}

int look_at_events(struct polycast_verbs_member *member) {
    int outcome = take_events(member);
    struct ibv_port_attr port;
    if (member->is_broken || !member->is_lost) {
        return outcome;
    }
    /* As long as the port is down nobody can be asked to be let in. */
    if (ibv_query_port(member->id->verbs, member->id->port_num, &port) != 0 ||
        port.state != IBV_PORT_ACTIVE) {
        member->counts.port_down++;
        return -ENETDOWN;
    }
    if (member->is_member) {
        member->is_member = false;
        rdma_leave_multicast(member->id, (struct sockaddr *)&member->group);
    }
    outcome = start_joining(member);
    /* Tried again at the next look. */
    member->is_lost = outcome != 0;
    return outcome;
}

static int wait_until_joined(struct polycast_verbs_member *member, struct polycast_verbs_failure *failure) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        int outcome = take_events(member);
        if (outcome != -EAGAIN) {
            return outcome == 0 ? 0 : fail(failure, "joining the group", -outcome);
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t waited = (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000;
        if (waited >= JOIN_MILLISECONDS) {
            return fail(failure, "joining the group", ETIMEDOUT);
        }
        struct pollfd channel = {.fd = member->events->fd, .events = POLLIN};
        (void)poll(&channel, 1, (int)(JOIN_MILLISECONDS - waited));
    }
}

static void leave(struct polycast_verbs_member *member) {
    /* Events that nobody has taken would keep librdmacm waiting. */
    if (member->id != NULL && member->events != NULL) {
        (void)take_events(member);
    }
    if (member->is_member) {
        rdma_leave_multicast(member->id, (struct sockaddr *)&member->group);
    }
    if (member->id != NULL && member->id->qp != NULL) {
        rdma_destroy_qp(member->id);
    }
    if (member->destination != NULL) {
        ibv_destroy_ah(member->destination);
    }
    if (member->sent != NULL) {
        ibv_destroy_cq(member->sent);
    }
    if (member->received != NULL) {
        ibv_destroy_cq(member->received);
    }
    if (member->channel != NULL) {
        ibv_destroy_comp_channel(member->channel);
    }
    if (member->registered != NULL) {
        ibv_dereg_mr(member->registered);
    }
    if (member->domain != NULL) {
        ibv_dealloc_pd(member->domain);
    }
    if (member->id != NULL) {
        rdma_destroy_id(member->id);
    }
    if (member->events != NULL) {
        rdma_destroy_event_channel(member->events);
    }
    if (member->memory != NULL) {
        munmap(member->memory, member->memory_bytes);
    }
    free(member->places);
    free(member->sends);
    free(member);
}

static int open_member(struct polycast_verbs_member *member, const struct sockaddr *address,
                       size_t room_bytes, struct polycast_verbs_failure *failure) {
    struct polycast_verbs_port port;
    struct ibv_device_attr device;
    int error = bind_to(address, &member->events, &member->id, failure);
    if (error != 0 || (error = describe(member->id, &port, failure)) != 0) {
        return error;
    }
    if (!port.is_active) {
        return fail(failure, "the port is not active", ENETDOWN);
    }
    if ((error = ibv_query_device(member->id->verbs, &device)) != 0) {
        return fail(failure, "ibv_query_device", error);
    }
    struct ibv_port_attr attributes;
    if (ibv_query_port(member->id->verbs, member->id->port_num, &attributes) == 0) {
        member->own_local_id = attributes.lid;
    }
    member->own_address = member->id->route.addr.addr.ibaddr.sgid;
    member->datagram_bytes = port.datagram_bytes;
    /* Whole lines of the cache. */
    member->place_bytes = (ROUTING_HEADER_BYTES + port.datagram_bytes + 63) / 64 * 64;
    size_t most = (size_t)(device.max_qp_wr < device.max_cqe ? device.max_qp_wr : device.max_cqe);
    size_t places = room_bytes / port.datagram_bytes;
    places = places < LEAST_RECEIVE_PLACES ? LEAST_RECEIVE_PLACES : places;
    member->receive_places = (uint32_t)(places < most ? places : most);
    member->send_places = SEND_PLACES < most ? SEND_PLACES : (uint32_t)most;
    member->free_sends = member->send_places;
    member->domain = ibv_alloc_pd(member->id->verbs);
    if (member->domain == NULL) {
        return fail(failure, "ibv_alloc_pd", errno);
    }
    if ((error = register_memory(member, failure)) != 0 || (error = make_queues(member, failure)) != 0 ||
        (error = post_all(member, failure)) != 0) {
        return error;
    }
    return start_joining(member) == 0 ? wait_until_joined(member, failure)
                                      : fail(failure, "rdma_join_multicast", errno);
}

static struct polycast_verbs_member *join(const struct sockaddr *address, const struct sockaddr *group,
                                          size_t room_bytes, struct polycast_verbs_failure *failure) {
    struct polycast_verbs_member *member = calloc(1, sizeof *member);
    if (member == NULL) {
        fail(failure, "calloc", ENOMEM);
        return NULL;
    }
    memcpy(&member->group, group, length_of(group));
    if (open_member(member, address, room_bytes, failure) != 0) {
        leave(member);
        return NULL;
    }
    return member;
}

static int descriptor(const struct polycast_verbs_member *member) {
    return member->channel->fd;
}

static size_t room_bytes(const struct polycast_verbs_member *member) {
    return (size_t)member->receive_places * member->datagram_bytes;
}

static size_t datagram_bytes(const struct polycast_verbs_member *member) {
    return member->datagram_bytes;
}

static size_t queued_bytes(struct polycast_verbs_member *member) {
    reap_sends(member);
    return (size_t)(member->send_places - member->free_sends) * member->datagram_bytes;
}

static void count(struct polycast_verbs_member *member, struct polycast_verbs_counts *counts) {
    /* What nobody has looked at yet. */
    (void)take_events(member);
    *counts = member->counts;
}

EXPORT const struct polycast_verbs polycast_verbs = {
    .version = POLYCAST_VERBS_VERSION,
    .port = find_port,
    .join = join,
    .leave = leave,
    .send = send_datagrams,
    .receive = receive_datagrams,
    .arm = arm,
    .renew = look_at_events,
    .descriptor = descriptor,
    .room_bytes = room_bytes,
    .datagram_bytes = datagram_bytes,
    .queued_bytes = queued_bytes,
    .count = count,
};
