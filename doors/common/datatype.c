/*
 * Datatypes: which are one stretch of bytes, and how the others become one.
 *
 * Sizes alone do not tell: a struct of two ints with displacements {4, 0} has no holes, but its second
 * element in memory comes first on the wire. So the layers that cannot reorder are taken off, and what is
 * left is asked: an element of distinct bytes is packed, and compared.
 */
#define _GNU_SOURCE /* recursive mutexes without a call */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "door.h"

/* Elements larger than this are not asked but packed in every call: asking costs twice their size. */
#define ASK_MOST_BYTES (1 << 20)

/* One MPI_Pack handles at most this much: its position is an int. */
#define PACK_MOST_BYTES (1 << 30)

/* Digit `digit` of each byte's index, written with base 256. */
static void fill_with_digits(unsigned char *bytes, size_t length, unsigned digit) {
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (unsigned char)(i >> (8 * digit));
    }
}

/* Packs one element whose data lies without holes in [true_lower, true_lower + size), once for each digit of an index: bytes
 * that come out with all digits of their place came from that place. Works on a type of one such element, since an inner type
 * need not be committed; a copy would call what the program has attached to it. */
static int keeps_order(MPI_Datatype type, MPI_Aint true_lower, int size) {
    unsigned char *element = malloc((size_t)size);
    unsigned char *packed = malloc((size_t)size);
    MPI_Datatype copy;
    int is_kept = 0;
    if (element && packed && PMPI_Type_contiguous(1, type, &copy) == MPI_SUCCESS) {
        is_kept = PMPI_Type_commit(&copy) == MPI_SUCCESS;
        for (unsigned digit = 0; is_kept && (size_t)(size - 1) >> (8 * digit) > 0; digit++) {
            int position = 0;
            fill_with_digits(element, (size_t)size, digit);
            PMPI_Pack(element - true_lower, 1, copy, packed, size, &position, MPI_COMM_SELF);
            is_kept = position == size && memcmp(element, packed, (size_t)size) == 0;
        }
        PMPI_Type_free(&copy);
    }
    free(element);
    free(packed);
    return is_kept;
}

/* MPI 4's form, where the library has it: the old one refuses types that were made by a function with large counts. Weak, so
 * that a door loads in a library without it. */
int PMPI_Type_get_envelope_c(MPI_Datatype type, MPI_Count *integers, MPI_Count *addresses, MPI_Count *counts,
                             MPI_Count *types, int *combiner) __attribute__((weak));

struct envelope {
    MPI_Count integers, addresses, counts, types;
    int combiner;
};

int (*door_is_opaque_type)(MPI_Datatype type);

static int is_opaque(MPI_Datatype type) {
    return door_is_opaque_type && door_is_opaque_type(type);
}

static int get_envelope(MPI_Datatype type, struct envelope *envelope) {
    if (is_opaque(type)) {
        return MPI_ERR_TYPE;
    }
    if (PMPI_Type_get_envelope_c) {
        return PMPI_Type_get_envelope_c(type, &envelope->integers, &envelope->addresses, &envelope->counts,
                                        &envelope->types, &envelope->combiner);
    }
    int integers, addresses, types;
    int error = PMPI_Type_get_envelope(type, &integers, &addresses, &types, &envelope->combiner);
    if (!error) {
        envelope->integers = integers;
        envelope->addresses = addresses;
        envelope->counts = 0;
        envelope->types = types;
    }
    return error;
}

/* Those that most calls have: predefined, of which any number is one stretch of bytes. MPI takes longer to say so than a short message takes. */
static int is_basic(MPI_Datatype type) {
    static const MPI_Datatype basic[] = {MPI_DOUBLE,   MPI_INT,      MPI_BYTE,
                                         MPI_FLOAT,    MPI_CHAR,     MPI_LONG,
                                         MPI_INT64_T,  MPI_INTEGER,  MPI_DOUBLE_PRECISION,
                                         MPI_REAL,     MPI_INT32_T,  MPI_UNSIGNED_LONG,
                                         MPI_UINT64_T, MPI_LONG_LONG};
    for (size_t i = 0; i < sizeof basic / sizeof *basic; i++) {
        if (type == basic[i]) {
            return type != MPI_DATATYPE_NULL; /* as Fortran's types are where there is no Fortran */
        }
    }
    return 0;
}

int door_is_named_type(MPI_Datatype type) {
    struct envelope envelope;
    if (is_basic(type)) {
        return 1;
    }
    return get_envelope(type, &envelope) == MPI_SUCCESS && envelope.combiner == MPI_COMBINER_NAMED;
}

/* Of those without a name some are predefined, too. */
static int is_predefined(MPI_Datatype type) {
    struct envelope envelope;
    if (door_is_named_type(type)) {
        return 1;
    }
    return get_envelope(type, &envelope) == MPI_SUCCESS &&
           (envelope.combiner == MPI_COMBINER_F90_REAL || envelope.combiner == MPI_COMBINER_F90_COMPLEX ||
            envelope.combiner == MPI_COMBINER_F90_INTEGER);
}

/* The type that `type` repeats without changing its order, or MPI_DATATYPE_NULL. The caller frees it if it is
 * not predefined (MPI hands out a new reference). */
static MPI_Datatype repeated_type(MPI_Datatype type) {
    struct envelope envelope;
    if (get_envelope(type, &envelope) != MPI_SUCCESS ||
        (envelope.combiner != MPI_COMBINER_DUP && envelope.combiner != MPI_COMBINER_CONTIGUOUS &&
         envelope.combiner != MPI_COMBINER_RESIZED) ||
        envelope.integers > 1 || envelope.addresses > 2 || envelope.counts > 0 || envelope.types != 1) {
        return MPI_DATATYPE_NULL;
    }
    int integer[1];
    MPI_Aint address[2];
    MPI_Datatype inner;
    int error = PMPI_Type_get_contents(type, (int)envelope.integers, (int)envelope.addresses, 1, integer,
                                       address, &inner);
    return error ? MPI_DATATYPE_NULL : inner;
}

/* Whether a row of such elements has its bytes in order if one element has: no holes, and no overlap or
 * reversal through an unusual extent. */
static int tiles_in_order(MPI_Datatype type, MPI_Aint *true_lower, MPI_Count *size) {
    MPI_Count lower, extent, true_lower_count, true_extent;
    PMPI_Type_size_x(type, size);
    PMPI_Type_get_extent_x(type, &lower, &extent);
    PMPI_Type_get_true_extent_x(type, &true_lower_count, &true_extent);
    *true_lower = (MPI_Aint)true_lower_count;
    return *size == true_extent && *size == extent;
}

/* Whether one element without holes also has its bytes in order. */
static int is_in_order(MPI_Datatype type, MPI_Aint true_lower, MPI_Count size) {
    if (door_is_named_type(type)) {
        return 1;
    }
    MPI_Datatype inner = repeated_type(type);
    if (inner == MPI_DATATYPE_NULL) {
        return size <= ASK_MOST_BYTES && keeps_order(type, true_lower, (int)size);
    }
    MPI_Aint inner_true_lower;
    MPI_Count inner_size;
    int result = tiles_in_order(inner, &inner_true_lower, &inner_size)
                     ? is_in_order(inner, inner_true_lower, inner_size)
                     : size <= ASK_MOST_BYTES && keeps_order(type, true_lower, (int)size);
    if (!is_predefined(inner)) {
        PMPI_Type_free(&inner);
    }
    return result;
}

/* The answer for a derived type is kept on it: 1 is "in order", 2 "not". */
static int order_keyval = MPI_KEYVAL_INVALID;

static void create_keyval(void) {
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &order_keyval, NULL);
}

static int is_known_in_order(MPI_Datatype type, MPI_Aint true_lower, MPI_Count size) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_keyval);
    void *answer;
    int is_known = 0;
    if (PMPI_Type_get_attr(type, order_keyval, &answer, &is_known) != MPI_SUCCESS || !is_known) {
        answer = (void *)(intptr_t)(is_in_order(type, true_lower, size) ? 1 : 2);
        PMPI_Type_set_attr(type, order_keyval, answer);
    }
    return (intptr_t)answer == 1;
}

int door_look_at_type(MPI_Datatype type, MPI_Count count, struct element *element) {
    MPI_Aint lower;
    MPI_Count true_lower, true_extent;
    int error = PMPI_Type_size_x(type, &element->size);
    if (!error && is_basic(type)) {
        element->extent = (MPI_Aint)element->size;
        element->true_lower = 0;
        element->is_contiguous = 1;
        return MPI_SUCCESS;
    }
    if (!error) {
        error = PMPI_Type_get_extent(type, &lower, &element->extent);
    }
    if (!error) {
        error = PMPI_Type_get_true_extent_x(type, &true_lower, &true_extent);
    }
    if (error) {
        return error;
    }
    element->true_lower = (MPI_Aint)true_lower;
    int has_no_holes =
        element->size == true_extent && (count == 1 || element->size == (MPI_Count)element->extent);
    /* Of no bytes none can be out of order, and none can tell. Of a type that MPI cannot describe it also makes no duplicate. */
    element->is_contiguous =
        element->size == 0 ||
        (has_no_holes && !is_opaque(type) &&
         (door_is_named_type(type) || is_known_in_order(type, element->true_lower, element->size)));
    return MPI_SUCCESS;
}

int door_can_pack(void) {
    /* Two ints with one between them left out. */
    int source[3] = {0x01020304, -1, 0x05060708}, expected[2] = {0x01020304, 0x05060708}, packed[2] = {0, 0};
    int size = 0, position = 0;
    MPI_Datatype type;
    if (PMPI_Type_vector(2, 1, 2, MPI_INT, &type) != MPI_SUCCESS) {
        return 0;
    }
    PMPI_Type_commit(&type);
    int is_plain =
        PMPI_Pack_size(1, type, MPI_COMM_SELF, &size) == MPI_SUCCESS &&
        PMPI_Pack(source, 1, type, packed, sizeof packed, &position, MPI_COMM_SELF) == MPI_SUCCESS &&
        position == (int)sizeof expected && memcmp(packed, expected, sizeof expected) == 0;
    PMPI_Type_free(&type);
    return is_plain;
}

/* An element that is too large for MPI_Pack: a message to ourselves turns it into bytes (or back), whatever
 * its size. The other side is a row of blocks and a rest, because counts are ints. */
static int bytes_type(MPI_Count size, MPI_Datatype *type) {
    MPI_Datatype block;
    PMPI_Type_contiguous(PACK_MOST_BYTES, MPI_BYTE, &block);
    int lengths[2] = {(int)(size / PACK_MOST_BYTES), (int)(size % PACK_MOST_BYTES)};
    MPI_Aint offsets[2] = {0, (MPI_Aint)(size - size % PACK_MOST_BYTES)};
    MPI_Datatype types[2] = {block, MPI_BYTE};
    int error = PMPI_Type_create_struct(2, lengths, offsets, types, type);
    PMPI_Type_free(&block);
    return error ? error : PMPI_Type_commit(type);
}

/* A message to itself; one thread at a time, for all of them have the same tags. No other rank is waited for. While MPI works on one, it
 * may let another call of ours end, which makes the next one. */
static int copy_by_message(const void *from, MPI_Datatype from_type, void *to, MPI_Datatype to_type) {
    static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static int depth;
    int me;
    PMPI_Comm_rank(door_private, &me);
    pthread_mutex_lock(&lock);
    const int tag = depth++;
    int error =
        PMPI_Sendrecv(from, 1, from_type, me, tag, to, 1, to_type, me, tag, door_private, MPI_STATUS_IGNORE);
    depth--;
    pthread_mutex_unlock(&lock);
    return error;
}

/* How many elements one MPI_Pack may take; 0 if it takes none: one is too large, or the addresses are in the
 * type (MPICH's MPI_Pack refuses MPI_BOTTOM). */
static MPI_Count elements_at_once(const void *buffer, const struct element *element) {
    return buffer == MPI_BOTTOM ? 0 : PACK_MOST_BYTES / element->size;
}

static int at_most(MPI_Count wanted, MPI_Count limit) {
    return (int)(wanted < limit ? wanted : limit);
}

/* One piece of `count` elements between its places in memory and its packed bytes. */
static int convert_piece(enum direction direction, char *elements, int count, MPI_Datatype type, char *packed,
                         int packed_bytes) {
    int position = 0;
    return direction == TO_PACKED
               ? PMPI_Pack(elements, count, type, packed, packed_bytes, &position, door_private)
               : PMPI_Unpack(packed, packed_bytes, &position, elements, count, type, door_private);
}

int door_convert(enum direction direction, void *buffer, MPI_Count count, MPI_Datatype type,
                 const struct element *element, void *packed) {
    char *elements = buffer, *bytes = packed;
    MPI_Count step = elements_at_once(buffer, element);
    MPI_Datatype as_bytes = MPI_DATATYPE_NULL;
    int error = step ? MPI_SUCCESS : bytes_type(element->size, &as_bytes);
    while (!error && count > 0) {
        int now = step ? at_most(count, step) : 1;
        if (step) {
            error = convert_piece(direction, elements, now, type, bytes, (int)(now * element->size));
        } else if (direction == TO_PACKED) {
            error = copy_by_message(elements, type, bytes, as_bytes);
        } else {
            error = copy_by_message(bytes, as_bytes, elements, type);
        }
        elements += now * element->extent;
        bytes += now * element->size;
        count -= now;
    }
    if (as_bytes != MPI_DATATYPE_NULL) {
        PMPI_Type_free(&as_bytes);
    }
    return error;
}
