/*
 * Reductions: which are served, and how two contributions become one.
 *
 * All ranks call with the same datatype and operation, so all judge alike. Served are predefined datatypes without gaps, with the operations that
 * MPI allows for them or one of the program's. What MPI does not allow is for stock, which says so.
 */
#include "door.h"

/* More elements than this are combined in several calls, for a count is an int. */
#define MAX_AT_ONCE (1 << 30)

/* What MPI's operations are defined for. (MPI 4.1, 6.9.2) */
enum group {
    INTEGERS = 1,
    FLOATS = 2,
    COMPLEX = 4,
    LOGICALS = 8,
    BYTES = 16,
    PAIRS = 32,       /* of integers, or with a float of the same size: no gaps */
    FLOAT_PAIRS = 64, /* a float and an index, no gaps */
};

static int is_one_of(MPI_Datatype type, const MPI_Datatype *types, int count) {
    for (int i = 0; i < count; i++) {
        if (type == types[i]) {
            return 1;
        }
    }
    return 0;
}

#define IS_ONE_OF(type, ...)                                                                                 \
    is_one_of(type, (const MPI_Datatype[]){__VA_ARGS__},                                                     \
              (int)(sizeof(MPI_Datatype[]){__VA_ARGS__} / sizeof(MPI_Datatype)))

/* 0: none of them. The most frequent come first. */
static int group_of(MPI_Datatype type) {
    if (type == MPI_DOUBLE || type == MPI_FLOAT) {
        return FLOATS;
    }
    if (IS_ONE_OF(type, MPI_INT, MPI_LONG, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_LONG_LONG,
                  MPI_UNSIGNED_LONG_LONG, MPI_INT32_T, MPI_INT64_T, MPI_UINT32_T, MPI_UINT64_T, MPI_SHORT,
                  MPI_UNSIGNED_SHORT, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_INT8_T, MPI_UINT8_T,
                  MPI_INT16_T, MPI_UINT16_T, MPI_INTEGER, MPI_AINT, MPI_OFFSET, MPI_COUNT)) {
        return INTEGERS;
    }
    if (IS_ONE_OF(type, MPI_DOUBLE_PRECISION, MPI_REAL, MPI_LONG_DOUBLE)) {
        return FLOATS;
    }
    if (IS_ONE_OF(type, MPI_C_DOUBLE_COMPLEX, MPI_C_FLOAT_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX)) {
        return COMPLEX;
    }
    if (IS_ONE_OF(type, MPI_LOGICAL, MPI_C_BOOL)) {
        return LOGICALS;
    }
    if (IS_ONE_OF(type, MPI_2INT, MPI_2INTEGER)) {
        return PAIRS;
    }
    if (IS_ONE_OF(type, MPI_FLOAT_INT, MPI_2REAL, MPI_2DOUBLE_PRECISION)) {
        return FLOAT_PAIRS;
    }
    return type == MPI_BYTE ? BYTES : 0;
}

/* The groups of the datatypes that a predefined operation takes; -1: it is the program's. */
static int groups_for(MPI_Op op) {
    if (op == MPI_SUM || op == MPI_PROD) {
        return INTEGERS | FLOATS | COMPLEX;
    }
    if (op == MPI_MAX || op == MPI_MIN) {
        return INTEGERS | FLOATS;
    }
    if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) {
        return INTEGERS | LOGICALS;
    }
    if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) {
        return INTEGERS | BYTES;
    }
    if (op == MPI_MAXLOC || op == MPI_MINLOC) {
        return PAIRS | FLOAT_PAIRS;
    }
    return op == MPI_REPLACE || op == MPI_NO_OP ? 0 : -1;
}

static int combine(const polycast_reduction *known, const void *from, void *into, size_t bytes) {
    const struct reduction *reduction = (const struct reduction *)known;
    const char *left = from;
    char *right = into;
    int error = MPI_SUCCESS;
    for (size_t elements = bytes / known->element_bytes; !error && elements > 0;) {
        int now = elements < MAX_AT_ONCE ? (int)elements : MAX_AT_ONCE;
        error = PMPI_Reduce_local(left, right, now, reduction->type, reduction->op);
        left += (size_t)now * known->element_bytes;
        right += (size_t)now * known->element_bytes;
        elements -= (size_t)now;
    }
    return error;
}

/* A user's operation may look at elements of any predefined datatype; those with gaps between their bytes stay with stock. */
static int has_no_gaps(MPI_Datatype type) {
    struct element element;
    return door_is_named_type(type) && door_look_at_type(type, 2, &element) == MPI_SUCCESS &&
           element.is_contiguous && element.true_lower == 0;
}

/* See polycast_reduction. Sums and products of two numbers do not depend on which is the first; of equal ones, as zeros with signs are, a maximum
 * may, and complex products do where compilers fuse their steps. */
static uint32_t is_exact(MPI_Op op, int group) {
    if (group & (INTEGERS | LOGICALS | BYTES | PAIRS)) {
        return 1;
    }
    return (group & FLOATS && (op == MPI_SUM || op == MPI_PROD)) || (group & COMPLEX && op == MPI_SUM) ? 2
                                                                                                       : 0;
}

int door_combines(MPI_Datatype type, MPI_Op op, size_t element_bytes, struct reduction *reduction) {
    int groups = groups_for(op), group = groups > 0 ? group_of(type) : 0;
    if (op == MPI_OP_NULL || (groups < 0 ? !has_no_gaps(type) : !(groups & group))) {
        return 0;
    }
    int is_commutative = 1; /* as all of MPI's are */
    if (groups < 0) {
        PMPI_Op_commutative(op, &is_commutative);
    }
    *reduction = (struct reduction){
        .known = {.element_bytes = element_bytes,
                  .is_commutative = is_commutative != 0,
                  .is_exact = is_exact(op, group),
                  .is_own = groups < 0,
                  .combine = combine},
        .type = type,
        .op = op,
    };
    return 1;
}
