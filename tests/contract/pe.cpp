// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/pe.hpp"

#include <atomic>
#include <thread>

namespace npushmem::contract {
namespace {

// Set before the threads of a case start.
std::atomic<std::chrono::milliseconds> current_wait_timeout{std::chrono::seconds(20)};

}  // namespace

std::chrono::milliseconds wait_timeout() { return current_wait_timeout.load(std::memory_order_relaxed); }
void set_wait_timeout(std::chrono::milliseconds limit) { current_wait_timeout.store(limit, std::memory_order_relaxed); }

Pe::~Pe() {
    for (const auto& [pe, remote] : remote_) (void)transport_->release_memory(remote);
    if (queue_ != 0) (void)transport_->destroy_queue(queue_);
    if (region_ != 0) (void)transport_->deregister_memory(region_);
}

Result<Pe::ConnectInfo> Pe::publish() {
    auto address = transport_->address();
    if (!address.ok()) return address.status().within("address");
    auto registered = transport_->register_memory(slice_->describe());
    if (!registered.ok()) return registered.status().within("register_memory");
    region_ = registered.value().region;
    handle_ = registered.value().handle;
    auto queue = transport_->create_queue();
    if (!queue.ok()) return queue.status().within("create_queue");
    queue_ = queue.value();
    return ConnectInfo{std::move(address).value(), handle_};
}

Status Pe::connect(npushmem_peer peer, const ConnectInfo& info) {
    peer.struct_size = sizeof peer;
    peer.address = info.address.data();
    peer.address_bytes = static_cast<std::uint32_t>(info.address.size());
    const Reach reach = transport_->reach(peer);
    reach_[peer.pe] = reach;
    if (!reach.reachable()) return {};
    if (Status connected = transport_->connect(peer); !connected.ok()) return connected.within("connect");
    auto imported = transport_->import_memory(peer.pe, info.handle);
    if (!imported.ok()) return imported.status().within("import_memory");
    remote_[peer.pe] = imported.value();
    return {};
}

void Pe::poll_once() {
    if (transport_->progress() == Code::again) std::this_thread::yield();
    if (wait_hook_) wait_hook_();
}

Code Pe::repeat(const std::function<Code()>& call) {
    Deadline deadline;
    for (;;) {
        const Code code = call();
        if (code != Code::again) return code;
        if (deadline.expired()) return Code::timeout;
        poll_once();
    }
}

Code Pe::until(const std::function<bool()>& done) {
    return repeat([&] { return done() ? Code::ok : Code::again; });
}

npushmem_rma Pe::rma(int pe, std::uint64_t offset, void* local, std::uint64_t bytes) const {
    return {pe, 0, remote(pe), offset, local, bytes};
}

npushmem_atomic Pe::atomic_op(int pe, std::uint64_t offset, std::uint8_t operation, std::uint8_t width) const {
    npushmem_atomic op{};
    op.pe = pe;
    op.operation = operation;
    op.width = width;
    op.remote = remote(pe);
    op.offset = offset;
    return op;
}

Code Pe::put(int pe, std::uint64_t offset, const void* from, std::uint64_t bytes, std::uint64_t* token,
             std::uint64_t queue) {
    const npushmem_rma op = rma(pe, offset, const_cast<void*>(from), bytes);  // a put does not write its source
    return repeat([&] { return transport_->put(or_own(queue), op, token); });
}

Code Pe::get(int pe, std::uint64_t offset, void* to, std::uint64_t bytes, std::uint64_t* token, std::uint64_t queue) {
    const npushmem_rma op = rma(pe, offset, to, bytes);
    return repeat([&] { return transport_->get(or_own(queue), op, token); });
}

Code Pe::atomic(const npushmem_atomic& op, std::uint64_t* token, std::uint64_t queue) {
    return repeat([&] { return transport_->atomic(or_own(queue), op, token); });
}

Code Pe::put_signal(const npushmem_put_signal& op, std::uint64_t* token) {
    return repeat([&] { return transport_->put_signal(queue_, op, token); });
}

Code Pe::put_strided(const npushmem_put_strided& op, std::uint64_t* token) {
    return repeat([&] { return transport_->put_strided(queue_, op, token); });
}

Code Pe::fence(std::uint64_t queue) {
    return repeat([&] { return transport_->fence(or_own(queue)); });
}

Code Pe::quiet(std::uint64_t queue) {
    return repeat([&] { return transport_->quiet(or_own(queue)); });
}

Code Pe::wait(std::uint64_t token, std::uint64_t queue) {
    if (token == 0) return Code::ok;
    return repeat([&] { return transport_->test(or_own(queue), token); });
}

}  // namespace npushmem::contract
