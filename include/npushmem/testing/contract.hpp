// SPDX-License-Identifier: BSD-3-Clause
// The contract suites: every rule of transport.h and bootstrap.h that a test can observe, as GoogleTest cases for a
// class of one's own. Link npushmem::testing, and put one line into a test program whose main() calls RUN_ALL_TESTS:
//
//     NPUSHMEM_TRANSPORT_CONTRACT(MyTransport);
//     NPUSHMEM_BOOTSTRAP_CONTRACT(MyBootstrap);
//
// Each case runs in a process of its own with a deadline, so a crash or a hang fails its case and no other. The process
// executes the test program again; main() must not consume its arguments before InitGoogleTest, and must do nothing
// that would disturb a second instance. NPUSHMEM_CONTRACT_IN_PROCESS=1 runs the cases in the calling process, for a
// debugger.
//
// npushmem-contract-transport and npushmem-contract-bootstrap run the same cases over a built plugin.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/transport.hpp"

namespace npushmem::contract {

// What the transport suite tests.
struct TransportSubject {
    // In the names of the test suites, "<name>/one_file" and "<name>/own_files".
    std::string name;
    // Opens one instance, as transport.h describes. Called in each process of a case, once per PE that is there.
    std::function<Result<std::unique_ptr<Transport>>(const npushmem_host&, const npushmem_transport_params&)> open;
    // NPUSHMEM_CAP_x that the plugin declares: no peer may offer more. Default: not known, which skips this check.
    std::uint64_t capabilities = ~std::uint64_t{0};
    // Variables that the transport reads, without NPUSHMEM_.
    std::map<std::string, std::string> config = {};
    // Number of the transport's devices that each PE uses; 0: the transport chooses.
    std::uint32_t devices = 0;
    // Limit of each wait for something that the transport must bring about.
    std::chrono::milliseconds patience = std::chrono::seconds(20);
    // A case that takes longer fails.
    std::chrono::seconds deadline = std::chrono::seconds(120);
};

// What the bootstrap suite tests.
struct BootstrapSubject {
    std::string name;
    // Joins the job, as bootstrap.h describes `open`.
    std::function<Result<std::unique_ptr<Bootstrap>>(const npushmem_host&, const npushmem_bootstrap_params&)> open;
    // Makes an id; Code::unsupported if the bootstrap makes none.
    std::function<Status(const npushmem_host&, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES>)> get_uniqueid;
    std::map<std::string, std::string> config = {};
    // The largest number of ranks of a case.
    int max_ranks = 64;
    std::chrono::seconds deadline = std::chrono::seconds(120);
};

// Adds the cases to GoogleTest. Call before RUN_ALL_TESTS; the macros call it before main.
void add_transport_contract(TransportSubject subject);
void add_bootstrap_contract(BootstrapSubject subject);

}  // namespace npushmem::contract
