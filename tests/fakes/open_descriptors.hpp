// SPDX-License-Identifier: BSD-3-Clause
// For tests that nothing leaks.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace npushmem {

// The number of this process's open descriptors. The one that reads them counts too.
inline std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace npushmem
