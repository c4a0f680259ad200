// Where the contexts lie that the program makes: its handles are their addresses.
#pragma once

#include <cstddef>
#include <deque>

#include "core/api/context.hpp"

namespace npushmem::api {

// Gives out the slots of context_slots; there is one of it at a time. One thread at a time, but for what
// known_context() reads.
class ContextSlots {
public:
    // An empty context; null when all are taken. One that was given back is taken only if `min_unused` of them are, or
    // no other is left, so that handles of contexts that were destroyed name none for as long.
    Context* acquire(std::size_t min_unused);
    // Leaves a context there that was destroyed.
    void release(Context& context);

    // All that have been taken hold nothing from now on.
    void clear();

private:
    std::size_t used_ = 0;
    std::deque<Context*> unused_;  // in the order in which they were given back
};

}  // namespace npushmem::api
