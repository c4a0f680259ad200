// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap uid as one that makes no ids: its ranks find each other by NPUSHMEM_BOOTSTRAP_UID_SESSION_ID only.
#include "bootstrap/rendezvous/settings.hpp"
#include "bootstrap/uid/uid_bootstrap.hpp"
#include "npushmem/plugin/bootstrap_export.hpp"

namespace npushmem::contract {
namespace {

struct SessionBootstrap {
    static Result<std::unique_ptr<Bootstrap>> open(const Host& host, const npushmem_bootstrap_params& params) {
        return uid::UidBootstrap::open(host, params);
    }
};

}  // namespace
}  // namespace npushmem::contract

NPUSHMEM_EXPORT_BOOTSTRAP_WITH_CONFIG(npushmem::contract::SessionBootstrap, "session",
                                      "TCP rendezvous at a known address", npushmem::rendezvous::config_rows().data(),
                                      static_cast<uint32_t>(npushmem::rendezvous::config_rows().size()));
