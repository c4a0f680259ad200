// SPDX-License-Identifier: BSD-3-Clause
// A client of the launcher. A process can have only one: when the connection ends, the launcher assumes that the
// process has left the job. So the client outlives the plugin's instances and ends when the process ends. It is the
// plugin's only mutable object of static lifetime; its library must stay mapped (nodelete). Any thread.
#pragma once

#include <unistd.h>

#include <mutex>
#include <optional>

#include "npushmem/plugin/status.hpp"

namespace npushmem::launcher {

// Client: movable; static Result<Client> begin(Deadline); void end(), at the end of the process that began.
template <class Client>
class ProcessSingleton {
public:
    ProcessSingleton() = default;
    ProcessSingleton(const ProcessSingleton&) = delete;
    ProcessSingleton& operator=(const ProcessSingleton&) = delete;
    ~ProcessSingleton() {
        if (client_ && owner_ == ::getpid()) client_->end();
    }

    // Begins the client at the first call. After a failure it does not begin again, since the launcher has received the
    // first half. Returns the result of `use`.
    template <class Begin, class Use>
    auto with(Begin begin, Use use) -> decltype(use(std::declval<Client&>())) {
        const std::scoped_lock lock(mutex_);
        if (client_ && owner_ != ::getpid())
            return Status{Code::state,
                          "this process is a fork of one that the launcher has started, and not part of "
                          "the job itself"};
        if (!failure_.ok()) return failure_.within("as before");
        if (!client_) {
            auto begun = begin();
            if (!begun.ok()) return failure_ = begun.status();
            client_.emplace(std::move(begun).value());
            owner_ = ::getpid();
        }
        return use(*client_);
    }

private:
    std::mutex mutex_;
    std::optional<Client> client_;
    Status failure_;
    pid_t owner_ = 0;
};

}  // namespace npushmem::launcher
