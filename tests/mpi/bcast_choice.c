/* What polycast says that the next broadcast is served by, before each: rules that hold from a call on begin at that call.
 *
 * Usage: bcast_choice CALL NAME [CALL NAME]…     before the call of this number, and before those that follow, it is this */
#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 400, SHORT = 8, LONG = 64 << 10 };

int main(int argc, char **argv) {
    typedef int choice_function(MPI_Comm comm, int64_t bytes, char *text, int size);
    static char data[LONG];
    char text[64];
    const char *expected = "stock";
    int next = 1;
    MPI_Init(&argc, &argv);
    choice_function *choice = (choice_function *)dlsym(RTLD_DEFAULT, "polycast_choice");
    CHECK(choice, "polycast is not there");
    for (int call = 0; call < CALLS; call++) {
        if (next + 1 < argc && call == atoi(argv[next])) {
            expected = argv[next + 1];
            next += 2;
        }
        /* Nothing is known of the communicator before its first call. */
        if (call > 0) {
            choice(MPI_COMM_WORLD, SHORT, text, sizeof text);
            CHECK(strcmp(text, expected) == 0, "call %d: expected %s, found %s", call, expected, text);
        }
        MPI_Bcast(data, call == 0 ? LONG : SHORT, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    check_ok("bcast_choice");
    MPI_Finalize();
}
