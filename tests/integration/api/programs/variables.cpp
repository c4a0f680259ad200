// SPDX-License-Identifier: BSD-3-Clause
// One variable of this executable. "reached": the other PE's is accessible; "refused": it is not, as the test expects.
#include <cstdio>
#include <string_view>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"

static long variable;

int main(int, char** arguments) {
    const bool reached = std::string_view(arguments[1]) == "reached";
    if (npushmem_init_thread(NPUSHMEM_THREAD_SINGLE, nullptr) != 0) return 1;
    const int me = npushmem_my_pe();
    const int npes = npushmem_n_pes();
    auto* heap = static_cast<long*>(npushmem_calloc(1, sizeof(long)));
    npushmem_long_p(&variable, me + 1, (me + 1) % npes);
    const char* message = nullptr;
    const int code = npushmemx_last_error(&message);
    npushmemx_clear_error();
    npushmem_long_p(heap, me + 1, (me + 1) % npes);
    npushmem_barrier_all();
    const long left = (me + npes - 1) % npes + 1;
    bool right =
        *heap == left && (reached ? code == 0 && variable == left : code == NPUSHMEM_E_NOT_SYMMETRIC && variable == 0);
    if (!reached) {
        // Collective: refused by every PE that knows, before anybody waits for anybody.
        right = npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, &variable, heap, 1) == NPUSHMEM_E_NOT_SYMMETRIC && right;
        npushmemx_last_error(nullptr);  // a failed collective counts unless the program asks
        npushmemx_clear_error();
    }
    npushmem_finalize();
    return right ? 0 : 2;
}
