// SPDX-License-Identifier: BSD-3-Clause
// The contract suites: every rule of transport.h, bootstrap.h and collectives.h that a test can observe, as GoogleTest
// cases for a class of one's own. Link npushmem::testing, and put one line into a test program whose main() calls
// RUN_ALL_TESTS:
//
//     NPUSHMEM_TRANSPORT_CONTRACT(MyTransport);
//     NPUSHMEM_BOOTSTRAP_CONTRACT(MyBootstrap);
//     NPUSHMEM_COLLECTIVES_CONTRACT(MyCollectives);
//
// Members of the subject follow the class, in the order of their declaration:
//
//     NPUSHMEM_TRANSPORT_CONTRACT(MyTransport, .name = "deep queue", .config = {{"MINE_DEPTH", "4096"}});
//
// Each case runs in a process of its own with a deadline, so a crash or a hang fails its case and no other. The process
// executes the test program again; main() must not consume its arguments before InitGoogleTest, and must do nothing
// that would disturb a second instance. The output of the process is printed if its case fails. A failure has the rule
// that the case tests, and the process, and the PE if the process is that of one PE.
//
// NPUSHMEM_CONTRACT_IN_PROCESS=1 runs the cases in the calling process, for a debugger; the processes of PEs and ranks
// are started nevertheless. NPUSHMEM_CONTRACT_VERBOSE=1 prints all output as it is written.
//
// npushmem-contract-transport, -bootstrap and -collectives run the same cases over a built plugin.
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
#include <vector>

#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"
#include "npushmem/plugin/collectives.hpp"
#include "npushmem/plugin/collectives_export.hpp"
#include "npushmem/plugin/table_bootstrap.hpp"
#include "npushmem/plugin/table_collectives.hpp"
#include "npushmem/plugin/table_transport.hpp"
#include "npushmem/plugin/transport.hpp"
#include "npushmem/plugin/transport_export.hpp"

namespace npushmem::contract {

// What the transport suite tests.
struct TransportSubject {
    // In the names of the test suites, "<name>/one_file" and "<name>/own_files". The macro's default: the class's name.
    std::string name = {};
    // Opens one instance, as transport.h describes. Called in each process of a case, once per PE that is there. The
    // macro's default: the class's `open`, through a table, as from a plugin.
    std::function<Result<std::unique_ptr<Transport>>(const npushmem_host&, const npushmem_transport_params&)> open = {};
    // NPUSHMEM_CAP_x that the plugin declares: no peer may offer more. Default: not known, which skips this check. The
    // macro's default: the class's static constant `capabilities`, if it has one.
    std::uint64_t capabilities = ~std::uint64_t{0};
    // Variables that the transport reads, without NPUSHMEM_. The host knows no others: it has no configuration rows, so
    // `Host::config` returns its second argument for them.
    std::map<std::string, std::string> config = {};
    // Number of the transport's devices that each PE uses; 0: the transport chooses.
    std::uint32_t devices = 0;
    // Limit of each wait for something that the transport must bring about.
    std::chrono::milliseconds wait_timeout = std::chrono::seconds(20);
    // A case that takes longer fails.
    std::chrono::seconds deadline = std::chrono::seconds(120);
};

// What the bootstrap suite tests.
struct BootstrapSubject {
    // The macro's default: the class's name.
    std::string name = {};
    // Joins the job, as bootstrap.h describes `open`. The macro's default: the class's `open`, through a table.
    std::function<Result<std::unique_ptr<Bootstrap>>(const npushmem_host&, const npushmem_bootstrap_params&)> open = {};
    // Makes an id; Code::unsupported if the bootstrap makes none. The macro's default: the class's `get_uniqueid`.
    std::function<Status(const npushmem_host&, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES>)> get_uniqueid = {};
    std::map<std::string, std::string> config = {};
    // The largest number of ranks of a case.
    int max_ranks = 64;
    std::chrono::seconds deadline = std::chrono::seconds(120);
};

// What the suite of collectives tests. Its PEs are threads of the case's process, so it is for libraries that can have
// several instances in a process; for others npushmem-contract-collectives runs under a launcher.
struct CollectivesSubject {
    // The macro's default: the class's name.
    std::string name = {};
    // Opens the library of one PE. The macro's default: the class's `open`, through a table.
    std::function<Result<std::unique_ptr<Collectives>>(const npushmem_host&, const npushmem_collectives_params&)> open =
        {};
    std::map<std::string, std::string> config = {};
    std::vector<int> pes = {2, 3, 5};  // numbers of PEs, 2 to 6
    std::chrono::seconds deadline = std::chrono::seconds(120);
};

// Adds the cases to GoogleTest. Call before RUN_ALL_TESTS; the macros call it before main.
void add_transport_contract(TransportSubject subject);
void add_bootstrap_contract(BootstrapSubject subject);
void add_collectives_contract(CollectivesSubject subject);

// What the macros below are made of.
namespace detail {

// "MyTransport" for "mine::MyTransport": colons separate the patterns of a filter.
inline std::string unqualified(std::string name) {
    const auto last = name.rfind(':');
    return last == std::string::npos ? name : name.substr(last + 1);
}

// The table has all capabilities, so that the suite sees what `reach` really returns.
template <class Class>
Result<std::unique_ptr<Transport>> open_transport_through_table(const npushmem_host& host,
                                                                const npushmem_transport_params& params) {
    static const npushmem_transport_v1 table = [] {
        npushmem_transport_v1 out{};
        ::npushmem::detail::TransportTrampolines::fill(out);
        out.name = "transport";
        out.summary = "";
        out.capabilities = ~std::uint64_t{0};
        out.open = [](const npushmem_host* its_host, const npushmem_transport_params* its_params, void** self,
                      npushmem_error* error) -> std::int32_t {
            return ::npushmem::detail::open_transport<Class>(its_host, its_params, self, error, "transport");
        };
        return out;
    }();
    void* self = nullptr;
    npushmem_error error{};
    const std::int32_t code = table.open(&host, &params, &self, &error);
    if (code != NPUSHMEM_OK) return status_from(code, error);
    return std::unique_ptr<Transport>(std::make_unique<TableTransport>(table, self, TableTransport::Owning::yes));
}

template <class Class>
TransportSubject transport_subject(const char* name, TransportSubject given) {
    if (given.name.empty()) given.name = unqualified(name);
    if (!given.open) given.open = open_transport_through_table<Class>;
    if constexpr (requires { std::uint64_t{Class::capabilities}; }) {
        if (given.capabilities == ~std::uint64_t{0}) given.capabilities = Class::capabilities;
    }
    return given;
}

template <class Class>
Result<std::unique_ptr<Bootstrap>> open_bootstrap_through_table(const npushmem_host& host,
                                                                const npushmem_bootstrap_params& params) {
    static const npushmem_bootstrap_v1 table = [] {
        using T = ::npushmem::detail::BootstrapTrampolines;
        npushmem_bootstrap_v1 out{};
        out.struct_size = sizeof out;
        out.major = NPUSHMEM_BOOTSTRAP_MAJOR;
        out.minor = NPUSHMEM_BOOTSTRAP_MINOR;
        out.name = "bootstrap";
        out.summary = "";
        out.open = [](const npushmem_host* its_host, const npushmem_bootstrap_params* its_params, void** self,
                      std::int32_t* rank, std::int32_t* nranks, npushmem_error* error) -> std::int32_t {
            return ::npushmem::detail::open_bootstrap<Class>(its_host, its_params, self, rank, nranks, error,
                                                             "bootstrap");
        };
        out.close = T::close;
        out.allgather = T::allgather;
        out.barrier = T::barrier;
        out.abort = T::abort;
        out.check = T::check;
        return out;
    }();
    void* self = nullptr;
    std::int32_t rank = -1;
    std::int32_t nranks = -1;
    npushmem_error error{};
    const std::int32_t code = table.open(&host, &params, &self, &rank, &nranks, &error);
    if (code != NPUSHMEM_OK) return status_from(code, error);
    return std::unique_ptr<Bootstrap>(std::make_unique<TableBootstrap>(table, self, rank, nranks));
}

template <class Class>
Status make_uniqueid_through_table(const npushmem_host& host, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
    npushmem_error error{};
    return status_from(::npushmem::detail::make_uniqueid<Class>(&host, id.data(), &error, "bootstrap"), error);
}

template <class Class>
BootstrapSubject bootstrap_subject(const char* name, BootstrapSubject given) {
    if (given.name.empty()) given.name = unqualified(name);
    if (!given.open) given.open = open_bootstrap_through_table<Class>;
    if (!given.get_uniqueid) given.get_uniqueid = make_uniqueid_through_table<Class>;
    return given;
}

template <class Class>
Result<std::unique_ptr<Collectives>> open_collectives_through_table(const npushmem_host& host,
                                                                    const npushmem_collectives_params& params) {
    static const npushmem_collectives_v1 table = [] {
        npushmem_collectives_v1 out{};
        ::npushmem::detail::CollectivesTrampolines::fill(out);
        out.name = "collectives";
        out.summary = "";
        out.open = [](const npushmem_host* its_host, const npushmem_collectives_params* its_params, void** self,
                      npushmem_error* error) -> std::int32_t {
            return ::npushmem::detail::open_collectives<Class>(its_host, its_params, self, error, "collectives");
        };
        return out;
    }();
    void* self = nullptr;
    npushmem_error error{};
    const std::int32_t code = table.open(&host, &params, &self, &error);
    if (code != NPUSHMEM_OK) return status_from(code, error);
    return std::unique_ptr<Collectives>(std::make_unique<TableCollectives>(table, self));
}

template <class Class>
CollectivesSubject collectives_subject(const char* name, CollectivesSubject given) {
    if (given.name.empty()) given.name = unqualified(name);
    if (!given.open) given.open = open_collectives_through_table<Class>;
    return given;
}

}  // namespace detail
}  // namespace npushmem::contract

#define NPUSHMEM_CONTRACT_PASTE_AGAIN_(a, b) a##b
#define NPUSHMEM_CONTRACT_PASTE_(a, b) NPUSHMEM_CONTRACT_PASTE_AGAIN_(a, b)
#define NPUSHMEM_CONTRACT_REGISTERED_ NPUSHMEM_CONTRACT_PASTE_(npushmem_contract_registered_, __LINE__)
// The empty last argument lets the list of members be empty.
#define NPUSHMEM_TRANSPORT_CONTRACT_(Class, ...)                                                              \
    [[maybe_unused]] static const bool NPUSHMEM_CONTRACT_REGISTERED_ =                                        \
        (::npushmem::contract::add_transport_contract(::npushmem::contract::detail::transport_subject<Class>( \
             #Class, ::npushmem::contract::TransportSubject{__VA_ARGS__})),                                   \
         true)
#define NPUSHMEM_BOOTSTRAP_CONTRACT_(Class, ...)                                                              \
    [[maybe_unused]] static const bool NPUSHMEM_CONTRACT_REGISTERED_ =                                        \
        (::npushmem::contract::add_bootstrap_contract(::npushmem::contract::detail::bootstrap_subject<Class>( \
             #Class, ::npushmem::contract::BootstrapSubject{__VA_ARGS__})),                                   \
         true)

#define NPUSHMEM_COLLECTIVES_CONTRACT_(Class, ...)                                                                \
    [[maybe_unused]] static const bool NPUSHMEM_CONTRACT_REGISTERED_ =                                            \
        (::npushmem::contract::add_collectives_contract(::npushmem::contract::detail::collectives_subject<Class>( \
             #Class, ::npushmem::contract::CollectivesSubject{__VA_ARGS__})),                                     \
         true)

// NPUSHMEM_TRANSPORT_CONTRACT(Class, .member = value...): adds the cases for a class that has the static function
// `open` of transport.hpp. The calls pass through a table and its trampolines, as with a plugin.
#define NPUSHMEM_TRANSPORT_CONTRACT(...) NPUSHMEM_TRANSPORT_CONTRACT_(__VA_ARGS__, )
// The same for a bootstrap: a class for NPUSHMEM_EXPORT_BOOTSTRAP.
#define NPUSHMEM_BOOTSTRAP_CONTRACT(...) NPUSHMEM_BOOTSTRAP_CONTRACT_(__VA_ARGS__, )
// The same for a library of collectives: a class for NPUSHMEM_EXPORT_COLLECTIVES.
#define NPUSHMEM_COLLECTIVES_CONTRACT(...) NPUSHMEM_COLLECTIVES_CONTRACT_(__VA_ARGS__, )
