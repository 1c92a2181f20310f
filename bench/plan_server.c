#define _GNU_SOURCE
#include "plan_server.h"

#include <stdio.h>
#include <string.h>

#include "nap.h"

/* 32 variants and 256 sizes fit into it. */
enum { MAX_LINE = 1 << 15, MAX_WORDS = 512, LOOK_NS = 1000 * 1000 };

/* The next line, without its end; empty at the end, and where it is too long. Rank 0. */
static void read_line(char *line) {
    if (!fgets(line, MAX_LINE, stdin) || !strchr(line, '\n'))
        *line = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "end") == 0)
        *line = '\0';
}

/* Everybody has what rank 0 has. Others sleep meanwhile: rank 0 waits for the tool. */
static void tell(void *data, int bytes, MPI_Comm comm) {
    MPI_Request request;
    MPI_Ibcast(data, bytes, MPI_BYTE, 0, comm, &request);
    nap_until_complete(&request, MPI_STATUS_IGNORE, LOOK_NS);
}

static int cut(char *line, char **words) {
    int count = 1;
    char *rest;
    words[0] = line;
    for (char *word = strtok_r(line, " ", &rest); word && count < MAX_WORDS;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    return count;
}

bool plan_server_run(MPI_Comm comm, plan_measure *measure) {
    static char line[MAX_LINE];
    int rank;
    MPI_Comm_rank(comm, &rank);
    for (;;) {
        if (rank == 0)
            read_line(line);
        int bytes = (int)strlen(line) + 1;
        tell(&bytes, sizeof bytes, comm);
        tell(line, bytes, comm);
        if (*line == '\0')
            return true;
        char *words[MAX_WORDS];
        const int count = cut(line, words);
        if (!measure(count, words))
            return false;
    }
}
