// Opening and closing: the context, workers, endpoints and memory.
#include "transports/ucx/ucx_wire.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "transports/ucx/ucx_api.hpp"

namespace npushmem::ucx {
namespace {

using network::WireContext;

constexpr std::chrono::seconds close_timeout{10};

Status system_failure(const char* what) {
    return {Code::system, fmt::format("{} for UCX: {}", what, std::strerror(errno))};
}

struct ReleaseConfig {
    void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};
using Config = std::unique_ptr<ucp_config_t, ReleaseConfig>;

Status set_config(const Config& config, const char* name, const std::string& value) {
    if (value.empty()) return {};
    const ucs_status_t done = ucp_config_modify(config.get(), name, value.c_str());
    return done == UCS_OK ? Status{} : failure(fmt::format("UCX_{}={}", name, value).c_str(), done);
}

// Peers get network addresses only (address()), so UCX never uses its shared memory. Without it UCX allocates no
// segments, which would remain as files /dev/shm/ucx_shm_posix_* after a process is killed.
Status leave_out_shared_memory(const Config& config) {
    const ucs_status_t done = ucp_config_modify(config.get(), "SHM_DEVICES", "");
    return done == UCS_OK ? Status{} : failure("UCX_SHM_DEVICES=", done);
}

}  // namespace

Result<std::unique_ptr<network::Wire>> UcxWire::open(const UcxOptions& options, int npes) {
    std::unique_ptr<UcxWire> wire(new UcxWire(npes));
    wire->options_text_ =
        fmt::format("with NPUSHMEM_UCX_TLS='{}' and NPUSHMEM_UCX_NET_DEVICES='{}'; ucx_info -d lists the devices",
                    options.transports, options.devices);
    if (Status opened = wire->open_all(options); !opened.ok())
        return Status{opened.code(), fmt::format("cannot open UCX {}: {} ({})", ucp_get_version_string(),
                                                 opened.message(), wire->options_text_)};
    return std::unique_ptr<network::Wire>(std::move(wire));
}

// UCX 1.13 aborts the peer's process when a connection is closed while it is being established. So this waits for such
// connections, up to a deadline, because the peer may be dead.
UcxWire::~UcxWire() {
    const auto deadline = std::chrono::steady_clock::now() + close_timeout;
    for (const Lane& lane : lanes_)
        for (const auto& [pe, peer] : lane.peers) flush_endpoint(lane, peer, deadline);
    // Closes the first worker last: it helps to establish and close connections of the others.
    for (auto lane = lanes_.rbegin(); lane != lanes_.rend(); ++lane) close_worker(*lane);
    if (context_ != nullptr) {
        for (auto& [number, memory] : memory_) (void)ucp_mem_unmap(context_, memory);
        ucp_cleanup(context_);
    }
    if (descriptor_ >= 0) ::close(descriptor_);
    if (event_fd_ >= 0) ::close(event_fd_);
}

// Also drives the first worker: the peer's side of a connection waits for its answers.
bool UcxWire::drive(const Lane& lane) {
    bool active = ucp_worker_progress(lane.worker) != 0;
    if (lane.worker != lanes_[0].worker) active = ucp_worker_progress(lanes_[0].worker) != 0 || active;
    return active;
}

void UcxWire::flush_endpoint(const Lane& lane, const Peer& peer, std::chrono::steady_clock::time_point deadline) {
    if (peer.endpoint == nullptr || peer.lost) return;
    const ucp_request_param_t plain{};
    const ucs_status_ptr_t flush = ucp_ep_flush_nbx(peer.endpoint, &plain);
    if (flush == nullptr || UCS_PTR_IS_ERR(flush)) return;
    while (ucp_request_check_status(flush) == UCS_INPROGRESS && !peer.lost &&
           std::chrono::steady_clock::now() < deadline)
        if (!drive(lane)) std::this_thread::yield();
    ucp_request_free(flush);
}

// Drops the operations in flight: their callers have finished waiting.
void UcxWire::disconnect(const Lane& lane, ucp_ep_h endpoint) {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t closing = ucp_ep_close_nbx(endpoint, &how);
    if (closing == nullptr || UCS_PTR_IS_ERR(closing)) return;
    const auto deadline = std::chrono::steady_clock::now() + close_timeout;
    while (ucp_request_check_status(closing) == UCS_INPROGRESS && std::chrono::steady_clock::now() < deadline)
        (void)drive(lane);
    ucp_request_free(closing);  // UCX frees the request when it completes
}

void UcxWire::close_worker(Lane& lane) {
    for (const auto& [number, key] : lane.keys) ucp_rkey_destroy(key);
    for (const auto& [pe, peer] : lane.peers)
        if (peer.endpoint != nullptr) disconnect(lane, peer.endpoint);
    if (lane.worker != nullptr) ucp_worker_destroy(lane.worker);
    lane = {};
}

void UcxWire::close(network::LaneId lane_id) {
    if (lane_id.lane >= lanes_.size()) return;
    Lane& lane = lanes_[lane_id.lane];
    const auto found = lane.peers.find(lane_id.pe);
    if (found == lane.peers.end()) return;
    flush_endpoint(lane, found->second, std::chrono::steady_clock::now() + close_timeout);
    std::erase_if(lane.keys, [&](const auto& made) {
        const bool of_the_peer = keys_.at(made.first).pe == lane_id.pe;
        if (of_the_peer) ucp_rkey_destroy(made.second);
        return of_the_peer;
    });
    disconnect(lane, found->second.endpoint);
    forget_events(lane_id);
    lane.peers.erase(found);
    if (lane.peers.empty()) close_worker(lane);
}

// Drops the failures of messages that closing the lane has cancelled. Operations are still reported.
void UcxWire::forget_events(network::LaneId lane_id) {
    std::erase_if(events_, [&](const Event& event) {
        if (event.context == nullptr) return event.lane_id == lane_id;  // a message that has arrived has no lane
        if (event.context->owner != WireContext::Owner::wire) return false;
        auto& buffer = static_cast<Buffer&>(*event.context);
        if (buffer.lane_id != lane_id) return false;
        free_sends_.push_back(&buffer);
        return true;
    });
}

Status UcxWire::open_all(const UcxOptions& options) {
    Status s = open_context(options);
    lanes_.resize(1);
    if (s.ok()) s = open_worker(lanes_[0]);
    if (s.ok()) s = set_message_handler();
    if (s.ok()) s = open_descriptor();
    if (!s.ok()) return s;
    for (std::size_t i = 0; i < send_count; ++i) {
        buffers_.emplace_back();
        buffers_.back().owner = WireContext::Owner::wire;
        free_sends_.push_back(&buffers_.back());
    }
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    ucp_get_version(&major, &minor, &release);
    traits_.name = fmt::format("UCX {}.{}.{}", major, minor, release);
    if (!options.transports.empty()) traits_.name += " TLS=" + options.transports;
    if (!options.devices.empty()) traits_.name += " on " + options.devices;
    // The wire format is stable within a minor version.
    traits_.protocol = fmt::format("ucx {}.{}{}", major, minor, options.atomics ? ", native atomics" : "");
    if (options.atomics)
        for (int operation = 0; operation < NPUSHMEM_ATOMIC_COUNT; ++operation)
            if (atomic_of(operation)) traits_.atomic_64 |= 1U << operation;
    traits_.delivery = network::Delivery::on_flush;
    traits_.message_bytes = message_bytes;
    if (is_tcp_only(transports_of(info_of(context_)))) traits_.write_as_message_bytes = max_write_as_message;
    return {};
}

Status UcxWire::open_context(const UcxOptions& options) {
    ucp_config_t* read = nullptr;
    if (const ucs_status_t done = ucp_config_read(nullptr, nullptr, &read); done != UCS_OK)
        return failure("ucp_config_read", done);
    const Config config(read);
    Status s = set_config(config, "TLS", options.transports);
    if (s.ok()) s = set_config(config, "NET_DEVICES", options.devices);
    if (s.ok()) s = leave_out_shared_memory(config);
    if (!s.ok()) return s;
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP | (options.atomics ? UCP_FEATURE_AMO64 : 0);
    params.estimated_num_eps = static_cast<std::size_t>(npes_);
    const ucs_status_t done = ucp_init(&params, config.get(), &context_);
    return done == UCS_OK ? Status{} : failure("ucp_init", done);
}

Status UcxWire::open_worker(Lane& lane) {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    const ucs_status_t done = ucp_worker_create(context_, &params, &lane.worker);
    if (done == UCS_OK) return {};
    lane.worker = nullptr;
    return failure("ucp_worker_create", done);
}

Status UcxWire::set_message_handler() {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                         UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = message_id;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG;
    handler.cb = &on_message;
    handler.arg = this;
    const ucs_status_t done = ucp_worker_set_am_recv_handler(lanes_[0].worker, &handler);
    return done == UCS_OK ? Status{} : failure("ucp_worker_set_am_recv_handler", done);
}

Status UcxWire::open_descriptor() {
    event_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    descriptor_ = event_fd_ >= 0 ? ::epoll_create1(EPOLL_CLOEXEC) : -1;
    if (descriptor_ < 0) return system_failure("cannot create a descriptor to wait on");
    Status s = watch(event_fd_);
    return s.ok() ? watch(lanes_[0]) : s;
}

Status UcxWire::watch(int descriptor) {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.fd = descriptor;
    return ::epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &wanted) == 0 ? Status{} : system_failure("epoll_ctl");
}

// UCX closes the worker's descriptor with the worker.
Status UcxWire::watch(const Lane& lane) {
    int events = -1;
    const ucs_status_t done = ucp_worker_get_efd(lane.worker, &events);
    return done == UCS_OK ? watch(events) : failure("ucp_worker_get_efd", done);
}

Status UcxWire::open_lane(Lane& lane) {
    Status s = open_worker(lane);
    if (s.ok()) s = watch(lane);
    if (!s.ok()) {
        close_worker(lane);
        return s.within("cannot open a worker for a context (NPUSHMEM_UCX_LANES reduces their number)");
    }
    return s;
}

Result<Bytes> UcxWire::address() {
    ucp_worker_attr_t found{};
    found.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
    found.address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY;
    if (const ucs_status_t done = ucp_worker_query(lanes_[0].worker, &found); done != UCS_OK)
        return failure("ucp_worker_query", done);
    const auto* const bytes = reinterpret_cast<const std::byte*>(found.address);
    Bytes out(bytes, bytes + found.address_length);
    ucp_worker_release_address(lanes_[0].worker, found.address);
    return out;
}

Status UcxWire::add_peer(int pe, std::span<const std::byte> address) {
    addresses_.insert_or_assign(pe, Bytes(address.begin(), address.end()));
    Status s = connect(lanes_[0], {pe});
    if (!s.ok()) addresses_.erase(pe);
    return s;
}

Status UcxWire::connect(Lane& lane, network::LaneId lane_id) {
    Peer& made = lane.peers[lane_id.pe];
    made.wire = this;
    made.lane_id = lane_id;
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(addresses_.at(lane_id.pe).data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {&on_lost, &made};
    const ucs_status_t done = ucp_ep_create(lane.worker, &params, &made.endpoint);
    if (done == UCS_OK) return {};
    lane.peers.erase(lane_id.pe);
    return {code_of_status(done), fmt::format("ucp_ep_create: {} ({})", text_of(done), options_text_)};
}

Result<network::WireMemory> UcxWire::register_memory(void* base, std::uint64_t bytes) {
    ucp_mem_map_params_t params{};
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.address = base;
    params.length = bytes;
    params.flags = UCP_MEM_MAP_NONBLOCK;  // a program uses only a small part of its heap
    ucp_mem_h memory = nullptr;
    if (const ucs_status_t done = ucp_mem_map(context_, &params, &memory); done != UCS_OK)
        return failure("ucp_mem_map", done);
    void* packed = nullptr;
    std::size_t length = 0;
    if (const ucs_status_t done = ucp_rkey_pack(context_, memory, &packed, &length); done != UCS_OK) {
        (void)ucp_mem_unmap(context_, memory);
        return failure("ucp_rkey_pack", done);
    }
    const auto* const key = static_cast<const std::byte*>(packed);
    network::WireMemory out{++last_number_, Bytes(key, key + length)};
    ucp_rkey_buffer_release(packed);
    memory_.emplace(out.number, memory);
    return out;
}

void UcxWire::deregister_memory(std::uint64_t number) {
    const auto found = memory_.find(number);
    if (found == memory_.end()) return;
    (void)ucp_mem_unmap(context_, found->second);
    memory_.erase(found);
}

// Unpacks the key for the first lane at once, so that a malformed key is reported here.
Result<std::uint64_t> UcxWire::import_key(int pe, std::span<const std::byte> bytes) {
    keys_.emplace(++last_number_, ImportedKey{pe, Bytes(bytes.begin(), bytes.end())});
    if (key_for({{pe}, last_number_, 0, 0}) != nullptr) return last_number_;
    keys_.erase(last_number_);
    return Status{code_, last_error_};
}

void UcxWire::release_key(std::uint64_t number) {
    for (Lane& lane : lanes_) {
        const auto found = lane.keys.find(number);
        if (found == lane.keys.end()) continue;
        ucp_rkey_destroy(found->second);
        lane.keys.erase(found);
    }
    keys_.erase(number);
}

}  // namespace npushmem::ucx
