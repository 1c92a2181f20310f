/* say.c: what the preloaded object says by itself, before there is a runtime or where there is none. */
#ifndef POLYCAST_SAY_H
#define POLYCAST_SAY_H

#include <stddef.h>

/* The stock MPI serves every call, for this reason. */
void say_warning(const char *what);
/* The program calls a function that no object of its process has. Once. */
void say_missing(const char *function);
/* The answer to who asked for a report where there is no runtime to make one; nothing if nobody did. To be called on one rank. */
void say_nothing_is_served(const char *why);

/* The answer to who waits in MPI_Init for ranks without this object, which is at `path`, or nobody knows where: NULL. */
#define REMEDY_BYTES (4096 + 320)
void tell_remedy(char *text, size_t room, const char *path);

/* Whether the environment's variable says "no", by the same words as in the runtime. */
int is_off(const char *variable);
int is_report_wanted(void);
/* Whether the launcher calls this process the first of its job, or nothing: for words that each job needs once, where no MPI can be asked. */
int is_first_process(void);

#endif
