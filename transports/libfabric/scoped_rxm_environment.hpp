// Makes libfabric's provider ofi_rxm allocate as many buffers as this transport needs.
#pragma once

#include <string>
#include <vector>

namespace npushmem::libfabric {

// While one exists, the environment holds the variables of ofi_rxm that bound its buffers. libfabric reads them at its
// first use in a process, and has no function to set them. Variables that are set already stay as they are: then this
// class does not change the environment. That is so in every PE of npushmem-run. Elsewhere no other thread may read or
// change the environment meanwhile, as README.md says to users.
class ScopedRxmEnvironment {
public:
    ScopedRxmEnvironment();
    ScopedRxmEnvironment(const ScopedRxmEnvironment&) = delete;
    ScopedRxmEnvironment& operator=(const ScopedRxmEnvironment&) = delete;
    ~ScopedRxmEnvironment();

private:
    std::vector<std::string> names_;  // of the variables that were not set before
};

}  // namespace npushmem::libfabric
