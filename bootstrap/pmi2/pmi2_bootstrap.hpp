// The bootstrap `pmi2`: ranks started by a launcher that speaks the PMI-2 wire protocol.
#pragma once

#include <memory>
#include <string>

#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::pmi2 {

class Pmi2Bootstrap {
public:
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params);
    static int recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why);
};

}  // namespace npushmem::pmi2
