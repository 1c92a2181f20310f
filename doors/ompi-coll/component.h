/* mca_coll_polycast.so: polycast as a component of Open MPI's framework of collectives. */
#ifndef POLYCAST_COMPONENT_H
#define POLYCAST_COMPONENT_H

/* Open MPI's own headers come first: they configure the others. */
#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"

#include "entrance.h"

/* The door: NULL while nothing is served. Set when MPI has begun. */
extern const struct entrance *polycast_entrance;

/* module.c: what the component has for a communicator. */
mca_coll_base_module_t *polycast_module_new(void);
/* The MPI's own collectives, those of the component that would serve if there were no polycast. */
struct entries polycast_stock(void);

/* beginning.c: what is done when MPI begins. */

/* Before the ranks exchange how they are reached: this one has the component. */
void polycast_announce(void);
/* As the last thing in MPI_Init, on all ranks: they settle whether polycast serves. */
void polycast_begin_all(int argc, char **argv, int requested, int *provided);

#endif
