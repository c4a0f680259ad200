/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "tests/integration/api/programs/selections.h"

_Static_assert(offsetof(npushmemx_route_t, struct_size) == 0, "the size comes first");
_Static_assert(offsetof(npushmemx_bootstrap_t, struct_size) == 0, "the size comes first");
_Static_assert(offsetof(npushmemx_nics_t, struct_size) == 0, "the size comes first");
_Static_assert(offsetof(npushmemx_barrier_choice_t, struct_size) == 0, "the size comes first");
_Static_assert(sizeof(npushmemx_nic_t) == 128, "arrays of other structures contain it");
_Static_assert(sizeof(((npushmemx_route_t*)0)->transport) == 64, "room for a name");

selections_layout selections_layout_in_c(void) {
    selections_layout layout = {sizeof(npushmemx_route_t),
                                sizeof(npushmemx_bootstrap_t),
                                sizeof(npushmemx_nics_t),
                                sizeof(npushmemx_barrier_choice_t),
                                offsetof(npushmemx_route_t, capabilities),
                                offsetof(npushmemx_route_t, peer_nics),
                                offsetof(npushmemx_barrier_choice_t, pes_per_core)};
    return layout;
}

int selections_old_route(int pe, char transport[64], uint32_t* written, unsigned char* after) {
    npushmemx_route_t route;
    memset(&route, 77, sizeof route);
    route.struct_size = offsetof(npushmemx_route_t, capabilities);
    const int code = npushmemx_get_route(pe, &route);
    *written = route.struct_size;
    *after = ((const unsigned char*)&route)[offsetof(npushmemx_route_t, capabilities)];
    memcpy(transport, route.transport, sizeof route.transport);
    return code;
}
