// SPDX-License-Identifier: BSD-3-Clause
// A kernel of the corpus in a job, first without its mistake, then with it. Each line of output begins with "right: "
// or "wrong: ".
//     corpus_job <kernel>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "npushmem.h"
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {
namespace {

void print(const std::string& prefix, const std::string& text) {
    std::string lines;
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) lines += prefix + line + "\n";
    static_cast<void>(std::fwrite(lines.data(), 1, lines.size(), stdout));
    static_cast<void>(std::fflush(stdout));
}

void run(const Kernel& kernel, const Memory& memory, bool wrong) {
    const int me = npushmem_my_pe();
    LaunchConfig config(kernel.blocks != nullptr ? kernel.blocks(me, wrong) : kernel.setup.blocks);
    // Long for a kernel that ends; a kernel with the mistake may wait for ever.
    config.timeout = wrong ? std::chrono::seconds(2) : std::chrono::seconds(30);
    Stream& stream = device().default_stream();
    Status status = launch(stream, config, [&](Core& core) { kernel.run(core, memory, wrong); });
    if (status.ok()) status = stream.synchronize();
    print(wrong ? "wrong: " : "right: ", status.ok() ? "nothing found" : status.message());
}

template <class T>
T* allocate(std::size_t count) {
    return static_cast<T*>(npushmem_calloc(count, sizeof(T)));
}

int main_of(const Kernel& kernel) {
    npushmem_init();
    for (const bool wrong : {false, true}) {
        const Memory memory{allocate<Word>(data_words), allocate<Word>(signal_lines * words_per_line),
                            allocate<BarrierState>(barrier_states), nullptr};
        npushmem_barrier_all();
        run(kernel, memory, wrong);
        npushmem_barrier_all();
    }
    npushmem_finalize();
    return 0;
}

}  // namespace
}  // namespace npushmem::npu::corpus

int main(int argc, char** argv) {
    using npushmem::npu::corpus::kernels;
    const auto found = std::ranges::find_if(
        kernels(), [&](const auto& kernel) { return argc == 2 && std::strcmp(kernel.name, argv[1]) == 0; });
    return found == kernels().end() ? 2 : npushmem::npu::corpus::main_of(*found);
}
