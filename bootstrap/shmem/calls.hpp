// The few functions of OpenSHMEM that a start needs, as the library in this process has them.
#pragma once

#include <cstddef>

#include "npushmem/plugin/status.hpp"

namespace npushmem::shmem {

struct Calls {
    enum class Running { no, yes, unknown };

    // Code::state when there is no library, or it is npushmem's own.
    static Result<Calls> of_process();

    int (*my_pe)() = nullptr;
    int (*n_pes)() = nullptr;
    void* (*malloc)(std::size_t) = nullptr;
    void (*barrier_all)() = nullptr;
    void (*putmem)(void*, const void*, std::size_t, int) = nullptr;
    void (*fence)() = nullptr;
    void (*quiet)() = nullptr;
    void (*longlong_p)(long long*, long long, int) = nullptr;
    long long (*longlong_g)(const long long*, int) = nullptr;
    Running running = Running::unknown;  // not every library can be asked
};

}  // namespace npushmem::shmem
