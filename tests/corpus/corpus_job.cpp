// SPDX-License-Identifier: BSD-3-Clause
// One launch of a kernel of the corpus in a job, without or with its mistake. Each PE prints what the launch reports.
//     corpus_job <kernel> right|wrong <deadline of the launch in seconds>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "npushmem.h"
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

class JobHost final : public Host {
public:
    [[nodiscard]] int my_pe() const override { return npushmem_my_pe(); }
    Word* allocate(std::size_t words, const SourceLocation& /*where*/) override {
        return static_cast<Word*>(npushmem_malloc(words * sizeof(Word)));
    }
    void release(Word* memory) override { npushmem_free(memory); }
};

void run(const Kernel& kernel, const Memory& memory, bool wrong, std::chrono::seconds deadline) {
    const int me = npushmem_my_pe();
    LaunchConfig config(kernel.blocks != nullptr ? kernel.blocks(me, wrong) : kernel.setup.blocks);
    config.timeout = deadline;
    Stream& stream = device().default_stream();
    Status status = launch(stream, config, [&](Core& core) { kernel.run(core, memory, wrong); });
    if (status.ok()) status = stream.synchronize();
    const std::string text = (status.ok() ? "nothing found" : status.message()) + "\n";
    static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
    static_cast<void>(std::fflush(stdout));
}

template <class T>
T* allocate(std::size_t count) {
    return static_cast<T*>(npushmem_calloc(count, sizeof(T)));
}

int main_of(const Kernel& kernel, bool wrong, std::chrono::seconds deadline) {
    npushmem_init();
    Memory memory{allocate<Word>(data_words), allocate<Word>(signal_lines * words_per_line),
                  allocate<BarrierState>(barrier_states), nullptr};
    JobHost host;
    if (kernel.prepare != nullptr) memory.prepared = kernel.prepare(host, wrong);
    npushmem_barrier_all();
    run(kernel, memory, wrong, deadline);
    npushmem_barrier_all();
    npushmem_finalize();
    return 0;
}

}  // namespace
}  // namespace npushmem::npu::corpus

int main(int argc, char** argv) {
    using npushmem::npu::corpus::kernels;
    if (argc != 4) return 2;
    const auto found =
        std::ranges::find_if(kernels(), [&](const auto& kernel) { return std::strcmp(kernel.name, argv[1]) == 0; });
    if (found == kernels().end()) return 2;
    return npushmem::npu::corpus::main_of(*found, std::strcmp(argv[2], "wrong") == 0,
                                          std::chrono::seconds(std::atoi(argv[3])));
}
