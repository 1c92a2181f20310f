/*
 * layout.c: whether the headers are those that the stand-ins were written to. The calls that post and poll are functions in the
 * headers that go through a table at a fixed place, so programs that were built with one release run with another: these places
 * are the same in all releases of libibverbs.so.1 and librdmacm.so.1, on 64 bits.
 */
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdio.h>

#define AT(type, field, place)                                                                               \
    _Static_assert(offsetof(struct type, field) == (place), #type "." #field " has another place")
#define IS(what, value) _Static_assert((what) == (value), #what " has another value")

AT(ibv_context, device, 0);
AT(ibv_context, ops, 8);
AT(ibv_context, cmd_fd, 264);
AT(ibv_context, async_fd, 268);
AT(ibv_context, abi_compat, 320);
AT(ibv_context_ops, poll_cq, 88);
AT(ibv_context_ops, req_notify_cq, 96);
AT(ibv_context_ops, post_send, 200);
AT(ibv_context_ops, post_recv, 208);
IS(sizeof(struct ibv_context_ops), 256);

AT(ibv_pd, context, 0);
AT(ibv_mr, lkey, 36);
AT(ibv_comp_channel, fd, 8);
AT(ibv_cq, channel, 8);
AT(ibv_cq, cqe, 28);
AT(ibv_qp, qp_num, 52);
AT(ibv_qp, state, 56);
IS(sizeof(struct ibv_sge), 16);
IS(sizeof(struct ibv_wc), 48);
AT(ibv_wc, status, 8);
AT(ibv_wc, byte_len, 20);
AT(ibv_wc, src_qp, 32);
AT(ibv_wc, wc_flags, 36);
AT(ibv_wc, slid, 42);
IS(sizeof(struct ibv_recv_wr), 32);
IS(sizeof(struct ibv_send_wr), 128);
AT(ibv_send_wr, send_flags, 32);
AT(ibv_send_wr, wr, 40);
IS(sizeof(struct ibv_ah_attr), 32);
IS(sizeof(struct ibv_qp_init_attr), 64);
AT(ibv_port_attr, active_mtu, 8);
AT(ibv_port_attr, link_layer, 46);

AT(rdma_cm_id, verbs, 0);
AT(rdma_cm_id, qp, 24);
AT(rdma_cm_id, route, 32);
AT(rdma_cm_event, event, 16);
AT(rdma_cm_event, status, 20);
AT(rdma_cm_event, param, 24);
AT(rdma_ud_param, ah_attr, 16);
AT(rdma_ud_param, qp_num, 48);
AT(rdma_ud_param, qkey, 52);

IS(IBV_MTU_4096, 5);
IS(IBV_PORT_ACTIVE, 4);
IS(IBV_LINK_LAYER_ETHERNET, 2);
IS(IBV_QPT_UD, 4);
IS(IBV_WR_SEND, 2);
IS(IBV_SEND_SIGNALED, 2);
IS(IBV_WC_WR_FLUSH_ERR, 5);
IS(IBV_WC_GRH, 1);
IS(RDMA_PS_UDP, 0x0111);
IS(RDMA_CM_EVENT_DEVICE_REMOVAL, 11);
IS(RDMA_CM_EVENT_MULTICAST_JOIN, 12);
IS(RDMA_CM_EVENT_MULTICAST_ERROR, 13);
IS(RDMA_CM_EVENT_ADDR_CHANGE, 14);

int main(void) {
    puts("layout: all is as it should be");
}
