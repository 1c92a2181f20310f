/* completion.c: queues of completions, and the channel that tells of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulated.h"

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *of, int entries, void *context,
                                    struct ibv_comp_channel *channel, int vector) {
    if (entries < 1 || entries > 65536 || vector != 0) {
        errno = EINVAL;
        return NULL;
    }
    struct emulated_cq *cq = calloc(1, sizeof *cq);
    cq->cq = (struct ibv_cq){.context = of, .channel = channel, .cq_context = context, .cqe = entries};
    cq->entries = calloc((size_t)entries, sizeof *cq->entries);
    struct emulated_channel *told = (struct emulated_channel *)channel;
    if (told->queues[0] != NULL && told->queues[1] != NULL) {
        REFUSE("more than two queues on a channel");
    }
    told->queues[told->queues[0] != NULL] = cq;
    channel->refcnt++;
    emulated_counts.queues++;
    return &cq->cq;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *of) {
    struct emulated_cq *cq = (struct emulated_cq *)of;
    if (cq->qp != NULL) {
        return EBUSY;
    }
    if (cq->unacknowledged != 0) {
        REFUSE("ibv_destroy_cq waits for ever: %u events are not acknowledged", cq->unacknowledged);
    }
    struct emulated_channel *told = (struct emulated_channel *)cq->cq.channel;
    told->queues[told->queues[1] == cq] = NULL;
    cq->cq.channel->refcnt--;
    emulated_counts.queues--;
    free(cq->entries);
    free(cq);
    return 0;
}

void emulated_complete(struct emulated_cq *cq, const struct ibv_wc *completion) {
    if (cq->count == (uint32_t)cq->cq.cqe) {
        REFUSE("a queue of %d completions overflows", cq->cq.cqe);
    }
    cq->entries[(cq->first + cq->count++) % (uint32_t)cq->cq.cqe] = *completion;
    if (cq->is_armed) {
        cq->is_armed = false;
        cq->has_event = true;
        uint64_t one = 1;
        (void)!write(((struct emulated_channel *)cq->cq.channel)->event, &one, sizeof one);
        emulated_watch(cq->qp);
    }
}

/* Lets what the wire has brought, or taken, become completions. */
void emulated_look(struct emulated_cq *cq) {
    if (cq->qp != NULL && cq->qp->socket != -1) {
        if (cq->qp->qp.recv_cq == &cq->cq) {
            emulated_receive(cq->qp);
        }
        if (cq->qp->qp.send_cq == &cq->cq) {
            emulated_flush(cq->qp);
        }
    }
}

int emulated_poll_cq(struct ibv_cq *of, int most, struct ibv_wc *completions) {
    struct emulated_cq *cq = (struct emulated_cq *)of;
    emulated_look(cq);
    int count = 0;
    while (count < most && cq->count > 0) {
        completions[count] = cq->entries[cq->first];
        cq->first = (cq->first + 1) % (uint32_t)cq->cq.cqe;
        cq->count--;
        struct ibv_wc *completion = &completions[count++];
        if (completion->opcode == IBV_WC_SEND && cq->qp != NULL) {
            /* Places in the queue of sends are free when a completion with them, or after them, has been polled. */
            cq->qp->sends_posted -= completion->vendor_err;
            completion->vendor_err = 0;
        }
        if (completion->status != IBV_WC_SUCCESS) {
            /* Only these fields are valid then. */
            *completion = (struct ibv_wc){.wr_id = completion->wr_id,
                                          .status = completion->status,
                                          .qp_num = completion->qp_num,
                                          .opcode = (enum ibv_wc_opcode)0x7777,
                                          .byte_len = 0x77777777};
        }
    }
    return count;
}

/* The next completion makes an event; what is in the queue already makes none. */
int emulated_req_notify_cq(struct ibv_cq *of, int solicited_only) {
    struct emulated_cq *cq = (struct emulated_cq *)of;
    if (solicited_only != 0) {
        REFUSE("datagrams here are not sent as solicited");
    }
    emulated_look(cq);
    cq->is_armed = true;
    emulated_watch(cq->qp);
    return 0;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *of, struct ibv_cq **queue, void **context) {
    struct emulated_channel *channel = (struct emulated_channel *)of;
    if ((fcntl(of->fd, F_GETFL) & O_NONBLOCK) == 0) {
        REFUSE("ibv_get_cq_event would wait");
    }
    struct emulated_cq *found = NULL;
    int events = 0;
    for (int at = 0; at < 2; at++) {
        struct emulated_cq *cq = channel->queues[at];
        if (cq != NULL) {
            emulated_look(cq);
            found = found == NULL && cq->has_event ? cq : found;
            events += cq->has_event;
        }
    }
    if (found == NULL) {
        errno = EAGAIN;
        return -1;
    }
    found->has_event = false;
    found->unacknowledged++;
    if (events == 1) {
        uint64_t number;
        (void)!read(channel->event, &number, sizeof number);
    }
    *queue = &found->cq;
    *context = found->cq.cq_context;
    return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *of, unsigned int count) {
    struct emulated_cq *cq = (struct emulated_cq *)of;
    if (count > cq->unacknowledged) {
        REFUSE("more events are acknowledged than have been taken");
    }
    cq->unacknowledged -= count;
}
