/* A communicator's module. */
#ifndef POLYCAST_MODULE_H
#define POLYCAST_MODULE_H

#include "component.h"

typedef struct polycast_module {
    mca_coll_base_module_t super;
    mca_coll_base_comm_coll_t below; /* what would serve without us; the modules of what we took are kept */
    int is_enabled;
} polycast_module_t;

OBJ_CLASS_DECLARATION(polycast_module_t);

#endif
