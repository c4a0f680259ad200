// SPDX-License-Identifier: BSD-3-Clause
// The start request of a program, and the sources of bootstraps and transports.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/version.hpp"
#include "core/map/transport_map.hpp"
#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/collectives.hpp"

namespace npushmem {

using UniqueId = std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES>;

struct StartRequest {
    Version compiled_with = library_version;
    int rank = -1;
    int nranks = -1;
    std::optional<UniqueId> uniqueid;
    const void* attribute = nullptr;
    std::string bootstrap;    // that the program requests, unless the user names one; empty: any
    std::uint32_t world = 0;  // number of the world in this process; 0: the default one
};

// An open transport.
struct OwnedTransport {
    std::string name;  // as selected, for instance "fault(p2p)"
    std::unique_ptr<Transport> transport;
    bool remote = false;  // reaches PEs of other hosts
    bool pins = false;    // the heap's pages must not be replaced
    bool nics = false;    // drives NICs that are assigned to it
    std::string why{};    // the reason for the selection, for people; empty: given
};

// The bootstrap in use.
struct BootstrapSelection {
    std::string name = "given";
    std::string why;     // the reason for the choice, for people; empty: given
    int confidence = 0;  // with which the plugin recognised this process: 0 or one of NPUSHMEM_RECOGNISED_x
};

// An open library of collectives.
struct OwnedCollectives {
    std::string name;
    std::unique_ptr<Collectives> library;
};

// Opens bootstraps, transports and libraries of collectives: from plugins in a program, from mocks and fakes in tests.
class Sources {
public:
    Sources() = default;
    Sources(const Sources&) = delete;
    Sources& operator=(const Sources&) = delete;
    virtual ~Sources() = default;

    // May add the plugin's rows to `config`.
    virtual Result<std::unique_ptr<Bootstrap>> open_bootstrap(Config& config, const npushmem_host& host,
                                                              const npushmem_bootstrap_params& params) = 0;
    // Returns the opened bootstrap and the reason for the choice.
    [[nodiscard]] virtual BootstrapSelection bootstrap_selection() const { return {}; }
    // Returns the transports in the order in which to try them.
    virtual Result<std::vector<OwnedTransport>> open_transports(Config& config, const npushmem_host& host,
                                                                const npushmem_transport_params& params) = 0;
    // Opens one more transport by its name.
    virtual Result<OwnedTransport> open_transport(const std::string& name, Config& /*config*/,
                                                  const npushmem_host& /*host*/,
                                                  const npushmem_transport_params& /*params*/) {
        return Status{Code::plugin_missing, "there is no transport '" + name + "'"};
    }
    // Opens the library that COLL_LIBRARY names. Code::unsupported or Code::state: it cannot serve this job.
    virtual Result<OwnedCollectives> open_collectives(Config& config, const npushmem_host& /*host*/,
                                                      const npushmem_collectives_params& /*params*/) {
        return Status{Code::plugin_missing, "there is no collectives plugin '" + config.settings().coll_library + "'"};
    }
    // Returns the names of the libraries of collectives that there are. Reads directories.
    [[nodiscard]] virtual std::vector<std::string> collectives_names(const Config& /*config*/) const { return {}; }
    // Declares the variables of all plugin files on the search path, so that a misspelt variable is not taken for a
    // plugin's.
    virtual void declare_all(Config& /*config*/) {}
};

}  // namespace npushmem
