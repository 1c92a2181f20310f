/* data.c: datagrams of a member; the invariants stand in member.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <time.h>

#include "member.h"

/* Hands these places to the device. */
int post_receives(struct polycast_verbs_member *member, const uint32_t *places, int count) {
    struct ibv_recv_wr *first = NULL;
    for (int at = count - 1; at >= 0; at--) {
        struct ibv_recv_wr *request = &member->places[places[at]].request;
        request->next = first;
        first = request;
    }
    struct ibv_recv_wr *refused = NULL;
    int error = first == NULL ? 0 : ibv_post_recv(member->id->qp, first, &refused);
    member->is_broken |= error != 0;
    return error;
}

/* Frees the places of sends that have ended. */
void reap_sends(struct polycast_verbs_member *member) {
    struct ibv_wc ended[BATCH];
    int count;
    do {
        count = ibv_poll_cq(member->sent, BATCH, ended);
        for (int at = 0; at < count; at++) {
            if (ended[at].status == IBV_WC_SUCCESS) {
                member->free_sends += (uint32_t)ended[at].wr_id;
            } else {
                /* An error stops the queue pair: nothing that was posted is sent any more. */
                member->counts.failed_sends++;
                member->is_broken = true;
            }
        }
    } while (count == BATCH);
    member->is_broken |= count < 0;
}

int64_t send_datagrams(struct polycast_verbs_member *member, const void *bytes, size_t length, size_t each) {
    if (each == 0 || (length < each ? length : each) > member->datagram_bytes) {
        return -EINVAL;
    }
    const unsigned char *from = bytes;
    size_t taken = 0;
    while (taken < length && !member->is_broken) {
        struct send_place *first = NULL, *last = NULL;
        uint32_t count = 0;
        size_t batch_bytes = 0;
        if (member->free_sends < BATCH) {
            reap_sends(member);
        }
        while (count < BATCH && count < member->free_sends && taken + batch_bytes < length) {
            size_t left = length - taken - batch_bytes;
            struct send_place *place = &member->sends[(member->next_send + count) % member->send_places];
            place->memory.length = (uint32_t)(left < each ? left : each);
            memcpy((void *)(uintptr_t)place->memory.addr, from + taken + batch_bytes, place->memory.length);
            place->request.send_flags = 0;
            place->request.wr.ud.ah = member->destination;
            place->request.wr.ud.remote_qpn = member->group_queue_pair;
            place->request.wr.ud.remote_qkey = member->group_key;
            if (last != NULL) {
                last->request.next = &place->request;
            }
            first = first == NULL ? place : first;
            last = place;
            batch_bytes += place->memory.length;
            count++;
        }
        if (count == 0) {
            break;
        }
        last->request.next = NULL;
        last->request.send_flags = IBV_SEND_SIGNALED;
        last->request.wr_id = count;
        struct ibv_send_wr *refused = NULL;
        if (ibv_post_send(member->id->qp, &first->request, &refused) != 0) {
            /* Who comes before the refused one is on its way and will never be told of, as only the last one asks. */
            member->counts.failed_sends++;
            member->is_broken = true;
            break;
        }
        member->next_send = (member->next_send + count) % member->send_places;
        member->free_sends -= count;
        taken += batch_bytes;
    }
    member->awaits_room = taken < length;
    if (taken > 0) {
        return (int64_t)taken;
    }
    return member->is_broken ? -EIO : -EAGAIN;
}

/* The device hands a group's datagrams to all members, their sender too. A queue pair's number is its own on one device only. */
static bool is_own(const struct polycast_verbs_member *member, const struct ibv_wc *completion,
                   const unsigned char *header) {
    if (completion->src_qp != member->id->qp->qp_num) {
        return false;
    }
    if ((completion->wc_flags & IBV_WC_GRH) == 0) {
        return completion->slid == member->own_local_id;
    }
    if (memcmp(header + 8, member->own_address.raw, 16) == 0) {
        return true;
    }
    /* RoCE over IPv4: 20 bytes of anything, then the header of IP; our address is ::ffff:a.b.c.d. */
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(member->own_address.raw, mapped, sizeof mapped) == 0 && header[20] >> 4 == 4 &&
           memcmp(header + 32, member->own_address.raw + 12, 4) == 0;
}

static int poll_received(struct polycast_verbs_member *member) {
    if (member->come_next == member->come_count) {
        int count = ibv_poll_cq(member->received, BATCH, member->come);
        member->come_next = 0;
        member->come_count = count > 0 ? count : 0;
        member->is_broken |= count < 0;
    }
    return member->come_count - member->come_next;
}

int receive_datagrams(struct polycast_verbs_member *member, struct polycast_verbs_datagram *datagrams,
                      int most) {
    int count = 0;
    most = most < BATCH ? most : BATCH;
    do {
        if (member->is_broken || post_receives(member, member->lent, member->lent_count) != 0) {
            return -EIO;
        }
        member->lent_count = 0;
        poll_received(member);
        while (member->come_next < member->come_count && member->lent_count < most) {
            const struct ibv_wc *completion = &member->come[member->come_next++];
            uint32_t place = (uint32_t)completion->wr_id;
            if (completion->status != IBV_WC_SUCCESS) {
                member->counts.failed_receives++;
                /* Flushed: the queue pair is in its error state, and the place would only be flushed again. */
                member->is_broken |= completion->status == IBV_WC_WR_FLUSH_ERR;
                member->lent[member->lent_count++] = place;
                continue;
            }
            const unsigned char *bytes = member->memory + (size_t)place * member->place_bytes;
            member->lent[member->lent_count++] = place;
            if (completion->byte_len < ROUTING_HEADER_BYTES) {
                member->counts.failed_receives++;
            } else if (is_own(member, completion, bytes)) {
                member->counts.own++;
            } else {
                datagrams[count].bytes = bytes + ROUTING_HEADER_BYTES;
                datagrams[count++].length = completion->byte_len - ROUTING_HEADER_BYTES;
            }
        }
    } while (count == 0 && member->lent_count > 0);
    return count;
}

/* Takes the events that have come, so that the descriptor tells of new ones only. */
static void take_events(struct polycast_verbs_member *member) {
    struct ibv_cq *of;
    void *context;
    while ((member->is_received_armed || member->is_sent_armed) &&
           ibv_get_cq_event(member->channel, &of, &context) == 0) {
        ibv_ack_cq_events(of, 1);
        if (of == member->received) {
            member->is_received_armed = false;
        } else {
            member->is_sent_armed = false;
        }
    }
}

/* What comes between a look and ibv_req_notify_cq makes no event: so the look comes last. */
int arm(struct polycast_verbs_member *member) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    int64_t tenths = now.tv_sec * 10 + now.tv_nsec / 100000000;
    if (tenths != member->looked_tenths) {
        member->looked_tenths = tenths;
        look_at_events(member);
    }
    take_events(member);
    if (!member->is_received_armed) {
        member->is_received_armed = ibv_req_notify_cq(member->received, 0) == 0;
    }
    if (member->awaits_room && !member->is_sent_armed) {
        member->is_sent_armed = ibv_req_notify_cq(member->sent, 0) == 0;
    }
    if (member->awaits_room) {
        reap_sends(member);
    }
    bool has_room = member->awaits_room && member->free_sends > 0;
    /* A broken one brings nothing: who waits for it waits for something else. */
    return !member->is_broken && (poll_received(member) > 0 || has_room);
}
