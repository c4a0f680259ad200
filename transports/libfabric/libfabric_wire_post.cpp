// The data path: posting and polling. Set-up is in libfabric_wire.cpp.
#include "transports/libfabric/libfabric_wire.hpp"

#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include <array>
#include <cstring>

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

}  // namespace

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
            "it has no atomic operations on 32 or 64 bits, which NPUSHMEM_LIBFABRIC_NATIVE_ATOMICS=always requires"};
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

// The buffer holds operand and compare value until the operation completes.
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
    // By index: the listener may post and thereby add a lane.
    for (std::size_t i = 1; i < lanes_.size(); ++i)
        if (lanes_[i].sender) happened = poll(listener, *lanes_[i].completions) || happened;
    return happened;
}

bool LibfabricWire::prepare_to_wait(network::WakeEvents /*what*/) {
    if (descriptor_ < 0) return true;
    return fi_trywait(fabric_.get(), wait_objects_.data(), static_cast<int>(wait_objects_.size())) == 0;
}

}  // namespace npushmem::libfabric
