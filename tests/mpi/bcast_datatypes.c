/* Derived datatypes, and different but matching ones on different ranks.
 *
 * Every layout below describes the same message, UNITS x 24 ints, at other places of memory. Each comes with
 * the places where MPI says its ints lie, written down by hand: a broadcast between any two layouts must put
 * int k of the root's list at place k of the receiver's list, and touch nothing else. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { INTS = 24, INT_BYTES = sizeof(int), MARGIN_BYTES = 4096 };

/* How one rank holds the message. Offsets count from the buffer argument, or from address 0 with MPI_BOTTOM.
 */
struct layout {
    MPI_Datatype type;
    int count;
    int bottom;       /* the buffer argument is MPI_BOTTOM */
    MPI_Aint *offset; /* of int k of the message, from `memory + origin` */
    size_t origin;    /* of the buffer argument in `memory` */
    size_t span;      /* bytes of `memory` */
    unsigned char *memory;
};

typedef void layout_maker(struct layout *, int units);

/* Room for `units` repetitions of an extent, with a margin for what lies below and beyond. */
static void give_room(struct layout *l, int units, size_t extent) {
    l->offset = check_allocate(sizeof(MPI_Aint) * INTS * (size_t)units);
    l->origin = MARGIN_BYTES;
    l->span = extent * (size_t)units + 2 * MARGIN_BYTES;
    l->memory = check_allocate(l->span);
}

/* `count` repetitions of the 24 offsets at distance `extent`, which MPI must confirm. */
static void repeat(struct layout *l, int units, const MPI_Aint unit[INTS], MPI_Aint extent) {
    MPI_Aint lower, found;
    MPI_Type_get_extent(l->type, &lower, &found);
    CHECK(found == extent, "the test expects extent %ld, MPI says %ld", (long)extent, (long)found);
    l->count = units;
    give_room(l, units, (size_t)extent);
    for (int u = 0; u < units; u++)
        for (int i = 0; i < INTS; i++)
            l->offset[u * INTS + i] = u * extent + unit[i];
}

static void offsets_contiguous(MPI_Aint unit[INTS], MPI_Aint first) {
    for (int i = 0; i < INTS; i++)
        unit[i] = first + i * INT_BYTES;
}

static void basic(struct layout *l, int units) {
    l->type = MPI_INT;
    l->count = units * INTS;
    give_room(l, units, INTS * INT_BYTES);
    for (int i = 0; i < l->count; i++)
        l->offset[i] = (MPI_Aint)i * INT_BYTES;
}

static void contiguous_nested(struct layout *l, int units) {
    MPI_Aint unit[INTS];
    MPI_Datatype row;
    MPI_Type_contiguous(6, MPI_INT, &row);
    MPI_Type_contiguous(4, row, &l->type);
    MPI_Type_free(&row);
    offsets_contiguous(unit, 0);
    repeat(l, units, unit, INTS * INT_BYTES);
}

/* The whole message as one element. */
static void contiguous_once(struct layout *l, int units) {
    basic(l, units);
    MPI_Type_contiguous(units * INTS, MPI_INT, &l->type);
    l->count = 1;
}

static void vector(struct layout *l, int units) {
    MPI_Aint unit[INTS];
    MPI_Type_vector(8, 3, 5, MPI_INT, &l->type);
    for (int i = 0; i < INTS; i++)
        unit[i] = (i / 3 * 5 + i % 3) * INT_BYTES;
    repeat(l, units, unit, (7 * 5 + 3) * INT_BYTES);
}

/* Blocks go down in memory: the lower bound is below the buffer argument. */
static void vector_negative(struct layout *l, int units) {
    MPI_Aint unit[INTS];
    MPI_Type_vector(8, 3, -5, MPI_INT, &l->type);
    for (int i = 0; i < INTS; i++)
        unit[i] = (-(i / 3) * 5 + i % 3) * INT_BYTES;
    repeat(l, units, unit, (7 * 5 + 3) * INT_BYTES);
}

static void hvector_unaligned(struct layout *l, int units) {
    MPI_Aint unit[INTS];
    MPI_Type_create_hvector(8, 3, 13, MPI_INT, &l->type);
    for (int i = 0; i < INTS; i++)
        unit[i] = i / 3 * 13 + i % 3 * INT_BYTES;
    MPI_Aint lower, extent;
    MPI_Type_get_extent(l->type, &lower, &extent); /* may be padded to the alignment of int */
    repeat(l, units, unit, extent);
}

static void indexed(struct layout *l, int units) {
    static const int lengths[] = {1, 0, 7, 2, 4, 10}, places[] = {3, 100, 5, 0, 40, 20};
    MPI_Aint unit[INTS];
    MPI_Type_indexed(6, lengths, places, MPI_INT, &l->type);
    for (int block = 0, i = 0; block < 6; block++)
        for (int k = 0; k < lengths[block]; k++)
            unit[i++] = (places[block] + k) * INT_BYTES;
    repeat(l, units, unit, 44 * INT_BYTES);
}

static void indexed_block_backwards(struct layout *l, int units) {
    static const int places[] = {18, 12, 6, 0};
    MPI_Aint unit[INTS];
    MPI_Type_create_indexed_block(4, 6, places, MPI_INT, &l->type);
    for (int i = 0; i < INTS; i++)
        unit[i] = (places[i / 6] + i % 6) * INT_BYTES;
    repeat(l, units, unit, INTS * INT_BYTES);
}

/* As large as its extent, and yet not contiguous: the order of the ints is reversed. */
static void struct_permuted(struct layout *l, int units) {
    int lengths[INTS];
    MPI_Aint unit[INTS];
    MPI_Datatype types[INTS];
    for (int i = 0; i < INTS; i++) {
        lengths[i] = 1;
        types[i] = MPI_INT;
        unit[i] = (INTS - 1 - i) * INT_BYTES;
    }
    MPI_Type_create_struct(INTS, lengths, unit, types, &l->type);
    repeat(l, units, unit, INTS * INT_BYTES);
}

/* Two halves exchanged: dense, of one block each, easily mistaken for contiguous. */
static void struct_halves(struct layout *l, int units) {
    static const int lengths[] = {12, 12};
    static const MPI_Aint places[] = {12 * INT_BYTES, 0};
    MPI_Datatype types[] = {MPI_INT, MPI_INT};
    MPI_Aint unit[INTS];
    MPI_Type_create_struct(2, lengths, places, types, &l->type);
    for (int i = 0; i < INTS; i++)
        unit[i] = places[i / 12] + i % 12 * INT_BYTES;
    repeat(l, units, unit, INTS * INT_BYTES);
}

/* One block and no gap, but the data begins 3 ints beyond the buffer argument. */
static void shifted(struct layout *l, int units) {
    MPI_Aint unit[INTS], place = 3 * INT_BYTES;
    MPI_Datatype block;
    MPI_Type_create_hindexed_block(1, INTS, &place, MPI_INT, &block);
    MPI_Type_create_resized(block, 0, INTS * INT_BYTES, &l->type);
    MPI_Type_free(&block);
    offsets_contiguous(unit, place);
    repeat(l, units, unit, INTS * INT_BYTES);
}

static void resized_negative_bound(struct layout *l, int units) {
    MPI_Aint unit[INTS];
    MPI_Datatype block;
    MPI_Type_contiguous(INTS, MPI_INT, &block);
    MPI_Type_create_resized(block, -8, INTS * INT_BYTES + 20, &l->type);
    MPI_Type_free(&block);
    offsets_contiguous(unit, 0);
    repeat(l, units, unit, INTS * INT_BYTES + 20);
}

/* Columns of a matrix of `units` columns: elements interleave, the extent is one int. */
static void columns(struct layout *l, int units) {
    MPI_Datatype column;
    MPI_Type_vector(INTS, 1, units, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, INT_BYTES, &l->type);
    MPI_Type_free(&column);
    l->count = units;
    give_room(l, units, INTS * INT_BYTES);
    for (int u = 0; u < units; u++)
        for (int i = 0; i < INTS; i++)
            l->offset[u * INTS + i] = ((MPI_Aint)i * units + u) * INT_BYTES;
}

static void subarray(struct layout *l, int units) {
    static const int sizes[] = {6, 8}, parts[] = {4, 6}, starts[] = {1, 2};
    MPI_Aint unit[INTS];
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &l->type);
    for (int i = 0; i < INTS; i++)
        unit[i] = ((1 + i / 6) * 8 + 2 + i % 6) * INT_BYTES;
    repeat(l, units, unit, 48 * INT_BYTES);
}

/* A structure of derived types, duplicated, with an empty member. */
static void struct_nested(struct layout *l, int units) {
    static const int lengths[] = {2, 0, 1, 6};
    static const MPI_Aint places[] = {120, 4, 16, 80};
    MPI_Datatype triple, gapped, whole;
    MPI_Type_contiguous(3, MPI_INT, &triple);
    MPI_Type_vector(4, 3, 4, MPI_INT, &gapped);
    MPI_Datatype types[] = {triple, MPI_DOUBLE, gapped, MPI_INT};
    MPI_Type_create_struct(4, lengths, places, types, &whole);
    MPI_Type_create_resized(whole, 0, 160, &l->type);
    MPI_Type_free(&whole);
    MPI_Type_dup(l->type, &whole);
    MPI_Type_free(&l->type);
    l->type = whole;
    MPI_Type_free(&triple);
    MPI_Type_free(&gapped);
    MPI_Aint unit[INTS];
    for (int i = 0; i < INTS; i++)
        unit[i] = i < 6    ? 120 + i * INT_BYTES
                  : i < 18 ? 16 + ((i - 6) / 3 * 4 + i % 3) * INT_BYTES
                           : 80 + (i - 18) * INT_BYTES;
    repeat(l, units, unit, 160);
}

/* Absolute addresses, upper half of the memory first. */
static void bottom(struct layout *l, int units) {
    int ints = units * INTS, lengths[] = {ints / 2, ints - ints / 2};
    give_room(l, units, INTS * INT_BYTES);
    MPI_Aint start, places[2];
    MPI_Get_address(l->memory + l->origin, &start);
    places[0] = MPI_Aint_add(start, (MPI_Aint)lengths[1] * INT_BYTES);
    places[1] = start;
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &l->type);
    l->count = 1;
    l->bottom = 1;
    for (int i = 0; i < ints; i++)
        l->offset[i] = (MPI_Aint)(i < lengths[0] ? lengths[1] + i : i - lengths[0]) * INT_BYTES;
}

static const struct {
    const char *name;
    layout_maker *make;
} LAYOUTS[] = {
    {"basic", basic},
    {"contiguous, nested", contiguous_nested},
    {"contiguous, one element", contiguous_once},
    {"vector", vector},
    {"vector with a negative stride", vector_negative},
    {"hvector, unaligned", hvector_unaligned},
    {"indexed", indexed},
    {"indexed block, backwards", indexed_block_backwards},
    {"struct, permuted", struct_permuted},
    {"struct, halves exchanged", struct_halves},
    {"shifted", shifted},
    {"resized with a negative lower bound", resized_negative_bound},
    {"columns", columns},
    {"subarray", subarray},
    {"struct, nested", struct_nested},
    {"MPI_BOTTOM", bottom},
};
enum { BASIC = 0, CONTIGUOUS_ONCE = 2, LAYOUT_COUNT = sizeof LAYOUTS / sizeof *LAYOUTS };

static int message_int(uint64_t seed, size_t k) {
    return (int)check_word(seed, k);
}

static void verify(const struct layout *l, size_t ints, uint64_t seed, const char *what) {
    for (size_t k = 0; k < ints; k++) {
        unsigned char *at = l->memory + l->origin + l->offset[k];
        int found, expected = message_int(seed, k);
        memcpy(&found, at, INT_BYTES);
        CHECK(found == expected, "%s: int %zu is 0x%08x, expected 0x%08x", what, k, found, expected);
        memset(at, CHECK_UNWRITTEN, INT_BYTES);
    }
    check_unwritten(l->memory, l->span, what);
}

/* The root holds the message in layout `at_root`, everybody else in layout `elsewhere`. */
static void broadcast(int at_root, int elsewhere, int root, int units) {
    static uint64_t seed;
    char what[160];
    snprintf(what, sizeof what, "%d units, root %d: %s -> %s", units, root, LAYOUTS[at_root].name,
             LAYOUTS[elsewhere].name);
    seed++;
    size_t ints = (size_t)units * INTS;
    int is_root = check_rank() == root;
    struct layout l = {0};
    LAYOUTS[is_root ? at_root : elsewhere].make(&l, units);
    if (l.type != MPI_INT)
        MPI_Type_commit(&l.type);
    memset(l.memory, CHECK_UNWRITTEN, l.span);
    for (size_t k = 0; is_root && k < ints; k++) {
        int value = message_int(seed, k);
        memcpy(l.memory + l.origin + l.offset[k], &value, INT_BYTES);
    }
    MPI_Bcast(l.bottom ? MPI_BOTTOM : (void *)(l.memory + l.origin), l.count, l.type, root, check_comm);
    verify(&l, ints, seed, what);
    if (l.type != MPI_INT)
        MPI_Type_free(&l.type);
    free(l.memory);
    free(l.offset);
}

/* The pair type of MPI against a structure of the same signature whose members are exchanged and spread. */
static void pair_type(int root) {
    struct pair {
        double value;
        int index;
    } pairs[100];
    struct spread {
        int index;
        char gap[20];
        double value;
    } spreads[100];
    int lengths[] = {1, 1};
    MPI_Aint places[] = {offsetof(struct spread, value), offsetof(struct spread, index)};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT}, members, spread;
    MPI_Type_create_struct(2, lengths, places, types, &members);
    MPI_Type_create_resized(members, 0, sizeof(struct spread), &spread);
    MPI_Type_commit(&spread);
    MPI_Type_free(&members);

    int as_pairs = check_rank() == root || check_rank() % 2 == 0;
    for (int i = 0; i < 100; i++) {
        pairs[i] = (struct pair){root * 1000 + i + 0.25, root * 7 - i};
        spreads[i] = (struct spread){.index = -1, .value = -1};
        if (check_rank() != root)
            pairs[i] = (struct pair){-1, -1};
    }
    if (as_pairs)
        MPI_Bcast(pairs, 100, MPI_DOUBLE_INT, root, check_comm);
    else
        MPI_Bcast(spreads, 100, spread, root, check_comm);
    for (int i = 0; i < 100; i++) {
        double value = as_pairs ? pairs[i].value : spreads[i].value;
        int index = as_pairs ? pairs[i].index : spreads[i].index;
        CHECK(value == root * 1000 + i + 0.25 && index == root * 7 - i,
              "MPI_DOUBLE_INT from root %d: pair %d is (%g, %d)", root, i, value, index);
    }
    MPI_Type_free(&spread);
}

/* No bytes, in each of the ways in which a message can have none. */
static void nothing(void) {
    unsigned char guard[64];
    MPI_Datatype empty, gap;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_create_resized(empty, 0, 8, &gap);
    MPI_Type_commit(&empty);
    MPI_Type_commit(&gap);
    memset(guard, CHECK_UNWRITTEN, sizeof guard);
    MPI_Bcast(guard, 7, empty, 0, check_comm);
    MPI_Bcast(guard, 7, gap, check_size() - 1, check_comm);
    MPI_Bcast(guard, 0, MPI_DOUBLE_INT, 0, check_comm);
    MPI_Bcast(NULL, 0, MPI_INT, 0, check_comm);
    check_unwritten(guard, sizeof guard, "empty messages");
    MPI_Type_free(&empty);
    MPI_Type_free(&gap);
}

/* Whoever cuts a large message by the elements of each rank's own type tears it apart here: one element of 1
 * MB on one side, 240168 ints on the other. */
static void mixed_large(void) {
    enum { UNITS = 10007 };
    for (int a = 0; a < LAYOUT_COUNT; a++)
        broadcast(a, (a * 5 + 3) % LAYOUT_COUNT, a % check_size(), UNITS);
    broadcast(CONTIGUOUS_ONCE, BASIC, 0, UNITS);
    broadcast(BASIC, CONTIGUOUS_ONCE, 0, UNITS);
}

static void all_layouts(void) {
    int ranks = check_size();
    for (int a = 0; a < LAYOUT_COUNT; a++)
        for (int b = 0; b < LAYOUT_COUNT; b++)
            broadcast(a, b, (a + b) % ranks, 1 + (a * LAYOUT_COUNT + b) % 9);
    for (int a = 0; a < LAYOUT_COUNT; a++) {
        broadcast(a, a, a % ranks, 101);
        broadcast(a, a, (a + 1) % ranks, 3001);
    }
    mixed_large();
    for (int root = 0; root < ranks; root++)
        pair_type(root);
    nothing();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    check_each_algorithm(all_layouts);
    check_ok("bcast_datatypes");
    MPI_Finalize();
}
