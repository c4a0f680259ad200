// SPDX-License-Identifier: BSD-3-Clause
// The library's version, for programs that compare it with the version they were built with.
#pragma once

namespace npushmem {

struct Version {
    int major;
    int minor;
    int patch;

    bool operator==(const Version&) const = default;
};

constexpr Version library_version{0, 2, 0};

}  // namespace npushmem
