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
using network::RemoteAddress;
using network::WireContext;

// What the operations are to libfabric, by NPUSHMEM_ATOMIC_x.
struct FabricAtomic {
    fi_op operation;
    std::uint64_t form;  // 0: nothing comes back
};
constexpr std::array<FabricAtomic, NPUSHMEM_ATOMIC_COUNT> atomics{{{FI_ATOMIC_READ, FI_FETCH_ATOMIC},
                                                                   {FI_ATOMIC_WRITE, 0},
                                                                   {FI_SUM, 0},
                                                                   {FI_BAND, 0},
                                                                   {FI_BOR, 0},
                                                                   {FI_BXOR, 0},
                                                                   {FI_ATOMIC_WRITE, FI_FETCH_ATOMIC},
                                                                   {FI_CSWAP, FI_COMPARE_ATOMIC},
                                                                   {FI_SUM, FI_FETCH_ATOMIC},
                                                                   {FI_BAND, FI_FETCH_ATOMIC},
                                                                   {FI_BOR, FI_FETCH_ATOMIC},
                                                                   {FI_BXOR, FI_FETCH_ATOMIC}}};

// A call of libfabric that makes something.
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
                                   provider.delivery == Delivery::in_order ? "in order" : "delivery told",
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
    // Memory may be bound to the endpoint, and an endpoint that is closed forgets what was posted.
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

std::uint32_t LibfabricWire::atomics_on(fi_datatype type) const {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < atomics.size(); ++i) {
        fi_atomic_attr found{};
        if (fi_query_atomic(domain_.get(), type, atomics[i].operation, &found, atomics[i].form) == 0) out |= 1U << i;
    }
    return out;
}

Status LibfabricWire::list_atomics() {
    traits_.atomic_32 = atomics_on(FI_UINT32);
    traits_.atomic_64 = atomics_on(FI_UINT64);
    if (traits_.atomic_32 != 0 || traits_.atomic_64 != 0) return {};
    return {Code::unsupported,
            "it has no atomic operations on 32 or 64 bits, as NPUSHMEM_LIBFABRIC_NATIVE_ATOMICS=always asks for"};
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
    // libfabric makes completion queues for as many peers as it imagines, and does not ask the device for their limit.
    if (s.code() == Code::system && std::string_view(info_->fabric_attr->prov_name).starts_with("verbs"))
        return {s.code(), fmt::format("{}; where the device's completion queues are short, FI_UNIVERSE_SIZE={} makes "
                                      "libfabric ask for shorter ones",
                                      s.message(), std::max<std::size_t>(peers_.size(), 4))};
    return s;
}

Status LibfabricWire::open_endpoints() {
    Status s = open_completions(completions_);
    if (!s.ok()) {
        wait_ = FI_WAIT_NONE;  // then whoever waits for it naps
        s = open_completions(completions_);
    }
    lanes_.resize(1);
    if (s.ok()) s = open_endpoint(receiver_, *completions_);
    if (s.ok()) s = open_endpoint(lanes_[0].sender, *completions_);
    if (s.ok() && wait_ == FI_WAIT_FD && !open_descriptor().ok()) {  // then, too, whoever waits for it naps
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
                "an endpoint of its own cannot be opened for a context (fewer, shared ones: "
                "NPUSHMEM_LIBFABRIC_LANES): {}",
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
    lane.sender.reset();  // before what it is bound to
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

Code LibfabricWire::outcome(ssize_t result, const char* what) {
    if (result == 0) [[likely]]
        return Code::ok;
    if (result != -FI_EAGAIN) last_error_ = fmt::format("{}: {}", what, fi_strerror(static_cast<int>(-result)));
    return code_of_error(static_cast<int>(-result));
}

Code LibfabricWire::post_receive(Buffer& buffer) {
    return outcome(fi_recv(receiver_.get(), buffer.bytes.data(), buffer.bytes.size(), nullptr, FI_ADDR_UNSPEC,
                           static_cast<WireContext*>(&buffer)),
                   "fi_recv");
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
        return Status{Code::protocol, fmt::format("a key of {} bytes instead of {}", bytes.size(), sizeof key)};
    std::memcpy(&key, bytes.data(), sizeof key);
    return key;
}

std::uint64_t LibfabricWire::address_of(const RemoteAddress& place) const {
    const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    return (virtual_addresses ? place.base : 0) + place.offset;
}

Code LibfabricWire::write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    const Lane* const lane = lane_for(to.lane_id);
    if (lane == nullptr) return code_;
    iovec local{const_cast<void*>(from), bytes};
    fi_rma_iov remote{address_of(to), bytes, to.key};
    fi_msg_rma message{};
    message.msg_iov = &local;
    message.iov_count = 1;
    message.addr = peer(to.lane_id.pe);
    message.rma_iov = &remote;
    message.rma_iov_count = 1;
    message.context = &context;
    std::uint64_t flags = FI_COMPLETION;
    if (bytes <= traits_.inject_bytes) flags |= FI_INJECT;
    if (traits_.delivery == Delivery::on_completion) flags |= FI_DELIVERY_COMPLETE;
    return outcome(fi_writemsg(lane->sender.get(), &message, flags), "fi_writemsg");
}

Code LibfabricWire::read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) {
    const Lane* const lane = lane_for(from.lane_id);
    if (lane == nullptr) return code_;
    return outcome(
        fi_read(lane->sender.get(), to, bytes, nullptr, peer(from.lane_id.pe), address_of(from), from.key, &context),
        "fi_read");
}

Code LibfabricWire::send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    const std::size_t bytes = head.size() + rest.size();
    if (bytes > message_bytes) return Code::argument;
    if (free_sends_.empty()) return Code::again;
    const Lane* const lane = lane_for(lane_id);
    if (lane == nullptr) return code_;
    Buffer& buffer = *free_sends_.back();
    std::memcpy(buffer.bytes.data(), head.data(), head.size());
    if (!rest.empty()) std::memcpy(buffer.bytes.data() + head.size(), rest.data(), rest.size());
    if (bytes <= traits_.inject_bytes)
        return outcome(fi_inject(lane->sender.get(), buffer.bytes.data(), bytes, peer(lane_id.pe)), "fi_inject");
    const Code sent = outcome(fi_send(lane->sender.get(), buffer.bytes.data(), bytes, nullptr, peer(lane_id.pe),
                                      static_cast<WireContext*>(&buffer)),
                              "fi_send");
    if (sent == Code::ok) take(buffer, lane_id, nullptr);
    return sent;
}

// The numbers lie in the buffer until the operation is complete: operand, compare.
ssize_t LibfabricWire::post_atomic(fid_ep* endpoint, const RemoteAddress& at, const npushmem_atomic& op,
                                   Buffer& buffer) {
    const FabricAtomic& what = atomics[op.operation];
    std::memcpy(buffer.bytes.data(), &op.operand, sizeof op.operand);
    std::memcpy(buffer.bytes.data() + sizeof op.operand, &op.compare, sizeof op.compare);
    fi_ioc operand{buffer.bytes.data(), 1};
    fi_ioc compare{buffer.bytes.data() + sizeof op.operand, 1};
    fi_ioc result{op.result, 1};
    fi_rma_ioc remote{address_of(at), 1, at.key};
    fi_msg_atomic message{};
    message.msg_iov = &operand;
    message.iov_count = what.operation == FI_ATOMIC_READ ? 0 : 1;
    message.addr = peer(at.lane_id.pe);
    message.rma_iov = &remote;
    message.rma_iov_count = 1;
    message.datatype = op.width == sizeof(std::uint32_t) ? FI_UINT32 : FI_UINT64;
    message.op = what.operation;
    message.context = static_cast<WireContext*>(&buffer);
    constexpr std::uint64_t completion_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
    if (what.form == 0) return fi_atomicmsg(endpoint, &message, completion_flags);
    if (what.form == FI_FETCH_ATOMIC)
        return fi_fetch_atomicmsg(endpoint, &message, &result, nullptr, 1, completion_flags);
    return fi_compare_atomicmsg(endpoint, &message, &compare, nullptr, 1, &result, nullptr, 1, completion_flags);
}

Code LibfabricWire::atomic(const RemoteAddress& at, const npushmem_atomic& op, WireContext& context) {
    if (free_sends_.empty()) return Code::again;
    const Lane* const lane = lane_for(at.lane_id);
    if (lane == nullptr) return code_;
    Buffer& buffer = *free_sends_.back();
    const Code posted = outcome(post_atomic(lane->sender.get(), at, op, buffer), "fi_atomic");
    if (posted == Code::ok) take(buffer, at.lane_id, &context);
    return posted;
}

void LibfabricWire::completed(network::WireListener& listener, void* context, std::size_t bytes) {
    auto* const posted = static_cast<WireContext*>(context);
    if (posted->owner == WireContext::Owner::transport) return listener.completed(*posted, Code::ok, {});
    auto& buffer = static_cast<Buffer&>(*posted);
    if (!buffer.receives) {
        release(buffer);
        if (buffer.atomic != nullptr) listener.completed(*buffer.atomic, Code::ok, {});
        return;
    }
    listener.arrived(std::span(buffer.bytes).first(bytes));
    if (post_receive(buffer) != Code::ok) unposted_receives_.push_back(&buffer);
}

// True: there was one.
bool LibfabricWire::failed(network::WireListener& listener, fid_cq& completions) {
    fi_cq_err_entry error{};
    if (fi_cq_readerr(&completions, &error, 0) < 1) return false;
    const std::string why = fmt::format("{} ({})", fi_strerror(error.err),
                                        fi_cq_strerror(&completions, error.prov_errno, error.err_data, nullptr, 0));
    auto* const posted = static_cast<WireContext*>(error.op_context);
    if (posted == nullptr) return true;
    const Code code = code_of_error(error.err);
    if (posted->owner == WireContext::Owner::transport) {
        listener.completed(*posted, code == Code::again ? Code::system : code, why);
        return true;
    }
    auto& buffer = static_cast<Buffer&>(*posted);
    if (buffer.receives) {
        unposted_receives_.push_back(&buffer);
    } else {
        release(buffer);
        if (buffer.atomic == nullptr)
            listener.lost(buffer.lane_id, code, why);
        else
            listener.completed(*buffer.atomic, code == Code::again ? Code::system : code, why);
    }
    return true;
}

bool LibfabricWire::poll(network::WireListener& listener, fid_cq& completions) {
    std::array<fi_cq_msg_entry, 16> entries;
    const ssize_t count = fi_cq_read(&completions, entries.data(), entries.size());
    if (count == -FI_EAVAIL) return failed(listener, completions);
    for (ssize_t i = 0; i < count; ++i) {
        const auto& entry = entries[static_cast<std::size_t>(i)];
        completed(listener, entry.op_context, entry.len);
    }
    return count > 0;
}

bool LibfabricWire::progress(network::WireListener& listener) {
    std::erase_if(unposted_receives_, [this](Buffer* buffer) { return post_receive(*buffer) == Code::ok; });
    bool happened = poll(listener, *completions_);
    // By number: what is told may post, and a lane may be made.
    for (std::size_t i = 1; i < lanes_.size(); ++i)
        if (lanes_[i].sender) happened = poll(listener, *lanes_[i].completions) || happened;
    return happened;
}

bool LibfabricWire::prepare_to_wait(network::WakeEvents /*what*/) {
    if (descriptor_ < 0) return true;
    return fi_trywait(fabric_.get(), wait_objects_.data(), static_cast<int>(wait_objects_.size())) == 0;
}

}  // namespace npushmem::libfabric
