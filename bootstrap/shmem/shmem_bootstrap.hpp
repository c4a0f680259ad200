// The bootstrap `shmem`: the PEs of an OpenSHMEM program that runs on another library, in the same order.
#pragma once

#include <memory>
#include <string>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::shmem {

class ShmemBootstrap {
public:
    // Between the program's shmem_init and shmem_finalize.
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

}  // namespace npushmem::shmem
