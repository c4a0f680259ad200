// SPDX-License-Identifier: BSD-3-Clause
#include "core/remote/npu_remote.hpp"

#include <fmt/format.h>

#include <utility>

namespace npushmem {

namespace {

// Indexed by RemoteAtomic::Kind.
constexpr std::uint8_t operations[] = {NPUSHMEM_ATOMIC_SET,       NPUSHMEM_ATOMIC_ADD,  NPUSHMEM_ATOMIC_FETCH,
                                       NPUSHMEM_ATOMIC_FETCH_ADD, NPUSHMEM_ATOMIC_SWAP, NPUSHMEM_ATOMIC_COMPARE_SWAP};

}  // namespace

RemoteAccess::WaitFunction wait_function_for(npu::RemoteWait& wait) {
    return [&wait](const std::function<bool()>& ready, const WaitFor& what) {
        return wait.until(ready, what.what, what.needs.count == 1 ? what.needs.at(0) : -1);
    };
}

Status NpuRemote::check(const void* address, std::size_t bytes) const {
    const std::uint64_t offset = offset_of(address);
    if (offset == no_offset) return {Code::not_symmetric, fmt::format("{} is not in symmetric memory", address)};
    const std::uint64_t room = addressing_.bytes_to_end(offset);
    if (bytes <= room) return {};
    return {Code::range, fmt::format("{} bytes at {} reach beyond symmetric memory, which ends {} bytes after it",
                                     bytes, address, room)};
}

npushmem_atomic NpuRemote::as_transport_atomic(const npu::RemoteAtomic& operation, int pe) const {
    npushmem_atomic op{};
    op.pe = pe;
    op.operation = operations[static_cast<std::size_t>(operation.kind)];
    op.width = static_cast<std::uint8_t>(operation.width);
    op.offset = offset_of(operation.object);
    op.operand = operation.operand;
    op.compare = operation.expected;
    return op;
}

struct NpuProxied::Core final : npu::RemoteCoreState {
    void begin_launch() override {
        if (!requester->take_failure().ok() || requester->finished() != posted) reset();
    }
    // Failures of operations in flight are dropped.
    void reset() {
        requester = std::make_shared<RequesterState>();
        posted = 0;
        target = -1;
        has_target = false;
    }

    // Records a request that concerns this PE; -1: all PEs.
    void add_target(int pe) {
        if (std::exchange(has_target, true) && pe != target)
            target = -1;
        else
            target = pe;
    }

    std::shared_ptr<RequesterState> requester = std::make_shared<RequesterState>();
    std::uint64_t posted = 0;  // requests so far
    // The only PE that requests since the last quiet concern; -1: several or none. If this PE dies, the awaited reply
    // cannot arrive; deaths of other PEs do not affect this core.
    int target = -1;
    bool has_target = false;
};

NpuProxied::NpuProxied(SliceAddressing places, RemotePeers& peers, const WaitBudget& budget, WaitOs& os)
    : NpuRemote(std::move(places)), peers_(peers), budget_(budget), os_(os) {}

NpuProxied::~NpuProxied() = default;

Result<proxy::Proxy*> NpuProxied::proxy() {
    // Acquire: pairs with the release below, so that the proxy is fully constructed.
    if (proxy::Proxy* const made = made_.load(std::memory_order_acquire); made != nullptr) return made;
    const std::lock_guard guard(lock_);
    if (!proxy_) {
        auto started = proxy::Proxy::start(peers_, budget_, os_);
        if (!started.ok()) return started.status();
        proxy_ = std::move(started).value();
        made_.store(proxy_.get(), std::memory_order_release);  // pairs with the acquire above
    }
    return proxy_.get();
}

NpuProxied::Core& NpuProxied::core_of(npu::RemoteWait& wait) {
    auto& own = wait.core_state();
    if (own == nullptr) own = std::make_unique<Core>();
    return static_cast<Core&>(*own);
}

Status NpuProxied::enqueue(Request& request, Core& core, npu::RemoteWait& wait) {
    if (request.kind != Request::Kind::fence && request.kind != Request::Kind::quiet) core.add_target(request.pe());

    const auto to = proxy();
    if (!to.ok()) return to.status();
    request.requester = core.requester;
    const auto pushed = [&] {
        return core.posted - core.requester->finished() < max_unfinished && to.value()->try_push(request);
    };
    Status waited = wait.until(pushed, "room for a request to the proxy", core.target);
    ++core.posted;
    if (!waited.ok()) core.reset();  // the request may have been enqueued anyway
    return waited;
}

Status NpuProxied::post(Request& request, npu::RemoteWait& wait) {
    Core& core = core_of(wait);
    if (Status failed = core.requester->take_failure(); !failed.ok()) return failed;
    const char* const what = request.name();
    return enqueue(request, core, wait).within(what);
}

Status NpuProxied::call(Request& request, int pe, npu::RemoteWait& wait, std::uint64_t* value) {
    Core& core = core_of(wait);
    if (Status failed = core.requester->take_failure(); !failed.ok()) return failed;
    const std::uint64_t number = request.number = core.posted + 1;
    const char* const what = request.name();
    if (Status queued = enqueue(request, core, wait); !queued.ok()) return queued.within(what);
    const std::shared_ptr<RequesterState> requester = core.requester;
    Status waited = wait.until([&] { return requester->answered(number); }, what, pe);
    if (!waited.ok()) {
        core.reset();
        return waited;
    }
    if (value != nullptr) *value = requester->value();
    return requester->answer();
}

Status NpuProxied::send_data(Request& request, npu::RemoteWait& wait) {
    if (request.transfer.data.bytes > Request::max_inline_bytes) return call(request, request.pe(), wait);
    request.copy_inline(request.transfer.data.local);
    return post(request, wait);
}

Status NpuProxied::put(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(target, bytes); !inside.ok()) return inside;
    Request request;
    request.kind = Request::Kind::put;
    // The table uses one structure for both directions; a put does not write to `local`.
    request.transfer.data = {pe, 0, 0, offset_of(target), const_cast<void*>(source), bytes};
    return send_data(request, wait);
}

Status NpuProxied::get(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(source, bytes); !inside.ok()) return inside;
    Request request;
    request.kind = Request::Kind::get;
    request.transfer.data = {pe, 0, 0, offset_of(source), target, bytes};
    return call(request, pe, wait);
}

Status NpuProxied::put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal,
                              std::uint64_t value, int pe, npu::RemoteWait& wait) {
    Status inside = check(target, bytes);
    if (inside.ok()) inside = check(signal, sizeof *signal);
    if (!inside.ok()) return inside;
    Request request;
    request.kind = Request::Kind::put_signal;
    request.transfer = {{pe, 0, 0, offset_of(target), const_cast<void*>(source), bytes},
                        0,
                        offset_of(signal),
                        value,
                        NPUSHMEM_SIGNAL_SET,
                        0};
    return send_data(request, wait);
}

Status NpuProxied::atomic(const npu::RemoteAtomic& operation, std::uint64_t* before, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(operation.object, operation.width); !inside.ok()) return inside;
    Request request;
    request.kind = Request::Kind::atomic;
    request.atomic = as_transport_atomic(operation, pe);
    return fetches(operation.kind) ? call(request, pe, wait, before) : post(request, wait);
}

Status NpuProxied::fence(npu::RemoteWait& wait) {
    Request request;
    request.kind = Request::Kind::fence;
    return post(request, wait);
}

Status NpuProxied::quiet(npu::RemoteWait& wait) {
    Request request;
    request.kind = Request::Kind::quiet;
    Core& core = core_of(wait);
    Status done = call(request, core.target, wait);
    if (!done.ok()) return done;
    core.target = -1;
    core.has_target = false;
    return core.requester->take_failure();
}

}  // namespace npushmem
