/*
 * exercise.c: members of groups over the stand-ins, in one process, with faults on demand. Without arguments all cases; it says
 * which one has failed, and where. `exercise null BYTES` measures instead: see measurements/verbs.sh.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emulated.h"
#include "verbs.h"

extern void emulated_set(const char *words);
extern void emulated_port_down(void);

#define CHECK(what)                                                                                          \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "exercise: %s:%d: not so: %s\n", __func__, __LINE__, #what);                     \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define ROOM (256 << 10)
#define FULL 1024

static struct polycast_verbs_failure failure;

static struct sockaddr_in internet(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    inet_pton(AF_INET, text, &address.sin_addr);
    return address;
}

static struct polycast_verbs_member *join_as(const char *group, size_t room) {
    struct sockaddr_in here = internet("127.0.0.1"), to = internet(group);
    return polycast_verbs.join((struct sockaddr *)&here, (struct sockaddr *)&to, room, &failure);
}

static struct polycast_verbs_member *join(void) {
    struct polycast_verbs_member *member = join_as("239.192.7.7", ROOM);
    CHECK(member != NULL);
    return member;
}

/* A network of its own, if the kernel lets us: two that run at a time would hear each other. */
static void go_apart(void) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        return;
    }
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int any = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(ioctl(any, SIOCSIFFLAGS, &loopback) == 0);
    close(any);
}

static int descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static void check_nothing_is_left(void) {
    static const struct emulated_counts none;
    CHECK(memcmp(&emulated_counts, &none, sizeof none) == 0);
}

/* Takes what is there: how many, and each is to be `each` bytes of the value of its number, counted from `first`. */
static int take(struct polycast_verbs_member *member, size_t each, int first) {
    struct polycast_verbs_datagram datagrams[32];
    int count, all = 0;
    while ((count = polycast_verbs.receive(member, datagrams, 32)) > 0) {
        for (int at = 0; at < count; at++, all++) {
            const unsigned char *bytes = datagrams[at].bytes;
            CHECK(datagrams[at].length == each);
            CHECK(bytes[0] == (unsigned char)(first + all) && bytes[each - 1] == bytes[0]);
        }
    }
    CHECK(count == 0);
    return all;
}

static int64_t send_numbered(struct polycast_verbs_member *member, size_t each, int count) {
    unsigned char *bytes = malloc(each * (size_t)count);
    for (int at = 0; at < count; at++) {
        memset(bytes + (size_t)at * each, at, each);
    }
    int64_t sent = polycast_verbs.send(member, bytes, each * (size_t)count, each);
    free(bytes);
    return sent;
}

static struct polycast_verbs_counts counts_of(struct polycast_verbs_member *member) {
    struct polycast_verbs_counts counts;
    polycast_verbs.count(member, &counts);
    return counts;
}

static void leave_both(struct polycast_verbs_member *one, struct polycast_verbs_member *other) {
    polycast_verbs.leave(one);
    polycast_verbs.leave(other);
    check_nothing_is_left();
}

static void datagrams_come_in_order_and_own_ones_do_not(const char *words) {
    emulated_set(words);
    struct polycast_verbs_member *from = join(), *to = join();
    CHECK(polycast_verbs.datagram_bytes(from) == FULL);
    for (size_t each = 1; each <= FULL; each += 341) {
        for (int count = 1; count <= 120; count += 17) {
            CHECK(send_numbered(from, each, count) == (int64_t)each * count);
            CHECK(take(to, each, 0) == count);
            CHECK(take(from, each, 0) == 0);
        }
    }
    CHECK(counts_of(from).own > 0 && counts_of(to).own == 0);
    CHECK(polycast_verbs.queued_bytes(from) == 0);
    CHECK(polycast_verbs.send(from, "", 1, 0) == -EINVAL);
    char large[FULL + 1] = "";
    CHECK(polycast_verbs.send(from, large, FULL + 1, FULL + 1) == -EINVAL);
    /* The last may be shorter, and comes as it is. */
    CHECK(polycast_verbs.send(from, large, 150, 100) == 150);
    struct polycast_verbs_datagram two[32];
    CHECK(polycast_verbs.receive(to, two, 32) == 2 && two[0].length == 100 && two[1].length == 50);
    leave_both(from, to);
}

static void what_finds_no_place_is_lost(void) {
    emulated_set("roce");
    struct polycast_verbs_member *from = join(), *to = join_as("239.192.7.7", 1);
    int places = (int)(polycast_verbs.room_bytes(to) / FULL);
    CHECK(places == 64);
    for (int sent = 0; sent < 3; sent++) {
        CHECK(send_numbered(from, FULL, 50) == 50 * FULL);
    }
    struct polycast_verbs_datagram datagrams[32];
    int all = 0, count;
    while ((count = polycast_verbs.receive(to, datagrams, 32)) > 0) {
        all += count;
    }
    CHECK(all == places);
    CHECK(send_numbered(from, FULL, 50) == 50 * FULL && take(to, FULL, 0) == 50);
    leave_both(from, to);
}

static bool is_readable(struct polycast_verbs_member *member) {
    struct pollfd channel = {.fd = polycast_verbs.descriptor(member), .events = POLLIN | POLLOUT};
    int ready = poll(&channel, 1, 0);
    CHECK((channel.revents & POLLOUT) == 0);
    return ready == 1;
}

static void sleep_ends_when_something_comes(void) {
    emulated_set("roce");
    struct polycast_verbs_member *from = join(), *to = join();
    CHECK(!is_readable(to));
    CHECK(send_numbered(from, 10, 1) == 10);
    CHECK(!is_readable(to)); /* nobody has asked */
    /* What came before it was armed makes no event, so arming says it. */
    CHECK(polycast_verbs.arm(to) == 1);
    CHECK(take(to, 10, 0) == 1);
    for (int round = 0; round < 100; round++) {
        CHECK(polycast_verbs.arm(to) == 0);
        CHECK(!is_readable(to));
        CHECK(send_numbered(from, 10, 3) == 30);
        CHECK(is_readable(to));
        CHECK(take(to, 10, 0) == 3);
    }
    leave_both(from, to);
}

static void memory_that_cannot_be_locked_makes_the_ring_smaller(void) {
    emulated_set("roce,memlock=300000");
    struct polycast_verbs_member *member = join_as("239.192.7.7", 4 << 20);
    CHECK(member != NULL && polycast_verbs.room_bytes(member) == 128 * FULL);
    polycast_verbs.leave(member);
    emulated_set("roce,memlock=65536");
    CHECK(join_as("239.192.7.7", 4 << 20) == NULL);
    CHECK(failure.error == ENOMEM && strcmp(failure.step, "ibv_reg_mr") == 0);
    check_nothing_is_left();
}

static void what_hinders_is_named(void) {
    struct polycast_verbs_port port;
    struct sockaddr_in here = internet("127.0.0.1");
    emulated_set("ib,mtu=2048,partition=0x7fff");
    CHECK(polycast_verbs.port((struct sockaddr *)&here, &port, &failure) == 0);
    CHECK(port.datagram_bytes == 2048 && !port.is_ethernet && port.is_active && port.partition == 0x7fff);
    CHECK(port.bits_per_second == 10000000000 && strcmp(port.device, "emulated_0") == 0);
    char host[200] = "absent=";
    gethostname(host + 7, sizeof host - 8);
    emulated_set(host);
    CHECK(polycast_verbs.port((struct sockaddr *)&here, &port, &failure) == -ENODEV);
    CHECK(strcmp(failure.step, "rdma_bind_addr") == 0);
    /* Who comes no further than that waits for no event. */
    CHECK(join_as("239.192.7.7", ROOM) == NULL && failure.error == ENODEV);
    emulated_set("roce");
    emulated_port_down();
    CHECK(join_as("239.192.7.7", ROOM) == NULL && failure.error == ENETDOWN);
    emulated_set("nojoin");
    CHECK(join_as("239.192.7.7", ROOM) == NULL && failure.error == ENETUNREACH);
    /* No group. */
    CHECK(join_as("10.0.0.1", ROOM) == NULL && strcmp(failure.step, "rdma_join_multicast") == 0);
    check_nothing_is_left();
}

static void a_lost_membership_is_joined_again(const char *words, bool is_down) {
    emulated_set(words);
    struct polycast_verbs_member *from = join(), *to = join();
    CHECK(send_numbered(from, 10, 20) == 200);
    CHECK(take(to, 10, 0) < 20);
    int looks = 0;
    while (counts_of(to).joined < 2) {
        CHECK(looks++ < 10);
        polycast_verbs.renew(to);
        polycast_verbs.renew(from);
    }
    CHECK(counts_of(to).lost == 1);
    CHECK((counts_of(to).port_down > 0) == is_down);
    emulated_set("roce");
    CHECK(send_numbered(from, 10, 20) == 200);
    CHECK(take(to, 10, 0) == 20);
    leave_both(from, to);
}

static void a_failed_request_ends_sending(void) {
    emulated_set("sendfail=40");
    struct polycast_verbs_member *from = join(), *to = join();
    for (int count = 0; count < 10; count++) {
        send_numbered(from, 10, 32);
    }
    CHECK(send_numbered(from, 10, 1) == -EIO);
    CHECK(counts_of(from).failed_sends > 0);
    struct polycast_verbs_datagram datagrams[32];
    CHECK(polycast_verbs.receive(from, datagrams, 32) == -EIO);
    CHECK(polycast_verbs.arm(from) == 0);
    leave_both(from, to);
}

static void partial_members_do_not_hear_each_other(void) {
    emulated_set("partition=0x7fff");
    struct polycast_verbs_member *one = join(), *other = join();
    CHECK(send_numbered(one, 10, 5) == 50 && take(other, 10, 0) == 0);
    leave_both(one, other);
}

static void groups_leave_nothing_behind(void) {
    emulated_set("roce");
    int before = descriptors();
    for (int round = 0; round < 1000; round++) {
        char group[32];
        snprintf(group, sizeof group, "239.192.%d.%d", 1 + round / 250, 1 + round % 250);
        struct polycast_verbs_member *member = join_as(group, 1);
        CHECK(member != NULL);
        send_numbered(member, 10, 3);
        polycast_verbs.leave(member);
    }
    check_nothing_is_left();
    CHECK(descriptors() == before);
}

/* How many groups of the stand-ins this host is in: 239.254.0.0/16, as the kernel writes them. */
static int memberships(void) {
    char line[256], group[9];
    int count = 0;
    FILE *file = fopen("/proc/net/igmp", "r");
    while (fgets(line, sizeof line, file) != NULL) {
        count += sscanf(line, " %8s", group) == 1 && strlen(group) == 8 && strcmp(group + 4, "FEEF") == 0;
    }
    fclose(file);
    return count;
}

static void who_is_killed_leaves_nothing(void) {
    enum { GROUPS = 10 };
    int told[2];
    CHECK(memberships() == 0 && pipe(told) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (int at = 0; at < GROUPS; at++) {
            char group[32];
            snprintf(group, sizeof group, "239.192.8.%d", at);
            CHECK(join_as(group, ROOM) != NULL);
        }
        (void)!write(told[1], "", 1);
        pause();
    }
    close(told[1]);
    char one;
    CHECK(read(told[0], &one, 1) == 1);
    close(told[0]);
    CHECK(memberships() == GROUPS);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    CHECK(memberships() == 0);
    check_nothing_is_left();
}

/* Of the processor: others may have it in between. */
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Against a device that takes no time: nanoseconds of a datagram that is sent, and of one that is received. */
static int measure(const char *bytes_text) {
    enum { ROUNDS = 20000, BATCH = 32 };
    char words[64];
    snprintf(words, sizeof words, "null,mtu=%s", bytes_text);
    emulated_set(words);
    struct polycast_verbs_member *member = join_as("239.192.7.7", 4 << 20);
    CHECK(member != NULL);
    size_t each = polycast_verbs.datagram_bytes(member);
    unsigned char *bytes = calloc(BATCH, each);
    struct polycast_verbs_datagram datagrams[BATCH];
    for (int run = 0; run < 3; run++) {
        double begin = seconds();
        for (int round = 0; round < ROUNDS; round++) {
            CHECK(polycast_verbs.send(member, bytes, BATCH * each, each) == (int64_t)(BATCH * each));
        }
        double sent = seconds();
        int received = 0;
        while (received < ROUNDS * BATCH) {
            received += polycast_verbs.receive(member, datagrams, BATCH);
        }
        double end = seconds();
        printf("%zu bytes: send %.0f ns, receive %.0f ns\n", each, (sent - begin) / ROUNDS / BATCH * 1e9,
               (end - sent) / received * 1e9);
    }
    free(bytes);
    polycast_verbs.leave(member);
    return 0;
}

int main(int count, char **words) {
    if (count == 3 && strcmp(words[1], "null") == 0) {
        return measure(words[2]);
    }
    go_apart();
    datagrams_come_in_order_and_own_ones_do_not("roce");
    datagrams_come_in_order_and_own_ones_do_not("ib");
    what_finds_no_place_is_lost();
    sleep_ends_when_something_comes();
    memory_that_cannot_be_locked_makes_the_ring_smaller();
    what_hinders_is_named();
    a_lost_membership_is_joined_again("unjoin=5", false);
    a_lost_membership_is_joined_again("down=5", true);
    a_failed_request_ends_sending();
    partial_members_do_not_hear_each_other();
    groups_leave_nothing_behind();
    who_is_killed_leaves_nothing();
    puts("exercise: all is as it should be");
}
