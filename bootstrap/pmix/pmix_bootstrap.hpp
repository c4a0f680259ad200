// The bootstrap `pmix`: ranks started by a launcher that speaks PMIx, by its library.
#pragma once

#include <memory>
#include <string>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::pmix {

class PmixBootstrap {
public:
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

}  // namespace npushmem::pmix
