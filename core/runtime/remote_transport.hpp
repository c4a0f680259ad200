// Which transport serves PEs of other hosts when the user leaves that open (NPUSHMEM_REMOTE_TRANSPORT=auto): the first
// of NPUSHMEM_REMOTE_ORDER that every PE of the job can open.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/settings.hpp"
#include "core/runtime/start_request.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem {

struct RemoteTransportChoice {
    std::optional<OwnedTransport> transport;  // none: this PE got none, and `explanation` says why
    std::string explanation;                  // for people
};

// Collective over the job, which has several hosts. `served`: this PE's selection has a transport for other hosts
// already. `open` opens a transport by name. Where any PE's user decided otherwise, nothing is chosen for anybody.
Result<RemoteTransportChoice> choose_remote_transport(
    const Settings& settings, bool served, Bootstrap& bootstrap,
    const std::function<Result<OwnedTransport>(const std::string& name)>& open);

}  // namespace npushmem
