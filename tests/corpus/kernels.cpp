// SPDX-License-Identifier: BSD-3-Clause
#include "tests/corpus/kernels.hpp"

namespace npushmem::npu::corpus {

const std::vector<Kernel>& kernels() {
    static const std::vector<Kernel> all = [] {
        std::vector<Kernel> found;
        for (const auto& family :
             {buffer_kernels(), pipe_kernels(), flag_kernels(), cache_kernels(), line_kernels(), publication_kernels(),
              race_kernels(), address_kernels(), wait_kernels(), barrier_kernels()})
            found.insert(found.end(), family.begin(), family.end());
        return found;
    }();
    return all;
}

}  // namespace npushmem::npu::corpus
