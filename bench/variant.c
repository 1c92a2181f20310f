#define _GNU_SOURCE
#include "variant.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int (*configure_function)(const char *name, const char *value);
typedef int (*choice_function)(const char *collective, MPI_Comm communicator, int64_t bytes, char *text,
                               int size);

/* The program does not link polycast: like every program, it meets it when it was preloaded. */
static configure_function find_configure(void) {
    configure_function configure;
    *(void **)&configure = dlsym(RTLD_DEFAULT, "polycast_configure");
    return configure;
}

/* 0 when `variant` can be had by this rank, 1 when polycast is not there, 2 when it does not serve this
 * program. */
static int configure_variant(const char *variant, enum collective collective) {
    configure_function configure = find_configure();
    /* Where polycast does not serve, everything is stock. */
    const bool is_stock = strcmp(variant, "stock") == 0;
    if (!configure)
        return is_stock ? 0 : 1;
    const char *value = strcmp(variant, "polycast") == 0 ? "" : variant;
    return configure(collective_variable(collective), value) == 0 || is_stock ? 0 : 2;
}

/* On one node the built-in table serves what it does not leave to the MPI from this call on; shorter blocks than these may not be counted. */
enum { CALLS_UNTIL_LAST_RULE = 257, COUNTED_BYTES = 2048 };

static bool are_on_one_node(MPI_Comm communicator) {
    MPI_Comm here;
    int all, near;
    MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_size(communicator, &all);
    MPI_Comm_size(here, &near);
    MPI_Comm_free(&here);
    return near == all;
}

/* Settings are fixed at a communicator's first call: makes so many now, before the next variant changes them. */
static bool make_first_calls(int calls, int block_bytes, enum collective collective, MPI_Comm communicator) {
    struct call call;
    struct payload payload;
    int rank, ranks;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &ranks);
    if (!call_open(&call, collective, block_bytes * ranks, rank, ranks))
        return false;
    const bool has_room = payload_open(&payload, call_room(&call), false);
    if (has_room) {
        payload_prepare(&payload, &call, 0);
        for (int i = 0; i < calls; i++)
            call_run(&call, payload.send, payload.receive, communicator);
        payload_close(&payload);
    }
    call_close(&call);
    return has_room;
}

/* A communicator of these ranks whose calls of the collective `name` serves. */
static bool open_communicator(const char *name, enum collective collective, MPI_Comm ranks,
                              MPI_Comm *communicator, char *error, int error_size) {
    int problem = configure_variant(name, collective), worst = 0;
    MPI_Allreduce(&problem, &worst, 1, MPI_INT, MPI_MAX, ranks);
    if (worst == 1)
        snprintf(
            error, (size_t)error_size,
            "variant %s needs libpolycast-mpi.so preloaded into every rank, and it is not; only stock can be "
            "measured without it",
            name);
    else if (worst == 2)
        snprintf(error, (size_t)error_size,
                 "variant %s: polycast is preloaded, but does not serve this program; its own warning, if "
                 "there is one, says why",
                 name);
    if (worst != 0)
        return false;
    MPI_Comm_dup(ranks, communicator);
    const bool are_counted = strcmp(name, "polycast") == 0 && are_on_one_node(ranks);
    if (!make_first_calls(are_counted ? CALLS_UNTIL_LAST_RULE : 1, are_counted ? COUNTED_BYTES : 1,
                          collective, *communicator))
        MPI_Abort(*communicator, 1);
    return true;
}

bool variant_is_reliable(const char *name) {
    return strcmp(name, "blast") != 0;
}

bool variant_open(struct variant *variant, const char *name, const struct plan *plan, MPI_Comm ranks,
                  char *error, int error_size) {
    *variant = (struct variant){.is_blast = !variant_is_reliable(name)};
    if (variant->is_blast)
        return blast_open(&variant->blast, plan->interface, ranks, error, error_size);
    return open_communicator(name, plan->collective, ranks, &variant->communicator, error, error_size);
}

void variant_close(struct variant *variant) {
    if (variant->is_blast)
        blast_close(&variant->blast);
    else
        MPI_Comm_free(&variant->communicator);
}

void variant_settle(struct variant *variant) {
    if (variant->is_blast)
        blast_drain(&variant->blast);
}

bool variant_run(struct variant *variant, const struct call *call, struct payload *payload,
                 int64_t silence_ns) {
    if (variant->is_blast)
        return blast_run(&variant->blast, payload->receive, call->bytes, call->root, silence_ns);
    call_run(call, payload->send, payload->receive, variant->communicator);
    return true;
}

/* As polycast_choice_of; -1 where nobody tells. */
static int ask_choice(const struct variant *variant, const struct call *call, char *text, int size) {
    choice_function choice;
    *(void **)&choice = dlsym(RTLD_DEFAULT, "polycast_choice_of");
    const bool can_tell = choice && !variant->is_blast;
    const char *name = collective_name(call->collective);
    return can_tell ? choice(name, variant->communicator, call_block(call), text, size) : -1;
}

bool variant_choice(const struct variant *variant, const struct call *call, char *text, int size) {
    return ask_choice(variant, call, text, size) >= 0;
}

bool variant_is_compared(const struct variant *variant, const struct call *call) {
    char text[1];
    return ask_choice(variant, call, text, sizeof text) == 1;
}
