// The bootstrap `pmi`: ranks started by a launcher that speaks the PMI-1 wire protocol.
#pragma once

#include <memory>
#include <string>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::pmi {

class PmiBootstrap {
public:
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

}  // namespace npushmem::pmi
