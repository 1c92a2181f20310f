/* What `polycast bench --cold` does before each repetition: everything that takes the place of the caches' contents is written, once, and
 * what the call is about is in none of the caches near the core. */
#include "../../bench/payload.h"

#include "check.h"

#include <time.h>
#include <unistd.h>

enum { LINE = 64, BYTES = 64 << 10, LINES = BYTES / LINE, STEP = 389, TIMES = 25 };

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Each line by the one before, in an order that no core foresees. */
static int64_t look_ns(const volatile unsigned char *bytes) {
    static volatile unsigned nothing;
    const unsigned mask = nothing;
    const int64_t began_ns = now_ns();
    unsigned at = 0;
    for (int i = 0; i < LINES; i++)
        at = (at + STEP + (bytes[at * LINE] & mask)) % LINES;
    return now_ns() - began_ns;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    struct payload warm, cold;
    struct call call;
    CHECK(payload_open(&warm, BYTES, false) && payload_open(&cold, BYTES, true), "expected memory");
    CHECK(call_open(&call, BCAST, BYTES, 1, 2), "expected memory");
    CHECK(!warm.other && warm.other_bytes == 0, "expected nothing to be emptied that nobody asked for");
    CHECK((long)cold.other_bytes >= 2 * sysconf(_SC_LEVEL2_CACHE_SIZE),
          "expected more than a core's own caches");
    int64_t cold_ns = INT64_MAX, warm_ns = INT64_MAX;
    for (int i = 1; i <= TIMES; i++) {
        payload_prepare(&cold, &call, i);
        const int64_t first_ns = look_ns(cold.receive), again_ns = look_ns(cold.receive);
        cold_ns = first_ns < cold_ns ? first_ns : cold_ns;
        warm_ns = again_ns < warm_ns ? again_ns : warm_ns;
        for (size_t at = 0; at < cold.other_bytes; at += LINE)
            CHECK(cold.other[at] == i, "line %zu: expected to be written %d times, found %d", at / LINE, i,
                  cold.other[at]);
    }
    /* The least of many: what disturbs makes both longer, never shorter. Seen: 10 times and more. */
    printf("%lld ns with empty caches, %lld ns again\n", (long long)cold_ns, (long long)warm_ns);
    CHECK(cold_ns > 2 * warm_ns, "expected twice as long with empty caches, found %lld and %lld ns",
          (long long)cold_ns, (long long)warm_ns);
    payload_close(&warm);
    payload_close(&cold);
    call_close(&call);
    printf("OK bench_caches\n");
    MPI_Finalize();
    return 0;
}
