#include "core/team/remote_signals.hpp"

namespace npushmem {

Code RemoteSignals::record_failure(Status status) {
    if (!status.ok()) cause_ = std::move(status);
    return cause_.code();
}

Code RemoteSignals::update(int pe, int slot, std::uint8_t operation, std::uint64_t value, std::uint64_t* before) {
    npushmem_atomic op{};
    op.pe = pe;
    op.operation = operation;
    op.width = 8;
    op.offset = offset_ + static_cast<std::uint64_t>(slot) * barrier::line_bytes;
    op.operand = value;
    op.result = before;
    return record_failure(remote_.atomic(op, RemoteAccess::Completion::local));
}

Code RemoteSignals::signal(int member, int slot, std::uint64_t value) {
    const int pe = members_.at(member);
    if (std::byte* state = visible_state(pe)) {
        // Release: pairs with the acquire load in load_slot(), and with the gets of those who look at ours.
        barrier::slot_at(state, slot).store(value, std::memory_order_release);
        return Code::ok;
    }
    // What was written before must not be overtaken by the signal.
    if (const Code fenced = record_failure(remote_.fence()); fenced != Code::ok) return fenced;
    return update(pe, slot, NPUSHMEM_ATOMIC_SET, value, nullptr);
}

Code RemoteSignals::add(int member, int slot, std::uint64_t value, std::uint64_t& before) {
    const int pe = members_.at(member);
    if (std::byte* state = mapped_state(pe)) {
        // Release and acquire: pairs with the adds of the other members.
        before = barrier::slot_at(state, slot).fetch_add(value, std::memory_order_acq_rel);
        return Code::ok;
    }
    if (const Code fenced = record_failure(remote_.fence()); fenced != Code::ok) return fenced;
    return update(pe, slot, NPUSHMEM_ATOMIC_FETCH_ADD, value, &before);
}

Code RemoteSignals::load_slot(int pe, int slot, std::uint64_t& value) {
    std::byte* const state = visible_state(pe);
    if (state == nullptr) return update(pe, slot, NPUSHMEM_ATOMIC_FETCH, 0, &value);
    // Acquire: pairs with the release of the signal, or with the transport's delivery.
    value = barrier::slot_at(state, slot).load(std::memory_order_acquire);
    return Code::ok;
}

Code RemoteSignals::wait(const barrier::AwaitedSlot& awaited, std::uint64_t value) {
    const int pe = members_.at(awaited.member);
    std::uint64_t seen = 0;
    const auto arrived = [&] { return load_slot(pe, awaited.slot, seen) != Code::ok || barrier::reached(seen, value); };
    // A transport may hold our own signals back until it is driven, and the peer's answer needs them.
    const auto ready = [&] { return arrived() || !progress_ok() || arrived(); };
    const WaitFor what{.what = "a barrier", .needs = members_, .timeout = timeout_};
    WaitFailure reason;
    const Code code = waiter_.until(ready, what, &reason);
    if (code != Code::ok) failure_ = {awaited, value, seen, reason};
    return code == Code::ok ? cause_.code() : code;
}

Code RemoteSignals::complete() { return record_failure(remote_.quiet()); }

}  // namespace npushmem
