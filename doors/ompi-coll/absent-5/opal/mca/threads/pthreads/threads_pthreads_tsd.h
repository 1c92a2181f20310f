/* As threads_pthreads_mutex.h. */
#ifndef POLYCAST_ABSENT_THREADS_PTHREADS_TSD_H
#define POLYCAST_ABSENT_THREADS_PTHREADS_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

#define opal_tsd_get(key, place) ((void)(*(place) = pthread_getspecific(key)), OPAL_SUCCESS)

#endif
