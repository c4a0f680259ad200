// The caches of all ports of a PE. The limit of locked memory is the process', so whoever has no room to register more
// asks all of them for some.
#pragma once

#include <memory>
#include <vector>

#include "transports/verbs/registration_cache.hpp"

namespace npushmem::verbs {

// One thread at a time, as its ports have one transport.
class RegistrationCaches {
public:
    // Asked from here on, for as long as its port has it.
    void add(const std::shared_ptr<RegistrationCache>& cache) { caches_.push_back(cache); }
    // True: something was given up.
    bool drop_unused() {
        bool dropped = false;
        std::erase_if(caches_, [&](const auto& each) {
            const auto cache = each.lock();
            if (cache) dropped = cache->drop_unused() || dropped;
            return !cache;
        });
        return dropped;
    }

private:
    std::vector<std::weak_ptr<RegistrationCache>> caches_;
};

}  // namespace npushmem::verbs
