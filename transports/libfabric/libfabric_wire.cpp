#include "transports/libfabric/libfabric_wire.hpp"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace npushmem::libfabric {
namespace {

using network::Delivery;
using network::WireContext;

// Calls a libfabric function that creates an object.
template <class Call>
Status make(const char* what, Call&& call) {
    const int failed = call();
    if (failed == 0) return {};
    return {code_of_error(-failed), fmt::format("{}: {} ({})", what, fi_strerror(-failed), -failed)};
}

template <class Object, class Call>
Status make(const char* what, Owned<Object>& into, Call&& call) {
    Object* made = nullptr;
    Status done = make(what, [&] { return call(&made); });
    if (done.ok()) into.reset(made);
    return done;
}

}  // namespace

Code code_of_error(int error) {
    switch (error) {
        case FI_EAGAIN: return Code::again;
        case FI_ECONNREFUSED:
        case FI_ECONNRESET:
        case FI_ECONNABORTED:
        case FI_ENOTCONN:
        case FI_ESHUTDOWN:
        case EPIPE:
        case FI_EIO: return Code::peer_dead;
        case FI_EHOSTUNREACH:
        case FI_ENETUNREACH:
        case FI_EHOSTDOWN:
        case FI_EADDRNOTAVAIL: return Code::unreachable;
        case FI_ETIMEDOUT: return Code::timeout;
        case FI_ENOMEM: return Code::memory;
        case FI_EACCES:
        case FI_ENOKEY: return Code::range;  // memory that the peer does not offer (any more)
        case FI_ENOSYS:
        case FI_EOPNOTSUPP: return Code::unsupported;
        default: return Code::system;
    }
}

LibfabricWire::LibfabricWire(ChosenProvider provider, int npes)
    : info_(std::move(provider.info)),
      peers_(static_cast<std::size_t>(npes), FI_ADDR_UNSPEC),
      native_atomics_(provider.atomics) {
    traits_.name = "libfabric " + provider.note;
    traits_.protocol = fmt::format("libfabric {}, protocol {}.{}, addresses {}, {}{}", info_->fabric_attr->prov_name,
                                   info_->ep_attr->protocol, info_->ep_attr->protocol_version,
                                   fi_tostr(&info_->addr_format, FI_TYPE_ADDR_FORMAT),
                                   provider.delivery == Delivery::in_order ? "in order" : "delivery completion",
                                   provider.atomics ? ", native atomics" : "");
    traits_.delivery = provider.delivery;
    traits_.inject_bytes = info_->tx_attr->inject_size;
    traits_.message_bytes = message_bytes;
}

Result<std::unique_ptr<network::Wire>> LibfabricWire::open(ChosenProvider provider, int npes) {
    std::unique_ptr<LibfabricWire> wire(new LibfabricWire(std::move(provider), npes));
    if (Status opened = wire->open_all(); !opened.ok())
        return opened.within(fmt::format("cannot open {}", wire->traits_.name));
    return std::unique_ptr<network::Wire>(std::move(wire));
}

LibfabricWire::~LibfabricWire() {
    // Memory may be bound to the endpoint. Closing an endpoint drops its posted operations.
    memory_.clear();
    if (descriptor_ >= 0) ::close(descriptor_);
}

Status LibfabricWire::open_all() {
    Status s =
        make("fi_fabric", fabric_, [this](fid_fabric** out) { return fi_fabric(info_->fabric_attr, out, nullptr); });
    if (s.ok())
        s = make("fi_domain", domain_,
                 [this](fid_domain** out) { return fi_domain(fabric_.get(), info_.get(), out, nullptr); });
    if (s.ok())
        s = make("fi_av_open", addresses_, [this](fid_av** out) {
            fi_av_attr wanted{};
            wanted.type = FI_AV_TABLE;
            return fi_av_open(domain_.get(), &wanted, out, nullptr);
        });
    if (s.ok()) s = open_endpoints();
    if (s.ok() && native_atomics_) s = list_atomics();
    return s.ok() ? post_receives() : s;
}

Status LibfabricWire::open_completions(Owned<fid_cq>& into) {
    return make("fi_cq_open", into, [&](fid_cq** out) {
        fi_cq_attr wanted{};
        wanted.format = FI_CQ_FORMAT_MSG;
        wanted.wait_obj = wait_;
        wanted.size = info_->tx_attr->size + info_->rx_attr->size;
        return fi_cq_open(domain_.get(), &wanted, out, nullptr);
    });
}

Status LibfabricWire::open_endpoint(Owned<fid_ep>& endpoint, fid_cq& completions) {
    Status s = make("fi_endpoint", endpoint,
                    [this](fid_ep** out) { return fi_endpoint(domain_.get(), info_.get(), out, nullptr); });
    if (s.ok()) s = make("fi_ep_bind", [&] { return fi_ep_bind(endpoint.get(), &addresses_->fid, 0); });
    if (s.ok())
        s = make("fi_ep_bind", [&] { return fi_ep_bind(endpoint.get(), &completions.fid, FI_TRANSMIT | FI_RECV); });
    if (s.ok()) s = make("fi_enable", [&] { return fi_enable(endpoint.get()); });
    // libfabric sizes completion queues for FI_UNIVERSE_SIZE peers and ignores the device's limit.
    if (s.code() == Code::system && std::string_view(info_->fabric_attr->prov_name).starts_with("verbs"))
        return {s.code(),
                fmt::format("{}; if the device's completion queues are short, set FI_UNIVERSE_SIZE={}, which makes "
                            "libfabric request shorter ones",
                            s.message(), std::max<std::size_t>(peers_.size(), 4))};
    return s;
}

Status LibfabricWire::open_endpoints() {
    Status s = open_completions(completions_);
    if (!s.ok()) {
        wait_ = FI_WAIT_NONE;  // waiting threads poll then
        s = open_completions(completions_);
    }
    lanes_.resize(1);
    if (s.ok()) s = open_endpoint(receiver_, *completions_);
    if (s.ok()) s = open_endpoint(lanes_[0].sender, *completions_);
    if (s.ok() && wait_ == FI_WAIT_FD && !open_descriptor().ok()) {  // waiting threads poll then
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = -1;
        wait_objects_.clear();
    }
    return s;
}

Status LibfabricWire::open_descriptor() {
    descriptor_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (descriptor_ < 0) return {Code::system, fmt::format("epoll_create1: {}", std::strerror(errno))};
    return watch(*completions_);
}

Status LibfabricWire::watch(fid_cq& completions) {
    int events = -1;
    Status s = make("fi_control", [&] { return fi_control(&completions.fid, FI_GETWAIT, &events); });
    if (!s.ok()) return s;
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.fd = events;
    if (::epoll_ctl(descriptor_, EPOLL_CTL_ADD, events, &wanted) != 0)
        return {Code::system, fmt::format("epoll_ctl: {}", std::strerror(errno))};
    wait_objects_.push_back(&completions.fid);
    return {};
}

Status LibfabricWire::open_lane(Lane& lane) {
    Lane made;
    Status s = open_completions(made.completions);
    if (s.ok()) s = open_endpoint(made.sender, *made.completions);
    if (s.ok() && descriptor_ >= 0) s = watch(*made.completions);
    if (!s.ok()) return s;
    made.peers.resize(peers_.size());
    lane = std::move(made);
    return {};
}

LibfabricWire::Lane* LibfabricWire::lane_for(network::LaneId lane_id) {
    if (lane_id.lane == 0) return lanes_.data();
    if (lane_id.lane >= lanes_.size()) lanes_.resize(lane_id.lane + 1);
    Lane& lane = lanes_[lane_id.lane];
    if (!lane.sender) {
        Status s = open_lane(lane);
        if (!s.ok()) {
            last_error_ = fmt::format(
                "cannot open an endpoint for a context (NPUSHMEM_LIBFABRIC_LANES reduces their "
                "number): {}",
                s.message());
            code_ = s.code() == Code::again ? Code::system : s.code();
            return nullptr;
        }
    }
    lane.peers[static_cast<std::size_t>(lane_id.pe)] = true;
    return &lane;
}

void LibfabricWire::close(network::LaneId lane_id) {
    if (lane_id.lane >= lanes_.size() || !lanes_[lane_id.lane].sender) return;
    Lane& lane = lanes_[lane_id.lane];
    lane.peers[static_cast<std::size_t>(lane_id.pe)] = false;
    if (std::find(lane.peers.begin(), lane.peers.end(), true) != lane.peers.end()) return;
    std::erase(wait_objects_, &lane.completions->fid);
    lane.sender.reset();  // before the objects to which it is bound
    lane.completions.reset();
    for (Buffer& buffer : buffers_)
        if (buffer.busy && buffer.lane_id.lane == lane_id.lane) release(buffer);
}

void LibfabricWire::take(Buffer& buffer, network::LaneId lane_id, WireContext* atomic) {
    buffer.lane_id = lane_id;
    buffer.busy = true;
    buffer.atomic = atomic;
    free_sends_.pop_back();
}

void LibfabricWire::release(Buffer& buffer) {
    buffer.busy = false;
    free_sends_.push_back(&buffer);
}

Status LibfabricWire::post_receives() {
    for (std::size_t i = 0; i < receive_count; ++i) {
        Buffer& buffer = buffers_.emplace_back();
        buffer.owner = WireContext::Owner::wire;
        buffer.receives = true;
        if (post_receive(buffer) != Code::ok) return {Code::system, fmt::format("fi_recv: {}", last_error_)};
    }
    for (std::size_t i = 0; i < send_count; ++i) {
        Buffer& buffer = buffers_.emplace_back();
        buffer.owner = WireContext::Owner::wire;
        free_sends_.push_back(&buffer);
    }
    return {};
}

Result<Bytes> LibfabricWire::address() {
    std::size_t bytes = NPUSHMEM_ADDRESS_MAX;
    Bytes out(bytes);
    Status got = make("fi_getname", [&] { return fi_getname(&receiver_->fid, out.data(), &bytes); });
    if (!got.ok()) return got;
    out.resize(bytes);
    return out;
}

Status LibfabricWire::add_peer(int pe, std::span<const std::byte> address) {
    fi_addr_t made = FI_ADDR_UNSPEC;
    const int inserted = fi_av_insert(addresses_.get(), address.data(), 1, &made, 0, nullptr);
    if (inserted != 1)
        return {Code::unreachable, fmt::format("fi_av_insert: {}",
                                               inserted < 0 ? fi_strerror(-inserted) : "the address was not accepted")};
    peers_[static_cast<std::size_t>(pe)] = made;
    return {};
}

Result<network::WireMemory> LibfabricWire::register_memory(void* base, std::uint64_t bytes) {
    Owned<fid_mr> memory;
    const std::uint64_t number = ++last_memory_;
    constexpr std::uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
    Status s = make("fi_mr_reg", memory, [&](fid_mr** out) {
        return fi_mr_reg(domain_.get(), base, bytes, access, 0, number, 0, out, nullptr);
    });
    if (s.ok() && (info_->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
        s = make("fi_mr_bind", [&] { return fi_mr_bind(memory.get(), &receiver_->fid, 0); });
        if (s.ok()) s = make("fi_mr_enable", [&] { return fi_mr_enable(memory.get()); });
    }
    if (!s.ok()) return s;
    const std::uint64_t key = fi_mr_key(memory.get());
    network::WireMemory out{number, Bytes(sizeof key)};
    std::memcpy(out.key.data(), &key, sizeof key);
    memory_.emplace(number, std::move(memory));
    return out;
}

Result<std::uint64_t> LibfabricWire::import_key(int /*pe*/, std::span<const std::byte> bytes) {
    std::uint64_t key = 0;
    if (bytes.size() != sizeof key)
        return Status{Code::protocol, fmt::format("a key has {} bytes, expected {}", bytes.size(), sizeof key)};
    std::memcpy(&key, bytes.data(), sizeof key);
    return key;
}

}  // namespace npushmem::libfabric
