// Equal pieces of registered memory.
#pragma once

#include <cstddef>
#include <vector>

#include "transports/verbs/opened_port.hpp"

namespace npushmem::verbs {

class BufferPool {
public:
    // `port` outlives the pool.
    static Result<std::unique_ptr<BufferPool>> make(OpenedPort& port, std::size_t count, std::size_t bytes) {
        std::unique_ptr<BufferPool> out(new BufferPool(count, bytes));
        auto made = port.register_memory(out->memory_.data(), out->memory_.size(), IBV_ACCESS_LOCAL_WRITE);
        if (!made.ok()) return made.status();
        out->registered_ = std::move(made).value();
        for (std::size_t i = count; i > 0; --i) out->free_.push_back(out->at(i - 1));
        return out;
    }

    [[nodiscard]] std::byte* at(std::size_t index) { return memory_.data() + index * bytes_; }
    [[nodiscard]] std::size_t index_of(const std::byte* buffer) const {
        return static_cast<std::size_t>(buffer - memory_.data()) / bytes_;
    }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint32_t lkey() const { return registered_->lkey; }
    // Null: all are in use.
    [[nodiscard]] std::byte* take() {
        if (free_.empty()) return nullptr;
        std::byte* const out = free_.back();
        free_.pop_back();
        return out;
    }
    void release(std::byte* buffer) { free_.push_back(buffer); }

private:
    BufferPool(std::size_t count, std::size_t bytes) : bytes_(bytes), memory_(count * bytes) {}

    std::size_t bytes_;
    std::vector<std::byte> memory_;
    std::vector<std::byte*> free_;
    Owned<ibv_mr> registered_;
};

}  // namespace npushmem::verbs
