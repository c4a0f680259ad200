// A client of the launcher, which a process can be only once: the launcher takes the end of the conversation for the
// end of the process's part in the job. So the conversation outlives the plugin's instances and is ended when the
// process ends. The plugin's one mutable object of static lifetime; its library must stay mapped (nodelete). Any
// thread.
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

    // Begins when there is no client yet; a beginning that failed is not tried again, since the launcher has heard the
    // first half of it. What `use` returns.
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
