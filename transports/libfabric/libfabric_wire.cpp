// SPDX-License-Identifier: BSD-3-Clause
#include "transports/libfabric/libfabric_wire.hpp"

#include <fmt/format.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <sys/uio.h>

#include <array>
#include <cstring>
#include <string_view>

namespace npushmem::libfabric {
namespace {

using network::Delivery;
using network::RemoteAddress;
using network::WireContext;

// The libfabric operations, by NPUSHMEM_ATOMIC_x.
struct FabricAtomic {
    fi_op operation;
    std::uint64_t form;  // 0: returns nothing
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

// libfabric reports the speed of the link for some NICs, and no latencies. The layer ofi_rxm adds one of its own.
void set_cost(const fi_info& info, network::WireTraits& traits) {
    constexpr std::uint64_t efa_latency_ns = 15'000;
    constexpr std::uint64_t rxm_latency_ns = 1'000;
    const std::string_view provider = info.fabric_attr->prov_name;
    if (provider.find("tcp") != provider.npos || provider.find("sockets") != provider.npos) {
        traits.latency_ns = network::tcp_latency_ns;
        traits.bytes_per_second = network::tcp_bytes_per_second;
        return;
    }
    traits.latency_ns = provider.find("efa") != provider.npos ? efa_latency_ns : network::rdma_latency_ns;
    if (provider.find("rxm") != provider.npos) traits.latency_ns += rxm_latency_ns;
    const bool known = info.nic != nullptr && info.nic->link_attr != nullptr;
    if (known) traits.bytes_per_second = info.nic->link_attr->speed / 8;
}

std::uint32_t atomics_on(const Domain& domain, fi_datatype type) {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < atomics.size(); ++i)
        if (domain.has_atomic(type, atomics[i].operation, atomics[i].form)) out |= 1U << i;
    return out;
}

}  // namespace

LibfabricWire::LibfabricWire(ChosenProvider provider, int npes)
    : native_atomics_(provider.atomics), domain_(std::move(provider.info), npes) {
    const fi_info& info = domain_.info();
    traits_.name = "libfabric " + provider.note;
    traits_.protocol = fmt::format("libfabric {}, protocol {}.{}, addresses {}, {}{}", info.fabric_attr->prov_name,
                                   info.ep_attr->protocol, info.ep_attr->protocol_version,
                                   fi_tostr(&info.addr_format, FI_TYPE_ADDR_FORMAT),
                                   provider.delivery == Delivery::in_order ? "in order" : "delivery completion",
                                   provider.atomics ? ", native atomics" : "");
    traits_.delivery = provider.delivery;
    traits_.inject_bytes = info.tx_attr->inject_size;
    traits_.message_bytes = max_message_bytes;
    set_cost(info, traits_);
}

Result<std::unique_ptr<network::Wire>> LibfabricWire::open(ChosenProvider provider, int npes) {
    std::unique_ptr<LibfabricWire> wire(new LibfabricWire(std::move(provider), npes));
    if (Status opened = wire->open_all(); !opened.ok())
        return opened.within(fmt::format("cannot open {}", wire->traits_.name));
    return std::unique_ptr<network::Wire>(std::move(wire));
}

Status LibfabricWire::open_all() {
    Status s = domain_.open();
    if (s.ok()) s = endpoints_.open();
    if (s.ok() && native_atomics_) s = list_atomics();
    if (s.ok()) traits_.arrives_in_progress = traits_.writes_silently = arrives_in_progress();
    if (!s.ok()) return s;
    buffers_.post_receives([this](MessageBuffer& buffer) { return post_receive(buffer); });
    return buffers_.all_posted() ? Status{} : Status{Code::system, fmt::format("fi_recv: {}", last_error_)};
}

// RDMA writes to memory at any time, and so does a provider that makes progress by itself, as in earlier versions.
bool LibfabricWire::arrives_in_progress() const {
    return fi_version() >= FI_VERSION(1, 17) && descriptor() >= 0 && domain_.provider().starts_with("tcp") &&
           domain_.info().domain_attr->data_progress == FI_PROGRESS_MANUAL;
}

Status LibfabricWire::list_atomics() {
    traits_.atomic_32 = atomics_on(domain_, FI_UINT32);
    traits_.atomic_64 = atomics_on(domain_, FI_UINT64);
    if (traits_.atomic_32 != 0 || traits_.atomic_64 != 0) return {};
    return {Code::unsupported,
            "it has no atomic operations on 32 or 64 bits, which NPUSHMEM_LIBFABRIC_NATIVE_ATOMICS=always requires"};
}

Result<std::uint64_t> LibfabricWire::import_key(int /*pe*/, std::span<const std::byte> bytes) {
    std::uint64_t key = 0;
    if (bytes.size() != sizeof key)
        return Status{Code::protocol, fmt::format("a key has {} bytes, expected {}", bytes.size(), sizeof key)};
    std::memcpy(&key, bytes.data(), sizeof key);
    return key;
}

Code LibfabricWire::outcome(ssize_t result, const char* what) {
    if (result == 0) [[likely]]
        return Code::ok;
    if (result != -FI_EAGAIN) last_error_ = fmt::format("{}: {}", what, fi_strerror(static_cast<int>(-result)));
    return code_of_error(static_cast<int>(-result));
}

Code LibfabricWire::connection_failed() {
    last_error_ = endpoints_.failure().message();
    return endpoints_.failure().code();
}

bool LibfabricWire::post_receive(MessageBuffer& buffer) {
    return outcome(fi_recv(&endpoints_.receiver(), buffer.bytes.data(), buffer.bytes.size(), nullptr, FI_ADDR_UNSPEC,
                           static_cast<WireContext*>(&buffer)),
                   "fi_recv") == Code::ok;
}

Code LibfabricWire::write(const RemoteAddress& to, const void* from, std::uint64_t bytes, WireContext& context) {
    fid_ep* const sender = endpoints_.sender_for(to.lane_id);
    if (sender == nullptr) return connection_failed();
    iovec local{const_cast<void*>(from), bytes};
    fi_rma_iov remote{domain_.address_of(to), bytes, to.key};
    fi_msg_rma message{};
    message.msg_iov = &local;
    message.iov_count = 1;
    message.addr = domain_.peer(to.lane_id.pe);
    message.rma_iov = &remote;
    message.rma_iov_count = 1;
    message.context = &context;
    std::uint64_t flags = FI_COMPLETION;
    if (bytes <= traits_.inject_bytes) flags |= FI_INJECT;
    if (traits_.delivery == Delivery::on_completion) flags |= FI_DELIVERY_COMPLETE;
    return outcome(fi_writemsg(sender, &message, flags), "fi_writemsg");
}

Code LibfabricWire::read(const RemoteAddress& from, void* to, std::uint64_t bytes, WireContext& context) {
    fid_ep* const sender = endpoints_.sender_for(from.lane_id);
    if (sender == nullptr) return connection_failed();
    return outcome(fi_read(sender, to, bytes, nullptr, domain_.peer(from.lane_id.pe), domain_.address_of(from),
                           from.key, &context),
                   "fi_read");
}

Code LibfabricWire::send(network::LaneId lane_id, std::span<const std::byte> head, std::span<const std::byte> rest) {
    const std::size_t bytes = head.size() + rest.size();
    if (bytes > max_message_bytes) return Code::argument;
    if (buffers_.next() == nullptr) return Code::again;
    fid_ep* const sender = endpoints_.sender_for(lane_id);
    if (sender == nullptr) return connection_failed();
    MessageBuffer& buffer = *buffers_.next();
    std::memcpy(buffer.bytes.data(), head.data(), head.size());
    if (!rest.empty()) std::memcpy(buffer.bytes.data() + head.size(), rest.data(), rest.size());
    if (bytes <= traits_.inject_bytes)
        return outcome(fi_inject(sender, buffer.bytes.data(), bytes, domain_.peer(lane_id.pe)), "fi_inject");
    const Code sent = outcome(fi_send(sender, buffer.bytes.data(), bytes, nullptr, domain_.peer(lane_id.pe),
                                      static_cast<WireContext*>(&buffer)),
                              "fi_send");
    if (sent == Code::ok) buffers_.take(lane_id, nullptr);
    return sent;
}

// The buffer holds operand and compare value until the operation completes.
ssize_t LibfabricWire::post_atomic(fid_ep* sender, const RemoteAddress& at, const npushmem_atomic& op,
                                   MessageBuffer& buffer) {
    const FabricAtomic& what = atomics[op.operation];
    std::memcpy(buffer.bytes.data(), &op.operand, sizeof op.operand);
    std::memcpy(buffer.bytes.data() + sizeof op.operand, &op.compare, sizeof op.compare);
    fi_ioc operand{buffer.bytes.data(), 1};
    fi_ioc compare{buffer.bytes.data() + sizeof op.operand, 1};
    fi_ioc result{op.result, 1};
    fi_rma_ioc remote{domain_.address_of(at), 1, at.key};
    fi_msg_atomic message{};
    message.msg_iov = &operand;
    message.iov_count = what.operation == FI_ATOMIC_READ ? 0 : 1;
    message.addr = domain_.peer(at.lane_id.pe);
    message.rma_iov = &remote;
    message.rma_iov_count = 1;
    message.datatype = op.width == sizeof(std::uint32_t) ? FI_UINT32 : FI_UINT64;
    message.op = what.operation;
    message.context = static_cast<WireContext*>(&buffer);
    constexpr std::uint64_t completion_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
    if (what.form == 0) return fi_atomicmsg(sender, &message, completion_flags);
    if (what.form == FI_FETCH_ATOMIC)
        return fi_fetch_atomicmsg(sender, &message, &result, nullptr, 1, completion_flags);
    return fi_compare_atomicmsg(sender, &message, &compare, nullptr, 1, &result, nullptr, 1, completion_flags);
}

Code LibfabricWire::atomic(const RemoteAddress& at, const npushmem_atomic& op, WireContext& context) {
    if (buffers_.next() == nullptr) return Code::again;
    fid_ep* const sender = endpoints_.sender_for(at.lane_id);
    if (sender == nullptr) return connection_failed();
    MessageBuffer& buffer = *buffers_.next();
    const Code posted = outcome(post_atomic(sender, at, op, buffer), "fi_atomic");
    if (posted == Code::ok) buffers_.take(at.lane_id, &context);
    return posted;
}

void LibfabricWire::close(network::LaneId lane_id) {
    if (endpoints_.close(lane_id)) buffers_.release_lane(lane_id.lane);
}

void LibfabricWire::completed(network::WireListener& listener, void* context, std::size_t bytes) {
    auto* const posted = static_cast<WireContext*>(context);
    if (posted->owner == WireContext::Owner::transport) return listener.completed(*posted, Code::ok, {});
    auto& buffer = static_cast<MessageBuffer&>(*posted);
    if (!buffer.receives) {
        buffers_.release(buffer);
        if (buffer.atomic != nullptr) listener.completed(*buffer.atomic, Code::ok, {});
        return;
    }
    listener.arrived(std::span(buffer.bytes).first(bytes));
    if (!post_receive(buffer)) buffers_.defer_receive(buffer);
}

// True when it reported a failure.
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
    auto& buffer = static_cast<MessageBuffer&>(*posted);
    if (buffer.receives) {
        buffers_.defer_receive(buffer);
    } else {
        buffers_.release(buffer);
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
    buffers_.post_receives([this](MessageBuffer& buffer) { return post_receive(buffer); });
    bool happened = false;
    endpoints_.for_each_completion_queue(
        [&](fid_cq& completions) { happened = poll(listener, completions) || happened; });
    return happened;
}

}  // namespace npushmem::libfabric
