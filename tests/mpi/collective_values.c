/* Every collective but the broadcast: datatypes of different layouts on the two sides, all roots, MPI_IN_PLACE, no data, communicators of odd
 * sizes in another order, first one by one, then at random. What a rank must get is computed from who sent it to whom, never
 * by another collective.
 *
 *   collective_values [SEED]      each of the algorithms in CHECK_SETTINGS has the same calls
 */
#include "check.h"
#include "reductions.h"

#include <stdlib.h>
#include <string.h>

enum { SCATTER, GATHER, ALLGATHER, ALLGATHERV, ALLTOALL, BARRIER, REDUCE, ALLREDUCE, COLLECTIVES };
static const char *const names[] = {"scatter",  "gather",  "allgather", "allgatherv",
                                    "alltoall", "barrier", "reduce",    "allreduce"};

static MPI_Comm comm;
static int rank, ranks;

/* Data are pairs of ints. A layout says where in memory int `i` is. */
struct layout {
    const char *name;
    MPI_Datatype type;
    int pairs_per_element, ints_per_element; /* the latter in memory */
};
enum { PAIRS, WITH_HOLES, REVERSED, FOUR_PAIRS, SINGLE_INTS, LAYOUTS };
static struct layout layouts[LAYOUTS];

static void make_layouts(void) {
    int one[2] = {1, 1}, reversed[2] = {1, 0};
    MPI_Datatype with_holes;
    layouts[PAIRS] = (struct layout){"pairs", MPI_DATATYPE_NULL, 1, 2};
    MPI_Type_contiguous(2, MPI_INT, &layouts[PAIRS].type);
    layouts[WITH_HOLES] = (struct layout){"pairs with holes", MPI_DATATYPE_NULL, 1, 5};
    MPI_Type_vector(2, 1, 3, MPI_INT, &with_holes);
    MPI_Type_create_resized(with_holes, 0, 5 * sizeof(int), &layouts[WITH_HOLES].type);
    MPI_Type_free(&with_holes);
    layouts[REVERSED] = (struct layout){"reversed pairs", MPI_DATATYPE_NULL, 1, 2};
    MPI_Type_indexed(2, one, reversed, MPI_INT, &layouts[REVERSED].type);
    layouts[FOUR_PAIRS] = (struct layout){"four pairs", MPI_DATATYPE_NULL, 4, 8};
    MPI_Type_contiguous(8, MPI_INT, &layouts[FOUR_PAIRS].type);
    /* Two elements are a pair. */
    layouts[SINGLE_INTS] = (struct layout){"ints", MPI_INT, 0, 1};
    for (int l = 0; l < SINGLE_INTS; l++)
        MPI_Type_commit(&layouts[l].type);
}

static int elements(const struct layout *layout, int pairs) {
    return layout->pairs_per_element ? pairs / layout->pairs_per_element : 2 * pairs;
}

/* Ints in memory that so many pairs take. */
static size_t room(const struct layout *layout, int pairs) {
    return (size_t)elements(layout, pairs) * (size_t)layout->ints_per_element;
}

static size_t place(const struct layout *layout, int i) {
    if (layout == &layouts[WITH_HOLES])
        return (size_t)(i / 2) * 5 + (size_t)(i % 2) * 3;
    if (layout == &layouts[REVERSED])
        return (size_t)(i / 2) * 2 + (size_t)(1 - i % 2);
    return (size_t)i;
}

/* Int `i` of what `source` has for `destination` in this call. */
static int value(uint64_t call, int source, int destination, int i) {
    return (int)check_word(call * 1000003 + (uint64_t)source * 1009 + (uint64_t)destination, (uint64_t)i);
}

static int *unwritten(size_t ints) {
    int *memory = check_allocate(ints * sizeof(int));
    memset(memory, CHECK_UNWRITTEN, ints * sizeof(int));
    return memory;
}

static void fill(int *block, const struct layout *layout, int pairs, uint64_t call, int source,
                 int destination) {
    for (int i = 0; i < 2 * pairs; i++)
        block[place(layout, i)] = value(call, source, destination, i);
}

static void expect(const int *block, const struct layout *layout, int pairs, uint64_t call, int source,
                   int destination, const char *what) {
    unsigned char *is_data = check_allocate(room(layout, pairs));
    memset(is_data, 0, room(layout, pairs));
    for (int i = 0; i < 2 * pairs; i++) {
        size_t at = place(layout, i);
        is_data[at] = 1;
        CHECK(block[at] == value(call, source, destination, i),
              "%s: int %d from %d for %d is %x, expected %x", what, i, source, destination,
              (unsigned)block[at], (unsigned)value(call, source, destination, i));
    }
    for (size_t at = 0; at < room(layout, pairs); at++)
        if (!is_data[at])
            check_unwritten(&block[at], sizeof(int), what);
    free(is_data);
}

/* One call that moves data. `pairs` is a multiple of four. */
static void move(int collective, const struct layout *from, const struct layout *to, int pairs, int root,
                 int is_in_place, uint64_t call) {
#ifdef MPICH_VERSION /* MPICH 4.0 itself puts it elsewhere. */
    if (collective == ALLGATHERV && ranks == 1)
        return;
#endif
    char what[160];
    snprintf(what, sizeof what, "%s of %d pairs, %s to %s, root %d of %d%s, call %d", names[collective],
             pairs, from->name, to->name, root, ranks, is_in_place ? ", in place" : "", (int)call);
    /* Of v-forms each rank has another length, none less than half of the longest. */
    int *counts = check_allocate(sizeof(int) * (size_t)ranks),
        *places = check_allocate(sizeof(int) * (size_t)ranks);
    int *lengths = check_allocate(sizeof(int) * (size_t)ranks), end = 3;
    for (int r = ranks - 1; r >= 0; r--) {
        lengths[r] = pairs - (collective == ALLGATHERV ? (r + (int)call) % 3 * (pairs / 8) / 4 * 4 : 0);
        counts[r] = elements(to, lengths[r]);
        places[r] = collective == ALLGATHERV ? end : r * counts[r];
        end += counts[r] + 1;
    }
    int sends_all = collective == ALLTOALL || (collective == SCATTER && rank == root);
    int gets_all = collective == ALLTOALL || collective == ALLGATHER || collective == ALLGATHERV ||
                   (collective == GATHER && rank == root);
    int sends = collective != SCATTER || rank == root, gets = collective != GATHER || rank == root;
    int own = lengths[rank];
    size_t sent_block = room(from, own), sent = sends ? sent_block * (sends_all ? (size_t)ranks : 1) : 0;
    size_t block = room(to, pairs), received = gets ? block * (gets_all ? (size_t)ranks : 1) : 0;
    if (collective == ALLGATHERV)
        received = (size_t)(end + 3) * (size_t)to->ints_per_element;
    int *out = unwritten(sent + 1), *in = unwritten(received + 1);
    for (int r = 0; sends && r < (sends_all ? ranks : 1); r++)
        fill(out + (size_t)r * sent_block, from, own, call, rank,
             sends_all              ? r
             : collective == GATHER ? root
                                    : 0);
    const void *send = out;
    void *receive = in;
    if (is_in_place && collective == SCATTER) {
        receive = rank == root ? MPI_IN_PLACE : receive;
    } else if (is_in_place && (collective != GATHER || rank == root)) {
        send = MPI_IN_PLACE;
        for (int r = 0; r < ranks; r++)
            if (collective == ALLTOALL || r == rank)
                fill(in + (size_t)places[r] * (size_t)to->ints_per_element, to, lengths[r], call, rank,
                     collective == ALLTOALL ? r
                     : collective == GATHER ? root
                                            : 0);
    }
    int send_count = elements(from, own), count = elements(to, pairs);
    switch (collective) {
    case SCATTER:
        MPI_Scatter(send, send_count, from->type, receive, count, to->type, root, comm);
        break;
    case GATHER:
        MPI_Gather(send, send_count, from->type, rank == root ? receive : NULL, count, to->type, root, comm);
        break;
    case ALLGATHER:
        MPI_Allgather(send, send_count, from->type, receive, count, to->type, comm);
        break;
    case ALLGATHERV:
        MPI_Allgatherv(send, send_count, from->type, receive, counts, places, to->type, comm);
        break;
    case ALLTOALL:
        MPI_Alltoall(send, send_count, from->type, receive, count, to->type, comm);
        break;
    }
    for (int r = 0; gets && receive != MPI_IN_PLACE && r < (gets_all ? ranks : 1); r++) {
        int source = gets_all ? r : root,
            destination = collective == ALLGATHER || collective == ALLGATHERV ? 0 : rank;
        size_t at = gets_all ? (size_t)places[r] * (size_t)to->ints_per_element : 0;
        expect(in + at, to, gets_all ? lengths[r] : pairs, call, source, destination, what);
    }
    for (int r = 0; sends && r < (sends_all ? ranks : 1); r++)
        expect(out + (size_t)r * sent_block, from, own, call, rank,
               sends_all              ? r
               : collective == GATHER ? root
                                      : 0,
               "what was sent");
    check_unwritten(in + received, sizeof(int), what);
    free(out), free(in), free(counts), free(places), free(lengths);
}

static MPI_Op in_order;
static int has_several_nodes;

static void reduce(int collective, int reduction, int count, int root, int is_in_place, uint64_t call) {
    char what[160];
#ifdef MPICH_VERSION /* MPICH 4.0 itself crashes there where ranks are no power of two. */
    is_in_place = is_in_place && (collective == ALLREDUCE || root == 0);
    /* And is wrong between nodes from 2 KiB on, which has to do for what polycast may leave to it: github.com/pmodels/mpich/issues/6893. */
    int is_mpichs = collective == REDUCE && (reduction == MINLOC_DOUBLE_INT || reduction == IN_ORDER);
    if (is_mpichs && has_several_nodes && count > 100)
        count = 100;
#endif
    snprintf(what, sizeof what, "%s, %s of %d, root %d of %d%s, call %d", names[collective],
             reductions[reduction].name, count, root, ranks, is_in_place ? ", in place" : "", (int)call);
    const MPI_Datatype types[] = {MPI_LONG, MPI_DOUBLE,     MPI_SHORT,   MPI_BYTE,
                                  MPI_2INT, MPI_DOUBLE_INT, MPI_UINT32_T};
    const MPI_Op operations[] = {MPI_SUM, MPI_SUM, MPI_MAX, MPI_BAND, MPI_MAXLOC, MPI_MINLOC, in_order};
    size_t size = reductions[reduction].size, bytes = size * (size_t)count;
    char *out = check_allocate(bytes), *in = check_allocate(bytes + 1);
    memset(in, CHECK_UNWRITTEN, bytes + 1);
    int has_result = collective == ALLREDUCE || rank == root;
    char *mine = is_in_place && has_result ? in : out;
    for (int i = 0; i < count; i++)
        put(reduction, mine + size * (size_t)i, value(call, rank, 0, i), rank);
    const void *send = is_in_place && has_result ? MPI_IN_PLACE : out;
    if (collective == ALLREDUCE)
        MPI_Allreduce(send, in, count, types[reduction], operations[reduction], comm);
    else
        MPI_Reduce(send, in, count, types[reduction], operations[reduction], root, comm);
    for (int i = 0; has_result && i < count; i++) {
        struct double_int expected, next;
        put(reduction, &expected, value(call, 0, 0, i), 0);
        for (int r = 1; r < ranks; r++) {
            put(reduction, &next, value(call, r, 0, i), r);
            add(reduction, &next, &expected);
        }
        CHECK(is_same(reduction, &expected, in + size * (size_t)i), "%s: element %d is wrong", what, i);
    }
    check_unwritten(in + (has_result ? bytes : 0), 1, what);
    free(out), free(in);
}

/* Sums that depend on their order are the same to the last bit on all ranks, and again. */
static void same_bits(uint64_t call) {
    enum { COUNT = 1500 };
    static double mine[COUNT], sum[2][COUNT], other[COUNT];
    for (int i = 0; i < COUNT; i++) {
        int v = value(call, rank, 0, i);
        mine[i] = (v % 1000 + 0.1) * (v % 7 ? 1e-9 : 1e9);
    }
    for (int time = 0; time < 2; time++)
        MPI_Allreduce(mine, sum[time], COUNT, MPI_DOUBLE, MPI_SUM, comm);
    CHECK(memcmp(sum[0], sum[1], sizeof sum[0]) == 0, "the same sum has other bits the second time");
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    MPI_Sendrecv(sum[0], COUNT, MPI_DOUBLE, next, 0, other, COUNT, MPI_DOUBLE, previous, 0, comm,
                 MPI_STATUS_IGNORE);
    CHECK(memcmp(sum[0], other, sizeof other) == 0, "rank %d has other bits than rank %d", rank, previous);
}

/* Each rank may count in elements of its own: some in ints, some in pairs of them. The last rank has none. */
static void counted_in_different_types(void) {
    int is_pairs = rank % 2, each = is_pairs ? 1 : 2, mine[2] = {2 * rank, 2 * rank + 1};
    int *counts = check_allocate(sizeof(int) * (size_t)ranks),
        *places = check_allocate(sizeof(int) * (size_t)ranks), *all = unwritten(2 * (size_t)ranks);
    for (int r = 0; r < ranks; r++) {
        counts[r] = r < ranks - 1 || ranks == 1 ? each : 0;
        places[r] = r * each;
    }
#ifdef MPICH_VERSION /* see `move` */
    if (ranks > 1)
#endif
    {
        MPI_Allgatherv(mine, counts[rank] * 2 / each, MPI_INT, all, counts, places,
                       is_pairs ? layouts[PAIRS].type : MPI_INT, comm);
        for (int i = 0; i < 2 * ranks; i++)
            CHECK(counts[i / 2] ? all[i] == i : 1, "allgatherv of ints and pairs: int %d is %d", i, all[i]);
    }
    free(counts), free(places), free(all);
}

/* MPI_Allgatherv's blocks of the same length, one behind the other on some ranks, and the other way round on the others: where they go is a
 * matter of each rank. Nothing is written behind them. */
static void blocks_alike(int ints, uint64_t call) {
#ifdef MPICH_VERSION /* see `move` */
    if (ranks == 1)
        return;
#endif
    int *counts = check_allocate(sizeof(int) * (size_t)ranks),
        *places = check_allocate(sizeof(int) * (size_t)ranks), *mine = unwritten((size_t)ints),
        *all = unwritten((size_t)ints * (size_t)ranks + 1);
    for (int r = 0; r < ranks; r++) {
        counts[r] = ints;
        places[r] = (rank % 2 ? ranks - 1 - r : r) * ints;
    }
    for (int i = 0; i < ints; i++)
        mine[i] = value(call, rank, 0, i);
    MPI_Allgatherv(mine, ints, MPI_INT, all, counts, places, MPI_INT, comm);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < ints; i++)
            CHECK(all[places[r] + i] == value(call, r, 0, i), "blocks alike: int %d of rank %d is wrong", i,
                  r);
    check_unwritten(all + (size_t)ints * (size_t)ranks, sizeof(int), "blocks alike");
    free(counts), free(places), free(mine), free(all);
}

/* Nobody leaves a barrier before all have come: a message that was sent before it is there after it. */
static void barrier(uint64_t call) {
    int word = (int)call, late = (int)(call % (uint64_t)ranks), is_there = rank == late;
    for (int r = 0; rank == late && r < ranks; r++)
        if (r != late)
            MPI_Send(&word, 1, MPI_INT, r, 5, comm);
    MPI_Barrier(comm);
    for (double until = MPI_Wtime() + 30; !is_there && MPI_Wtime() < until;)
        MPI_Iprobe(late, 5, comm, &is_there, MPI_STATUS_IGNORE);
    CHECK(is_there, "the message from before the barrier has not come");
    if (rank != late)
        MPI_Recv(&word, 1, MPI_INT, late, 5, comm, MPI_STATUS_IGNORE);
}

static uint64_t calls, state;

static uint64_t below(uint64_t limit) {
    calls++;
    return check_word(state, calls) % limit;
}

static void any_call(void) {
    static const int sizes[] = {0, 4, 8, 12, 100, 1000, 3000, 20000};
    int collective = (int)below(COLLECTIVES), root = (int)below((uint64_t)ranks), is_in_place = below(4) == 0;
    int pairs = sizes[below(8)], from = (int)below(LAYOUTS), to = (int)below(LAYOUTS),
        kind = (int)below(REDUCTIONS);
    if (collective >= REDUCE)
        reduce(collective, kind, pairs + (int)below(3), root, is_in_place, calls);
    else if (collective == BARRIER)
        barrier(calls);
    else
        move(collective, &layouts[from], &layouts[to], pairs, root, is_in_place, calls);
}

static void use(MPI_Comm now) {
    comm = now;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
}

/* Between groups, and where a rank is not the root, some arguments mean nothing. */
static void arguments_without_meaning(void) {
    const MPI_Datatype nonsense = (MPI_Datatype)0;
    int is_odd = check_rank() % 2, mine = 100 + check_rank(), others = check_size() / 2;
    int *all = check_allocate(sizeof(int) * (size_t)check_size());
    MPI_Comm own, between;
    MPI_Comm_split(MPI_COMM_WORLD, is_odd, check_rank(), &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, !is_odd, 3, &between);
    for (int time = 0; time < 3; time++) {
        if (is_odd) {
            MPI_Gather(&mine, 1, MPI_INT, NULL, 7, nonsense, 0, between);
            MPI_Scatter(NULL, 7, nonsense, &mine, 1, MPI_INT, 0, between);
            CHECK(mine == 100 + check_rank(), "scattered between groups: %d", mine);
        } else if (check_rank() == 0) {
            MPI_Gather(NULL, 7, nonsense, all, 1, MPI_INT, MPI_ROOT, between);
            for (int r = 0; r < others; r++)
                CHECK(all[r] == 101 + 2 * r, "gathered between groups: %d of rank %d", all[r], r);
            MPI_Scatter(all, 1, MPI_INT, NULL, 7, nonsense, MPI_ROOT, between);
        } else {
            MPI_Gather(NULL, 7, nonsense, NULL, 7, nonsense, MPI_PROC_NULL, between);
            MPI_Scatter(NULL, 7, nonsense, NULL, 7, nonsense, MPI_PROC_NULL, between);
        }
        MPI_Comm halves[] = {MPI_COMM_WORLD, own};
        for (int c = 0; c < 2; c++) {
            use(halves[c]);
            MPI_Gather(&mine, 1, MPI_INT, all, rank == 0 ? 1 : 7, rank == 0 ? MPI_INT : nonsense, 0, comm);
            MPI_Scatter(all, rank == 0 ? 1 : 7, rank == 0 ? MPI_INT : nonsense, &mine, 1, MPI_INT, 0, comm);
            CHECK(mine == 100 + check_rank(), "gathered and scattered again: %d", mine);
        }
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&own);
    free(all);
}

static int spans_nodes(void) {
    MPI_Comm node;
    int on_node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &on_node);
    MPI_Comm_free(&node);
    return on_node < check_size();
}

static void one_by_one(void) {
    static const int sizes[] = {0, 4, 600};
    for (int collective = 0; collective < COLLECTIVES; collective++)
        for (int size = 0; size < 3; size++)
            for (int root = 0; root<ranks; root += ranks> 2 ? ranks / 2 : 1)
                for (int is_in_place = 0; is_in_place < 2; is_in_place++) {
                    int kinds = collective >= REDUCE ? REDUCTIONS : collective == BARRIER ? 1 : LAYOUTS;
                    for (int kind = 0; kind < kinds; kind++, calls++) {
                        if (collective >= REDUCE)
                            reduce(collective, kind, sizes[size], root, is_in_place, calls);
                        else if (collective == BARRIER)
                            barrier(calls);
                        else
                            move(collective, &layouts[kind], &layouts[(kind + size) % LAYOUTS], sizes[size],
                                 root, is_in_place, calls);
                    }
                }
}

static void body(void) {
    /* All, all in another order, and parts that call at the same time. */
    MPI_Comm reversed, parts;
    MPI_Comm_split(check_comm, 0, -check_rank(), &reversed);
    MPI_Comm_split(check_comm, check_rank() % 3 == 1, check_rank(), &parts);
    const MPI_Comm all[] = {check_comm, reversed, parts};
    calls = 0;
    for (int c = 0; c < 3; c++) {
        use(all[c]);
        if (c == 0)
            one_by_one();
        same_bits(calls);
        counted_in_different_types();
        blocks_alike(3, calls);
        blocks_alike(20000, calls);
    }
    calls = 1 << 20; /* of parts some may have made more calls than others */
    for (int time = 0; time < 150; time++) {
        use(all[time / 3 % 3]);
        any_call();
    }
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&parts);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    make_layouts();
    MPI_Op_create(apply_in_order, 0, &in_order);
    has_several_nodes = spans_nodes();
    check_each_setting(body);
    arguments_without_meaning();
    MPI_Op_free(&in_order);
    for (int l = 0; l < SINGLE_INTS; l++)
        MPI_Type_free(&layouts[l].type);
    check_ok("collective_values");
    MPI_Finalize();
    return 0;
}
