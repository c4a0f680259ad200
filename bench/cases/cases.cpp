// SPDX-License-Identifier: BSD-3-Clause
// The list of cases. To add one: declare it, and name it below.
#include "bench/cases/case.hpp"

namespace npushmem::bench {

Case atomics_case();
Case barrier_case();
Case contended_atomics_case();
Case contexts_case();
Case get_blocks_case();
Case get_words_case();
Case inlined_case();
Case malloc_case();
Case npu_barrier_case();
Case npu_case();
Case npu_remote_case();
Case pingpong_case();
Case put_blocks_case();
Case put_words_case();

std::vector<Case> all_cases() {
    return {put_words_case(),   put_blocks_case(),        get_words_case(), get_blocks_case(),
            atomics_case(),     contended_atomics_case(), inlined_case(),   contexts_case(),
            pingpong_case(),    barrier_case(),           malloc_case(),    npu_case(),
            npu_barrier_case(), npu_remote_case()};
}

std::vector<Group> all_groups() {
    return {
        {"put", "Put: single words with and without completion, and bandwidth; beside stores and memcpy"},
        {"get", "Get: single words and bandwidth; beside loads and memcpy"},
        {"atomics", "Atomic operations, alone and contended; beside the same instruction in this process"},
        {"inlined", "Words to another PE with npushmem/inline.h; beside the library's functions and bare instructions"},
        {"contexts", "Contexts: puts, atomics and quiet through one; beside the same on the default context"},
        {"pingpong", "A signal from PE 0 to PE 1 and back; beside the bare hand-over of a cache line"},
        {"barrier", "Barrier and sync of all PEs; beside a barrier of bare mapped words"},
        {"malloc", "Symmetric allocation; beside its barriers, and malloc of one process"},
        {"npu", "The emulated NPU in fast mode; beside the same in plain C++, and the host's barrier"},
        {"npu-remote",
         "Operations of kernels on a PE that is not mapped: by a proxy thread; beside direct mode and the host's "
         "calls"}};
}

}  // namespace npushmem::bench
