// The mappings of this process, as /proc/self/maps has them.
#pragma once

#include <functional>

#include "transports/verbs/memory_watch.hpp"

namespace npushmem::verbs {

struct ProcessMapping {
    AddressRange pages;
    bool private_anonymous = false;  // nobody else's, and no file's
};

// Calls `each` in the order of the addresses until it returns false. Takes and gives back no memory of its own: who
// holds malloc's locks may wait for the caller. Any thread; what changes meanwhile is seen before or after the change.
void for_each_mapping(const std::function<bool(const ProcessMapping&)>& each);

// Is all of it private memory that is no file's?
bool is_private_anonymous(const AddressRange& pages);

}  // namespace npushmem::verbs
