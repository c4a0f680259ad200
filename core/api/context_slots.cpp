#include "core/api/context_slots.hpp"

#include <cstring>
#include <new>

namespace npushmem::api {

// Zeros, which take no memory before a slot is used, and are a context that reaches nobody.
alignas(context_slot_bytes) std::byte context_slots[(max_contexts + 1) * context_slot_bytes];

Context* ContextSlots::acquire(std::size_t min_unused) {
    const bool fresh = used_ < max_contexts && unused_.size() <= min_unused;
    if (fresh) return new (context_slots + used_++ * context_slot_bytes) Context;
    if (unused_.empty()) return nullptr;
    Context* const context = unused_.front();
    unused_.pop_front();
    *context = {};
    return context;
}

void ContextSlots::release(Context& context) {
    context = {};
    context.state = Context::State::destroyed;
    unused_.push_back(&context);
}

void ContextSlots::clear() { std::memset(context_slots, 0, used_ * context_slot_bytes); }

}  // namespace npushmem::api
