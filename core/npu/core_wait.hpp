// A core in an operation of a transport: other cores run meanwhile.
#pragma once

#include "core/npu/runner.hpp"
#include "npushmem/npu/remote_operations.hpp"

namespace npushmem::npu::detail {

// For the current core of a runner; `where` is what the kernel is doing.
class CoreWait final : public RemoteWait {
public:
    CoreWait(CoreContext& core, const Where& where) : core_(core), where_(where) { core.used_transport = true; }

    Status until(const std::function<bool()>& ready, const char* what, int pe) override {
        if (ready()) return {};
        WaitPredicate predicate{ready, what, pe};
        return core_.runner->await_predicate(core_, predicate, where_);
    }
    [[nodiscard]] std::unique_ptr<RemoteCoreState>& core_state() override { return core_.remote; }

private:
    CoreContext& core_;
    const Where& where_;
};

}  // namespace npushmem::npu::detail
