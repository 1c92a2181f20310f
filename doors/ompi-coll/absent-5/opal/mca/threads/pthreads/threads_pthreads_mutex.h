/* Open MPI 5.0 configured --with-devel-headers has headers that include this one, but not this one. What is a mutex's layout there is
 * pthread's; component.c compares the sizes of what holds them with those of the Open MPI that runs. */
#ifndef POLYCAST_ABSENT_THREADS_PTHREADS_MUTEX_H
#define POLYCAST_ABSENT_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

#include "opal/class/opal_object.h"
#include "opal/constants.h"

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER PTHREAD_COND_INITIALIZER
#define opal_thread_internal_mutex_init(mutex, is_recursive) pthread_mutex_init(mutex, NULL)
#define opal_thread_internal_mutex_lock pthread_mutex_lock
#define opal_thread_internal_mutex_trylock pthread_mutex_trylock
#define opal_thread_internal_mutex_unlock pthread_mutex_unlock
#define opal_thread_internal_mutex_destroy pthread_mutex_destroy
#define opal_thread_internal_cond_init(condition) pthread_cond_init(condition, NULL)
#define opal_thread_internal_cond_wait pthread_cond_wait
#define opal_thread_internal_cond_signal pthread_cond_signal
#define opal_thread_internal_cond_broadcast pthread_cond_broadcast
#define opal_thread_internal_cond_destroy pthread_cond_destroy

#endif
