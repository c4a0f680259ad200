// SPDX-License-Identifier: BSD-3-Clause
#include "transports/hccs/hccs_transport.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace npushmem {
namespace {

using hccs::Engines;
using hccs::Nanoseconds;

// The thread needs no timed work.
constexpr std::chrono::seconds idle_tick{10};

Nanoseconds steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace

Result<std::unique_ptr<Transport>> HccsTransport::open(const Host& host, const npushmem_transport_params& params) {
    auto settings = hccs::read_settings(host);
    if (!settings.ok()) return settings.status();
    if (settings.value().links.group_of(params.local_index) < 0)
        return Status{Code::config, fmt::format("PE {} drives NPU {} of its server, which is in no group of "
                                                "NPUSHMEM_HCCS_LINKS",
                                                params.pe, params.local_index)};
    auto memory = SharedMemoryTransport::open(host, params);
    if (!memory.ok()) return memory.status();
    auto wake_timer = WakeTimer::make();
    if (!wake_timer.ok()) return wake_timer.status();
    return std::unique_ptr<Transport>(std::make_unique<HccsTransport>(host, params, std::move(memory).value(),
                                                                      settings.value(), std::move(wake_timer).value()));
}

HccsTransport::HccsTransport(const Host& host, const npushmem_transport_params& params,
                             std::unique_ptr<Transport> memory, const hccs::Settings& settings, WakeTimer wake_timer)
    : host_(host),
      memory_(std::move(memory)),
      links_(params, settings),
      wake_timer_(std::move(wake_timer)),
      engines_(settings.engines, settings.depth, work()) {}

Engines::Work HccsTransport::work() {
    return {steady_now,
            [this](const PostedOperation& operation, Nanoseconds now) { return links_.begin(operation, now); },
            [this](Nanoseconds when) { wake_timer_.set(when); },
            [this](const PostedOperation& operation, std::uint64_t queue) {
                return operation.issue(*memory_, queue, nullptr);
            }};
}

Reach HccsTransport::reach(const npushmem_peer& peer) {
    Reach through_memory = memory_->reach(peer);
    return through_memory.reachable() ? links_.reach(peer, std::move(through_memory)) : through_memory;
}

Result<std::uint64_t> HccsTransport::import_memory(int pe, std::span<const std::byte> handle) {
    auto made = memory_->import_memory(pe, handle);
    if (made.ok() && !links_.is_mapped(pe)) unmapped_.insert(made.value());
    return made;
}

Code HccsTransport::release_memory(std::uint64_t remote) {
    unmapped_.erase(remote);
    return memory_->release_memory(remote);
}

Result<void*> HccsTransport::map(std::uint64_t remote) {
    if (!unmapped_.contains(remote)) return memory_->map(remote);
    return Status{Code::unsupported,
                  "memory behind a link that is timed or will fail is not mapped: the engines carry out every "
                  "access"};
}

Result<std::uint64_t> HccsTransport::create_queue() {
    auto made = memory_->create_queue();
    if (made.ok()) engines_.open_queue(made.value());
    return made;
}

Code HccsTransport::destroy_queue(std::uint64_t queue) {
    const Code closed = engines_.close_queue(queue);
    return closed == Code::ok ? memory_->destroy_queue(queue) : closed;
}

Code HccsTransport::post(std::uint64_t queue, const PostedOperation& operation, std::uint64_t* token) {
    std::call_once(thread_started_, [this] { start_thread(); });
    const Code code = engines_.post(queue, operation, token);
    if (code == Code::again) (void)run();  // so that a caller that only repeats its call finally succeeds
    return code;
}

Code HccsTransport::put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    return post(queue, {PostedPut{op}}, token);
}

Code HccsTransport::get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    return post(queue, {PostedGet{op}}, token);
}

Code HccsTransport::atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    return post(queue, {op}, token);
}

Code HccsTransport::put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
    return post(queue, {op}, token);
}

bool HccsTransport::run() {
    driven_.fetch_add(1, std::memory_order_relaxed);
    return engines_.run();
}

Code HccsTransport::quiet(std::uint64_t queue) {
    (void)run();
    const Code code = engines_.quiet(queue);
    return code == Code::ok ? memory_->quiet(queue) : code;
}

Code HccsTransport::test(std::uint64_t queue, std::uint64_t token) {
    (void)run();
    return engines_.test(queue, token);
}

Code HccsTransport::progress() { return run() ? Code::ok : Code::again; }

// Without the thread, engines run only while the program waits for them.
void HccsTransport::start_thread() {
    auto started =
        ProgressThread::start({[this] { return drive_for_thread(); },
                               [this] { return driven_.load(std::memory_order_relaxed); }, [] {}, idle_tick});
    if (started.ok())
        thread_ = std::move(started).value();
    else
        host_.log(LogLevel::warn, started.status().message());
}

int HccsTransport::drive_for_thread() {
    wake_timer_.clear();
    engines_.woken();
    (void)engines_.run();
    return wake_timer_.descriptor();
}

}  // namespace npushmem
