/* Reductions that a test knows the result of: what each rank contributes to an element, and how two of these are combined. */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

/* Maps x -> ax + b modulo 2^16 with odd a, applied one after the other: associative, not commutative, nothing is lost. */
static uint32_t after(uint32_t first, uint32_t second) {
    uint32_t a = first >> 16, b = first & 0xffff, c = second >> 16, d = second & 0xffff;
    return (a * c & 0xffff) << 16 | ((b * c + d) & 0xffff);
}

static void apply_in_order(void *first, void *into, int *length, MPI_Datatype *type) {
    uint32_t *from = first, *to = into;
    (void)type;
    for (int i = 0; i < *length; i++)
        to[i] = after(from[i], to[i]);
}

enum { SUM_LONG, SUM_DOUBLE, MAX_SHORT, BAND_BYTE, MAXLOC_2INT, MINLOC_DOUBLE_INT, IN_ORDER, REDUCTIONS };
struct double_int {
    double value;
    int index;
};
static const struct {
    const char *name;
    size_t size;
} reductions[] = {{"sum of longs", sizeof(long)},
                  {"sum of doubles", sizeof(double)},
                  {"maximum of shorts", sizeof(short)},
                  {"and of bytes", 1},
                  {"place of the largest int", 2 * sizeof(int)},
                  {"place of the smallest double", sizeof(struct double_int)},
                  {"user's operation", sizeof(uint32_t)}};

/* What rank `source` contributes to an element, made of the random number `v`. */
static void put(int reduction, void *at, int v, int source) {
    switch (reduction) {
    case SUM_LONG:
        *(long *)at = (long)v << 20;
        break;
    case SUM_DOUBLE:
        *(double *)at = v % 100000 / 8.0; /* sums are exact */
        break;
    case MAX_SHORT:
        *(short *)at = (short)v;
        break;
    case BAND_BYTE:
        *(unsigned char *)at = (unsigned char)(v | v >> 8);
        break;
    case MAXLOC_2INT:
        ((int *)at)[0] = v % 4;
        ((int *)at)[1] = source;
        break;
    case MINLOC_DOUBLE_INT:
        *(struct double_int *)at = (struct double_int){v % 4, source};
        break;
    case IN_ORDER:
        *(uint32_t *)at = (uint32_t)v | 1u << 16;
        break;
    }
}

static void add(int reduction, const void *from, void *into) {
    switch (reduction) {
    case SUM_LONG:
        *(long *)into += *(const long *)from;
        break;
    case SUM_DOUBLE:
        *(double *)into += *(const double *)from;
        break;
    case MAX_SHORT:
        *(short *)into = *(const short *)from > *(short *)into ? *(const short *)from : *(short *)into;
        break;
    case BAND_BYTE:
        *(unsigned char *)into &= *(const unsigned char *)from;
        break;
    case MAXLOC_2INT:
        if (((const int *)from)[0] > ((int *)into)[0])
            memcpy(into, from, 2 * sizeof(int));
        break;
    case MINLOC_DOUBLE_INT:
        if (((const struct double_int *)from)->value < ((struct double_int *)into)->value)
            memcpy(into, from, sizeof(struct double_int));
        break;
    case IN_ORDER:
        *(uint32_t *)into = after(*(uint32_t *)into, *(const uint32_t *)from);
        break;
    }
}

static int is_same(int reduction, const void *one, const void *other) {
    if (reduction == MINLOC_DOUBLE_INT)
        return ((const struct double_int *)one)->value == ((const struct double_int *)other)->value &&
               ((const struct double_int *)one)->index == ((const struct double_int *)other)->index;
    return memcmp(one, other, reductions[reduction].size) == 0;
}
