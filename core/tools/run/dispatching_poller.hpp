// SPDX-License-Identifier: BSD-3-Clause
// Waits for descriptors and calls their handlers: one thread, level-triggered.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "core/base/poller.hpp"

namespace npushmem::run {

class DispatchingPoller {
public:
    using Handler = std::function<void(std::uint32_t events)>;

    static Result<DispatchingPoller> open();

    // `events` as for epoll. The caller keeps ownership of the descriptor and must remove it before closing it.
    Status add(int fd, std::uint32_t events, Handler handler);
    void remove(int fd);

    // Calls the handlers of all descriptors that are ready, in the order in which they became ready. Waits up to
    // `timeout` for the first one (none: without limit). A handler may add and remove descriptors.
    void run_once(std::optional<std::chrono::milliseconds> timeout);

private:
    explicit DispatchingPoller(Poller poller) : poller_(std::move(poller)) {}

    Poller poller_;  // its keys are the descriptors
    std::map<int, Handler> handlers_;
};

}  // namespace npushmem::run
