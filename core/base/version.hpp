// The library's version, for programs that must compare what they were built with to what they run on.
#pragma once

namespace npushmem {

struct Version {
    int major;
    int minor;
    int patch;
};

constexpr Version library_version{0, 1, 0};

}  // namespace npushmem
