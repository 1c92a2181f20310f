/* As threads_pthreads_mutex.h. */
#ifndef POLYCAST_ABSENT_THREADS_PTHREADS_THREADS_H
#define POLYCAST_ABSENT_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "opal/mca/threads/threads.h"

static inline void opal_thread_yield(void) {
    sched_yield();
}

#endif
