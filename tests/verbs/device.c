/* device.c: one device with one port, what it can do, and what is made from it. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "emulated.h"

struct emulated_counts emulated_counts;

static struct settings settings;
static bool is_read;
static int looks_down;

static void read_word(char *word, bool *is_here) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    char *value = strchr(word, '=');
    if (value != NULL) {
        *value++ = 0;
    }
    if (strcmp(word, "on") == 0) {
        *is_here = strcmp(value, host) == 0;
    } else if (strcmp(word, "absent") == 0) {
        for (char *name = strtok_r(value, ":", &value); name != NULL; name = strtok_r(NULL, ":", &value)) {
            settings.is_absent |= strcmp(name, host) == 0;
        }
    } else if (!*is_here) {
        return;
    } else if (strcmp(word, "ib") == 0 || strcmp(word, "roce") == 0) {
        settings.is_infiniband = word[0] == 'i';
    } else if (strcmp(word, "null") == 0) {
        settings.is_null = true;
    } else if (strcmp(word, "nojoin") == 0) {
        settings.is_not_joined = true;
    } else if (value == NULL) {
        REFUSE("VERBS_EMULATION: no word that is known: %s", word);
    } else {
        uint64_t number = strtoull(value, NULL, 0);
        if (strcmp(word, "mtu") == 0) {
            settings.mtu = (uint32_t)number;
        } else if (strcmp(word, "partition") == 0) {
            settings.partition = (uint32_t)number;
        } else if (strcmp(word, "lose") == 0) {
            settings.lose = (uint32_t)number;
        } else if (strcmp(word, "memlock") == 0) {
            settings.memlock = number;
        } else if (strcmp(word, "down") == 0) {
            settings.down = number;
        } else if (strcmp(word, "unjoin") == 0) {
            settings.unjoin = number;
        } else if (strcmp(word, "sendfail") == 0) {
            settings.sendfail = number;
        } else {
            REFUSE("VERBS_EMULATION: no word that is known: %s", word);
        }
    }
}

const struct settings *emulated_settings(void) {
    if (!is_read) {
        is_read = true;
        settings = (struct settings){.mtu = 1024, .partition = 0xffff, .memlock = UINT64_MAX};
        const char *words = getenv("VERBS_EMULATION");
        char copy[512];
        snprintf(copy, sizeof copy, "%s", words == NULL ? "" : words);
        bool is_here = true;
        char *rest = NULL;
        for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
            read_word(word, &is_here);
        }
    }
    return &settings;
}

/* For programs that try one thing after the other. */
EXPORT void emulated_set(const char *words);
void emulated_set(const char *words) {
    setenv("VERBS_EMULATION", words, 1);
    is_read = false;
    looks_down = 0;
}

EXPORT void emulated_port_down(void);
void emulated_port_down(void) {
    looks_down = 3;
}

bool emulated_port_is_active(bool is_looked_at) {
    bool is_active = looks_down == 0;
    looks_down -= is_looked_at && looks_down > 0;
    return is_active;
}

static struct ibv_device device = {
    .node_type = IBV_NODE_CA,
    .transport_type = IBV_TRANSPORT_IB,
    .name = "emulated_0",
};

static struct ibv_context context = {
    .device = &device,
    .ops = {.poll_cq = emulated_poll_cq,
            .req_notify_cq = emulated_req_notify_cq,
            .post_send = emulated_post_send,
            .post_recv = emulated_post_recv},
    .cmd_fd = -1,
    .async_fd = -1,
    .num_comp_vectors = 1,
};

struct ibv_context *emulated_device(void) {
    return emulated_settings()->is_absent ? NULL : &context;
}

EXPORT const char *ibv_get_device_name(struct ibv_device *of) {
    return of->name;
}

EXPORT int ibv_query_device(struct ibv_context *of, struct ibv_device_attr *attributes) {
    (void)of;
    *attributes = (struct ibv_device_attr){.max_qp = 64, .max_qp_wr = 16384, .max_sge = 4, .max_cqe = 65536};
    return 0;
}

#undef ibv_query_port
EXPORT int ibv_query_port(struct ibv_context *of, uint8_t port, struct _compat_ibv_port_attr *place) {
    (void)of;
    if (port != 1) {
        return EINVAL;
    }
    enum ibv_mtu mtu = IBV_MTU_256;
    while (mtu < IBV_MTU_4096 && 128U << (mtu + 1) <= emulated_settings()->mtu) {
        mtu++;
    }
    struct ibv_port_attr attributes = {
        .state = emulated_port_is_active(true) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = mtu,
        .max_msg_sz = 1U << 30,
        .pkey_tbl_len = 1,
        .lid = emulated_settings()->is_infiniband ? 7 : 0,
        .active_width = 1,
        .active_speed = 4,
        .link_layer =
            emulated_settings()->is_infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET,
    };
    /* The older structure ends before this. */
    memcpy((void *)place, &attributes, offsetof(struct ibv_port_attr, port_cap_flags2));
    return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *of, uint8_t port, int index, __be16 *key) {
    (void)of;
    if (port != 1 || index != 0) {
        return -1;
    }
    *key = htons((uint16_t)emulated_settings()->partition);
    return 0;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *of) {
    struct ibv_pd *domain = calloc(1, sizeof *domain);
    domain->context = of;
    emulated_counts.domains++;
    return domain;
}

static int users_of(const struct ibv_pd *domain);

EXPORT int ibv_dealloc_pd(struct ibv_pd *domain) {
    if (users_of(domain) != 0) {
        return EBUSY;
    }
    emulated_counts.domains--;
    free(domain);
    return 0;
}

/* Registered memory: a key names a place of the table. */
#define MAX_REGISTERED 64
static struct ibv_mr *registered[MAX_REGISTERED];
static uint64_t registered_bytes;

static int users_of(const struct ibv_pd *domain) {
    int count = 0;
    for (int at = 0; at < MAX_REGISTERED; at++) {
        count += registered[at] != NULL && registered[at]->pd == domain;
    }
    return count;
}

const struct ibv_mr *emulated_registered(uint32_t key) {
    return key >= 0x1000 && key < 0x1000 + MAX_REGISTERED ? registered[key - 0x1000] : NULL;
}

#undef ibv_reg_mr
EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *domain, void *address, size_t length, int access) {
    int at = 0;
    while (at < MAX_REGISTERED && registered[at] != NULL) {
        at++;
    }
    if (at == MAX_REGISTERED || registered_bytes + length > emulated_settings()->memlock) {
        errno = ENOMEM;
        return NULL;
    }
    if ((access & IBV_ACCESS_LOCAL_WRITE) == 0) {
        REFUSE("memory to receive into is registered without IBV_ACCESS_LOCAL_WRITE");
    }
    struct ibv_mr *memory = calloc(1, sizeof *memory);
    *memory = (struct ibv_mr){.context = domain->context,
                              .pd = domain,
                              .addr = address,
                              .length = length,
                              .lkey = 0x1000 + (uint32_t)at};
    registered[at] = memory;
    registered_bytes += length;
    emulated_counts.registered++;
    return memory;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *memory) {
    registered[memory->lkey - 0x1000] = NULL;
    registered_bytes -= memory->length;
    emulated_counts.registered--;
    free(memory);
    return 0;
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *domain, struct ibv_ah_attr *attributes) {
    if (!attributes->is_global || attributes->grh.dgid.raw[0] != 0xff || attributes->port_num != 1) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_ah *handle = calloc(1, sizeof *handle);
    handle->context = domain->context;
    handle->pd = domain;
    emulated_counts.handles++;
    return handle;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *handle) {
    emulated_counts.handles--;
    free(handle);
    return 0;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *of) {
    struct emulated_channel *channel = calloc(1, sizeof *channel);
    channel->channel.context = of;
    channel->channel.fd = epoll_create1(EPOLL_CLOEXEC);
    channel->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event readable = {.events = EPOLLIN};
    epoll_ctl(channel->channel.fd, EPOLL_CTL_ADD, channel->event, &readable);
    emulated_counts.channels++;
    return &channel->channel;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *of) {
    struct emulated_channel *channel = (struct emulated_channel *)of;
    if (of->refcnt != 0) {
        return EBUSY;
    }
    emulated_counts.channels--;
    close(channel->event);
    close(of->fd);
    free(channel);
    return 0;
}
