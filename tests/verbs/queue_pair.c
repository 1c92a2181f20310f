/* queue_pair.c: queue pairs, their states, and what is posted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulated.h"

static uint32_t next_number = 0x100;

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *attributes) {
    if (attributes->qp_type != IBV_QPT_UD || attributes->send_cq == NULL || attributes->recv_cq == NULL ||
        attributes->cap.max_send_wr > 16384 || attributes->cap.max_recv_wr > 16384) {
        errno = EINVAL;
        return NULL;
    }
    struct emulated_qp *pair = calloc(1, sizeof *pair);
    pair->qp = (struct ibv_qp){
        .context = domain->context,
        .pd = domain,
        .send_cq = attributes->send_cq,
        .recv_cq = attributes->recv_cq,
        /* The same on many hosts, as on real ones. */
        .qp_num = next_number++,
        .state = IBV_QPS_RESET,
        .qp_type = IBV_QPT_UD,
    };
    pair->cap = attributes->cap;
    pair->socket = -1;
    pair->receives = calloc(pair->cap.max_recv_wr, sizeof *pair->receives);
    pair->receive_memory = calloc(pair->cap.max_recv_wr, sizeof *pair->receive_memory);
    pair->sends = calloc(pair->cap.max_send_wr, sizeof *pair->sends);
    pair->bytes = calloc(pair->cap.max_send_wr, WIRE_HEADER_BYTES + emulated_settings()->mtu);
    ((struct emulated_cq *)pair->qp.send_cq)->qp = pair;
    ((struct emulated_cq *)pair->qp.recv_cq)->qp = pair;
    emulated_counts.pairs++;
    return &pair->qp;
}

EXPORT int ibv_modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attributes, int mask) {
    struct emulated_qp *pair = (struct emulated_qp *)of;
    static const struct {
        enum ibv_qp_state from, to;
        int mask;
    } steps[] = {
        {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
        {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE},
        {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN},
    };
    for (size_t at = 0; at < sizeof steps / sizeof *steps; at++) {
        if (steps[at].from == of->state && steps[at].to == attributes->qp_state && steps[at].mask == mask) {
            of->state = attributes->qp_state;
            if (of->state == IBV_QPS_INIT) {
                pair->key = attributes->qkey;
                pair->partition = (uint16_t)emulated_settings()->partition;
            }
            return 0;
        }
    }
    return EINVAL;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *of) {
    struct emulated_qp *pair = (struct emulated_qp *)of;
    if (pair->is_member) {
        return EBUSY;
    }
    emulated_detach(pair);
    ((struct emulated_cq *)of->send_cq)->qp = NULL;
    ((struct emulated_cq *)of->recv_cq)->qp = NULL;
    emulated_counts.pairs--;
    free(pair->receives);
    free(pair->receive_memory);
    free(pair->sends);
    free(pair->bytes);
    free(pair);
    return 0;
}

static bool is_registered(const struct ibv_sge *memory, const struct ibv_pd *domain) {
    const struct ibv_mr *registered = emulated_registered(memory->lkey);
    return registered != NULL && registered->pd == domain && memory->addr >= (uintptr_t)registered->addr &&
           memory->addr + memory->length <= (uintptr_t)registered->addr + registered->length;
}

/* The error state: all that was posted is flushed, signaled or not. */
void emulated_fail(struct emulated_qp *pair) {
    struct ibv_wc flushed = {.status = IBV_WC_WR_FLUSH_ERR, .qp_num = pair->qp.qp_num};
    pair->qp.state = IBV_QPS_ERR;
    while (pair->receives_posted > 0) {
        flushed.wr_id = pair->receives[pair->first_receive].wr_id;
        flushed.opcode = IBV_WC_RECV;
        pair->first_receive = (pair->first_receive + 1) % pair->cap.max_recv_wr;
        pair->receives_posted--;
        emulated_complete((struct emulated_cq *)pair->qp.recv_cq, &flushed);
    }
    while (pair->sends_waiting > 0) {
        flushed.wr_id = pair->sends[pair->first_send].id;
        flushed.opcode = IBV_WC_SEND;
        flushed.vendor_err = 1;
        pair->first_send = (pair->first_send + 1) % pair->cap.max_send_wr;
        pair->sends_waiting--;
        emulated_complete((struct emulated_cq *)pair->qp.send_cq, &flushed);
    }
}

int emulated_post_recv(struct ibv_qp *of, struct ibv_recv_wr *request, struct ibv_recv_wr **refused) {
    struct emulated_qp *pair = (struct emulated_qp *)of;
    /* What has come before cannot go into what is posted now. */
    if (pair->socket != -1 && !emulated_settings()->is_null) {
        emulated_receive(pair);
    }
    for (; request != NULL; request = request->next) {
        *refused = request;
        if (of->state == IBV_QPS_RESET || of->state == IBV_QPS_ERR || request->num_sge != 1) {
            return EINVAL;
        }
        if (pair->receives_posted == pair->cap.max_recv_wr) {
            return ENOMEM;
        }
        if (!is_registered(request->sg_list, of->pd)) {
            REFUSE("a receive is posted into memory that is not registered");
        }
        uint32_t at = (pair->first_receive + pair->receives_posted++) % pair->cap.max_recv_wr;
        pair->receives[at] = *request;
        pair->receive_memory[at] = request->sg_list[0];
    }
    return 0;
}

int emulated_post_send(struct ibv_qp *of, struct ibv_send_wr *request, struct ibv_send_wr **refused) {
    struct emulated_qp *pair = (struct emulated_qp *)of;
    const struct settings *settings = emulated_settings();
    for (; request != NULL; request = request->next) {
        *refused = request;
        if (of->state != IBV_QPS_RTS || request->opcode != IBV_WR_SEND || request->num_sge != 1 ||
            request->wr.ud.ah == NULL || request->wr.ud.ah->pd != of->pd ||
            request->wr.ud.remote_qpn != GROUP_QUEUE_PAIR) {
            return EINVAL;
        }
        if (pair->sends_posted == pair->cap.max_send_wr) {
            return ENOMEM;
        }
        const struct ibv_sge *memory = request->sg_list;
        struct emulated_send send = {.id = request->wr_id,
                                     .length = memory->length,
                                     .status = IBV_WC_SUCCESS,
                                     .is_signaled = (request->send_flags & IBV_SEND_SIGNALED) != 0};
        pair->sent++;
        if (settings->is_null) {
            pair->sends_posted++;
            pair->unsignaled++;
            if (send.is_signaled) {
                struct ibv_wc completion = {
                    .wr_id = send.id, .opcode = IBV_WC_SEND, .vendor_err = pair->unsignaled};
                pair->unsignaled = 0;
                emulated_complete((struct emulated_cq *)of->send_cq, &completion);
            }
            continue;
        }
        if (!is_registered(memory, of->pd)) {
            send.status = IBV_WC_LOC_PROT_ERR;
        } else if (memory->length > settings->mtu) {
            send.status = IBV_WC_LOC_LEN_ERR;
        } else if (pair->sent == settings->sendfail) {
            send.status = IBV_WC_GENERAL_ERR;
        }
        uint32_t at = (pair->first_send + pair->sends_waiting++) % pair->cap.max_send_wr;
        pair->sends_posted++;
        pair->sends[at] = send;
        if (send.status == IBV_WC_SUCCESS) {
            unsigned char *place = pair->bytes + (size_t)at * (WIRE_HEADER_BYTES + settings->mtu);
            emulated_write_header(pair, place, request->wr.ud.remote_qkey);
            memcpy(place + WIRE_HEADER_BYTES, (const void *)(uintptr_t)memory->addr, memory->length);
        }
    }
    *refused = NULL;
    emulated_flush(pair);
    return 0;
}
