#include "transports/hccs/hccs_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace npushmem {
namespace {

using hccs::Direction;
using hccs::Engines;
using hccs::LinkKind;
using hccs::Nanoseconds;

// The address of a PE. Fixed layout in native byte order, because only processes of one machine exchange it.
struct Address {
    static constexpr std::uint32_t magic_value = 0x53434348;  // "HCCS"
    std::uint32_t magic;
    std::int32_t npu;
};
static_assert(sizeof(Address) == 8);

// A further event drops the oldest.
constexpr std::size_t max_events = 64;
// The thread needs no timed work.
constexpr std::chrono::seconds idle_tick{10};

Nanoseconds steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

// The load of an operation on a link.
struct Load {
    const char* name;
    Direction direction;
    std::uint64_t bytes;
};

Load load_of(const PostedOperation& operation) {
    constexpr std::uint64_t signal_bytes = 8;
    if (const auto* put = std::get_if<PostedPut>(&operation.what)) return {"a put", Direction::out, put->op.bytes};
    if (const auto* get = std::get_if<PostedGet>(&operation.what)) return {"a get", Direction::in, get->op.bytes};
    if (const auto* atomic = std::get_if<npushmem_atomic>(&operation.what))
        return {"an atomic", Direction::out, atomic->width};
    return {"a put with signal", Direction::out,
            std::get<npushmem_put_signal>(operation.what).data.bytes + signal_bytes};
}

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
    auto wake_timer = hccs::WakeTimer::make();
    if (!wake_timer.ok()) return wake_timer.status();
    return std::unique_ptr<Transport>(std::make_unique<HccsTransport>(
        host, params, std::move(memory).value(), std::move(settings).value(), std::move(wake_timer).value()));
}

HccsTransport::HccsTransport(const Host& host, const npushmem_transport_params& params,
                             std::unique_ptr<Transport> memory, hccs::Settings settings, hccs::WakeTimer wake_timer)
    : host_(host),
      my_pe_(params.pe),
      npu_(params.local_index),
      settings_(std::move(settings)),
      memory_(std::move(memory)),
      peers_(static_cast<std::size_t>(std::max(params.npes, 0))),
      clock_(settings_.speeds),
      wake_timer_(std::move(wake_timer)),
      engines_(settings_.engines, settings_.depth, work()) {}

Engines::Work HccsTransport::work() {
    return {steady_now, [this](const PostedOperation& operation, Nanoseconds now) { return begin(operation, now); },
            [this](Nanoseconds when) { wake_timer_.set(when); },
            [this](const PostedOperation& operation, std::uint64_t queue) {
                return operation.issue(*memory_, queue, nullptr);
            }};
}

Result<Bytes> HccsTransport::address() {
    const Address mine{Address::magic_value, npu_};
    Bytes out(sizeof mine);
    std::memcpy(out.data(), &mine, sizeof mine);
    return out;
}

Result<int> HccsTransport::npu_of(const npushmem_peer& peer) const {
    if (peer.pe == my_pe_) return npu_;
    Address theirs{};
    if (peer.address == nullptr || peer.address_bytes != sizeof theirs)
        return Status{Code::unreachable, "the peer has not opened this transport"};
    std::memcpy(&theirs, peer.address, sizeof theirs);
    if (theirs.magic != Address::magic_value)
        return Status{Code::protocol, "the peer's address is not an address of hccs"};
    return theirs.npu;
}

std::uint64_t HccsTransport::limit_of(const hccs::Path& path) const {
    const auto [low, high] = std::minmax(path.near, path.far);
    for (const auto& link : settings_.failed)
        if (link.low == low && link.high == high) return link.after;
    return unlimited;
}

bool HccsTransport::has_deferred_link_failure() const {
    return std::any_of(settings_.failed.begin(), settings_.failed.end(),
                       [](const hccs::FailedLink& link) { return link.after > 0; });
}

Reach HccsTransport::reach(const npushmem_peer& peer) {
    Reach out = memory_->reach(peer);
    if (!out.reachable()) return out;
    const auto npu = npu_of(peer);
    if (!npu.ok()) return {0, 0, 0, npu.status().message()};
    const auto path = settings_.links.between(npu_, npu.value());
    if (!path.ok()) return {0, 0, 0, path.status().message()};
    const std::uint64_t limit = limit_of(path.value());
    if (limit == 0)
        return {0, 0, 0,
                fmt::format("{} (NPU {} of PE {} to NPU {} of PE {}) is down, as NPUSHMEM_HCCS_FAIL requests",
                            path.value().name(), npu_, my_pe_, npu.value(), peer.pe)};
    const bool mapped = path.value().kind == LinkKind::none || (!settings_.timed && !has_deferred_link_failure());
    if (peer.pe >= 0 && static_cast<std::size_t>(peer.pe) < peers_.size())
        peers_[static_cast<std::size_t>(peer.pe)] = {path.value(), 0, limit, mapped};
    out.why = path.value().name();
    if (mapped) return out;
    out.capabilities &= ~static_cast<std::uint64_t>(NPUSHMEM_CAP_MAP);
    out.why += settings_.timed ? ", timed" : ", not mapped, because a link will fail";
    return out;
}

Result<std::uint64_t> HccsTransport::import_memory(int pe, std::span<const std::byte> handle) {
    auto made = memory_->import_memory(pe, handle);
    const auto index = static_cast<std::size_t>(pe);
    if (made.ok() && index < peers_.size() && !peers_[index].mapped) unmapped_.insert(made.value());
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

Engines::Start HccsTransport::begin(const PostedOperation& operation, Nanoseconds now) {
    const int pe = operation.pe();
    // Memory rejects an unknown PE when the operation executes.
    if (pe < 0 || static_cast<std::size_t>(pe) >= peers_.size()) return {};
    Peer& peer = peers_[static_cast<std::size_t>(pe)];
    if (peer.transfers >= peer.fails_after) {
        report_link_failure(pe, peer, operation);
        return {Code::unreachable, Nanoseconds{0}};
    }
    ++peer.transfers;
    if (!settings_.timed) return {};
    const Load load = load_of(operation);
    return {Code::ok, clock_.transfer(peer.path, load.direction, load.bytes, now)};
}

void HccsTransport::report_link_failure(int pe, const Peer& peer, const PostedOperation& operation) {
    const Load load = load_of(operation);
    const std::string text = fmt::format(
        "{} between PE {} (NPU {}) and PE {} (NPU {}) is down, as NPUSHMEM_HCCS_FAIL requests: {} of {} bytes was not "
        "carried out",
        peer.path.name(), my_pe_, peer.path.near, pe, peer.path.far, load.name, load.bytes);
    npushmem_event event{};
    event.struct_size = sizeof event;
    event.code = static_cast<std::int32_t>(Code::unreachable);
    event.pe = pe;
    text.copy(event.message, sizeof event.message - 1);
    const std::lock_guard lock(events_lock_);
    if (events_.size() >= max_events) events_.pop_front();
    events_.push_back(event);
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

Code HccsTransport::poll_event(npushmem_event& out) {
    const std::lock_guard lock(events_lock_);
    if (events_.empty()) return Code::again;
    const std::uint32_t size = out.struct_size;
    out = events_.front();
    out.struct_size = size;
    events_.pop_front();
    return Code::ok;
}

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
