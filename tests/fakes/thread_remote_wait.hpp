// SPDX-License-Identifier: BSD-3-Clause
// A thread in place of a core: it polls until the test cancels it.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "npushmem/npu/remote_operations.hpp"

namespace npushmem::fakes {

class ThreadRemoteWait final : public npu::RemoteWait {
public:
    Status until(const std::function<bool()>& ready, const char* what, int pe) override {
        while (!ready()) {
            // Acquire: pairs with the test's store.
            const Code code = end_with.load(std::memory_order_acquire);
            if (code != Code::ok) return {code, std::string("ended: ") + what + " " + std::to_string(pe)};
            waiting.store(true, std::memory_order_release);  // pairs with the test's load
            std::this_thread::yield();
        }
        return {};
    }
    [[nodiscard]] std::unique_ptr<npu::RemoteCoreState>& core_state() override { return own_; }

    std::atomic<Code> end_with{Code::ok};
    std::atomic<bool> waiting{false};  // true once it waits

private:
    std::unique_ptr<npu::RemoteCoreState> own_;
};

}  // namespace npushmem::fakes
