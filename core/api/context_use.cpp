#include "core/api/context_use.hpp"

#include <fmt/core.h>

namespace npushmem::api {

ContextUse::Call::Call(const Context& context) : use_(context.use) {
    if (use_ == nullptr) return;
    const int others = use_->active_calls_.fetch_add(1, std::memory_order_relaxed);
    const char* wrong = nullptr;
    if ((use_->options_ & NPUSHMEM_CTX_PRIVATE) != 0 && std::this_thread::get_id() != use_->owner_thread_)
        wrong = "was made with NPUSHMEM_CTX_PRIVATE, by another thread; each thread makes its own";
    else if (others > 0)
        wrong = "was made with NPUSHMEM_CTX_SERIALIZED or _PRIVATE, and another thread is inside a call on it";
    if (wrong != nullptr)
        status_ = {Code::argument, fmt::format("the context {}, on PE {}, {}", static_cast<const void*>(&context),
                                               use_->my_pe_, wrong)};
}

ContextUse::Call::~Call() {
    if (use_ != nullptr) use_->active_calls_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace npushmem::api
