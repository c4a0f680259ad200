#include "transports/libfabric/libfabric_wire.hpp"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>

namespace npushmem::libfabric {
namespace {

using network::Delivery;
using network::RemotePlace;
using network::WireContext;

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
    : info_(std::move(provider.info)), peers_(static_cast<std::size_t>(npes), FI_ADDR_UNSPEC) {
    traits_.name = "libfabric " + provider.note;
    traits_.dialect = fmt::format("libfabric {}, protocol {}.{}, {}", info_->fabric_attr->prov_name,
                                  info_->ep_attr->protocol, info_->ep_attr->protocol_version,
                                  provider.delivery == Delivery::in_order ? "in order" : "delivery told");
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
    return s.ok() ? post_receives() : s;
}

Status LibfabricWire::open_completions(fi_wait_obj wait) {
    return make("fi_cq_open", completions_, [&](fid_cq** out) {
        fi_cq_attr wanted{};
        wanted.format = FI_CQ_FORMAT_MSG;
        wanted.wait_obj = wait;
        wanted.size = info_->tx_attr->size + info_->rx_attr->size;
        return fi_cq_open(domain_.get(), &wanted, out, nullptr);
    });
}

Status LibfabricWire::open_endpoint(Owned<fid_ep>& endpoint) {
    Status s = make("fi_endpoint", endpoint,
                    [this](fid_ep** out) { return fi_endpoint(domain_.get(), info_.get(), out, nullptr); });
    if (s.ok()) s = make("fi_ep_bind", [&] { return fi_ep_bind(endpoint.get(), &addresses_->fid, 0); });
    if (s.ok())
        s = make("fi_ep_bind", [&] { return fi_ep_bind(endpoint.get(), &completions_->fid, FI_TRANSMIT | FI_RECV); });
    if (s.ok()) s = make("fi_enable", [&] { return fi_enable(endpoint.get()); });
    return s;
}

Status LibfabricWire::open_endpoints() {
    Status s = open_completions(FI_WAIT_FD);
    const bool waits = s.ok();
    if (!waits) s = open_completions(FI_WAIT_NONE);  // then whoever waits for it naps
    if (s.ok()) s = open_endpoint(receiver_);
    if (s.ok()) s = open_endpoint(sender_);
    if (s.ok() && waits && fi_control(&completions_->fid, FI_GETWAIT, &descriptor_) != 0) descriptor_ = -1;
    return s;
}

Status LibfabricWire::post_receives() {
    for (std::size_t i = 0; i < receive_count; ++i) {
        Buffer& buffer = buffers_.emplace_back();
        buffer.owner = WireContext::Owner::wire;
        buffer.receives = true;
        if (post_receive(buffer) != Code::ok) return {Code::system, fmt::format("fi_recv: {}", why_)};
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
    if (result != -FI_EAGAIN) why_ = fmt::format("{}: {}", what, fi_strerror(static_cast<int>(-result)));
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

Status LibfabricWire::link(int pe, std::span<const std::byte> address) {
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

std::uint64_t LibfabricWire::address_of(const RemotePlace& place) const {
    const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    return (virtual_addresses ? place.base : 0) + place.offset;
}

Code LibfabricWire::write(const RemotePlace& to, const void* from, std::uint64_t bytes, WireContext& context) {
    iovec local{const_cast<void*>(from), bytes};
    fi_rma_iov remote{address_of(to), bytes, to.key};
    fi_msg_rma message{};
    message.msg_iov = &local;
    message.iov_count = 1;
    message.addr = peer(to.pe);
    message.rma_iov = &remote;
    message.rma_iov_count = 1;
    message.context = &context;
    std::uint64_t flags = FI_COMPLETION;
    if (bytes <= traits_.inject_bytes) flags |= FI_INJECT;
    if (traits_.delivery == Delivery::on_completion) flags |= FI_DELIVERY_COMPLETE;
    return outcome(fi_writemsg(sender_.get(), &message, flags), "fi_writemsg");
}

Code LibfabricWire::read(const RemotePlace& from, void* to, std::uint64_t bytes, WireContext& context) {
    return outcome(fi_read(sender_.get(), to, bytes, nullptr, peer(from.pe), address_of(from), from.key, &context),
                   "fi_read");
}

Code LibfabricWire::send(int pe, std::span<const std::byte> head, std::span<const std::byte> rest) {
    const std::size_t bytes = head.size() + rest.size();
    if (bytes > message_bytes) return Code::argument;
    if (free_sends_.empty()) return Code::again;
    Buffer& buffer = *free_sends_.back();
    std::memcpy(buffer.bytes.data(), head.data(), head.size());
    if (!rest.empty()) std::memcpy(buffer.bytes.data() + head.size(), rest.data(), rest.size());
    if (bytes <= traits_.inject_bytes)
        return outcome(fi_inject(sender_.get(), buffer.bytes.data(), bytes, peer(pe)), "fi_inject");
    buffer.pe = pe;
    const Code sent = outcome(
        fi_send(sender_.get(), buffer.bytes.data(), bytes, nullptr, peer(pe), static_cast<WireContext*>(&buffer)),
        "fi_send");
    if (sent == Code::ok) free_sends_.pop_back();
    return sent;
}

void LibfabricWire::completed(network::WireListener& listener, void* context, std::size_t bytes) {
    auto* const posted = static_cast<WireContext*>(context);
    if (posted->owner == WireContext::Owner::transport) return listener.completed(*posted, Code::ok, {});
    auto& buffer = static_cast<Buffer&>(*posted);
    if (!buffer.receives) return free_sends_.push_back(&buffer);
    listener.arrived(std::span(buffer.bytes).first(bytes));
    if (post_receive(buffer) != Code::ok) unposted_receives_.push_back(&buffer);
}

// True: there was one.
bool LibfabricWire::failed(network::WireListener& listener) {
    fi_cq_err_entry error{};
    if (fi_cq_readerr(completions_.get(), &error, 0) < 1) return false;
    const std::string why =
        fmt::format("{} ({})", fi_strerror(error.err),
                    fi_cq_strerror(completions_.get(), error.prov_errno, error.err_data, nullptr, 0));
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
        free_sends_.push_back(&buffer);
        listener.lost(buffer.pe, code, why);
    }
    return true;
}

bool LibfabricWire::progress(network::WireListener& listener) {
    std::erase_if(unposted_receives_, [this](Buffer* buffer) { return post_receive(*buffer) == Code::ok; });
    std::array<fi_cq_msg_entry, 16> entries;
    const ssize_t count = fi_cq_read(completions_.get(), entries.data(), entries.size());
    if (count == -FI_EAVAIL) return failed(listener);
    for (ssize_t i = 0; i < count; ++i) {
        const auto& entry = entries[static_cast<std::size_t>(i)];
        completed(listener, entry.op_context, entry.len);
    }
    return count > 0;
}

bool LibfabricWire::prepare_to_wait() {
    if (descriptor_ < 0) return true;
    fid* waits[] = {&completions_->fid};
    return fi_trywait(fabric_.get(), waits, 1) == 0;
}

}  // namespace npushmem::libfabric
