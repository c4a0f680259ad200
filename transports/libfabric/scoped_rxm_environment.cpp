#include "transports/libfabric/scoped_rxm_environment.hpp"

#include <cstdlib>

#include "core/base/rxm_variables.hpp"

namespace npushmem::libfabric {

ScopedRxmEnvironment::ScopedRxmEnvironment() {
    for (const auto& [name, value] : rxm_variables) {
        if (std::getenv(name) != nullptr || ::setenv(name, std::to_string(value).c_str(), 0) != 0) continue;
        names_.emplace_back(name);
    }
}

ScopedRxmEnvironment::~ScopedRxmEnvironment() {
    for (const std::string& name : names_) (void)::unsetenv(name.c_str());
}

}  // namespace npushmem::libfabric
