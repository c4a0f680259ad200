// SPDX-License-Identifier: BSD-3-Clause
// Operations of a core on PEs whose memory is not mapped, through the fabric's transport.
#include <fmt/format.h>

#include "core/npu/runner.hpp"
#include "core/npu/source_line.hpp"
#include "npushmem/npu/core.hpp"

namespace npushmem::npu {
namespace {

using detail::CoreWait;

// Throws a failed status as KernelError with the operation and the PE. An aborted launch keeps its message.
void expect(const Status& status, const char* operation, int pe, const Core::Where& where) {
    if (status.ok()) return;
    if (status.code() == Code::aborted) throw KernelError(status);
    const bool address = status.code() == Code::not_symmetric || status.code() == Code::range;
    const std::string whom = pe < 0 ? "" : fmt::format(" on PE {}", pe);
    throw KernelError(status.code(), fmt::format("{}{}: {} ({})", operation, whom, status.message(), text_of(where)),
                      address ? Hazard::bad_address : Hazard::none, where);
}

// Whether the operation changes the object's value when it finds `before`.
bool changes(const RemoteAtomic& what, std::uint64_t before) {
    if (what.kind == RemoteAtomic::Kind::fetch_add) return what.operand != 0;
    const bool replaces = what.kind == RemoteAtomic::Kind::swap || before == what.expected;
    return replaces && before != what.operand;
}

// The synthetic address of `pe`'s copy, for the hooks.
void* name_of(const RemoteOperations& unmapped, const void* symmetric, int pe) {
    return reinterpret_cast<void*>(synthetic_address::of(pe, unmapped.offset_of(symmetric)));
}

}  // namespace

void Core::put_unmapped(void* target, const void* source, std::size_t bytes, int pe, const Where& where) {
    issue(
        [&] {
            return Command{"put",
                           Pipe::copy_out,
                           {name_of(*state_.unmapped, target, pe), bytes, 1, 0, true},
                           false,
                           {{source, bytes, 1, 0, true}, {}},
                           where};
        },
        [=, this] {
            CoreWait wait(*state_.context, where);
            expect(state_.unmapped->put(target, source, bytes, pe, wait), "put", pe, where);
        });
}

void Core::get_unmapped(void* target, const void* source, std::size_t bytes, int pe, const Where& where) {
    issue(
        [&] {
            return Command{"get",
                           Pipe::copy_in,
                           {target, bytes, 1, 0, true},
                           false,
                           {{name_of(*state_.unmapped, source, pe), bytes, 1, 0, true}, {}},
                           where};
        },
        [=, this] {
            CoreWait wait(*state_.context, where);
            expect(state_.unmapped->get(target, const_cast<void*>(source), bytes, pe, wait), "get", pe, where);
        });
}

void Core::put_signal_unmapped(void* target, const void* source, std::size_t bytes, std::uint64_t* signal,
                               std::uint64_t value, int pe, const Where& where) {
    if (bytes != 0 && state_.hooks == nullptr) {
        CoreWait wait(*state_.context, where);
        return expect(state_.unmapped->put_signal(target, source, bytes, signal, value, pe, wait), "put_signal", pe,
                      where);
    }
    if (bytes != 0) put_unmapped(target, source, bytes, pe, where);
    fence(where);
    signal_unmapped({signal, value, false}, pe, where);
}

void Core::signal_unmapped(const Signal& signal, int pe, const Where& where) {
    const char* operation = signal.add ? "signal_add_on" : "signal_set_on";
    check_scalar(operation, signal.word, where);
    const auto kind = signal.add ? RemoteAtomic::Kind::add : RemoteAtomic::Kind::set;
    const RemoteAtomic update{kind, signal.word, sizeof *signal.word, signal.value};
    const auto send = [=, this] {
        CoreWait wait(*state_.context, where);
        expect(state_.unmapped->atomic(update, nullptr, pe, wait), operation, pe, where);
    };
    if (state_.hooks == nullptr) return send();
    auto* name = static_cast<std::uint64_t*>(name_of(*state_.unmapped, signal.word, pe));
    state_.hooks->signal({name, signal.value, signal.add, send}, where);
}

std::uint64_t Core::atomic_unmapped(const char* operation, const RemoteAtomic& what, int pe, const Where& where) {
    if (detail::number_of(what.object) % what.width != 0)
        detail::fail_scalar(operation, what.object, what.width, where);
    const void* name = name_of(*state_.unmapped, what.object, pe);
    if (state_.hooks != nullptr) state_.hooks->before_atomic(name, what.width, where);
    std::uint64_t before = 0;
    CoreWait wait(*state_.context, where);
    expect(state_.unmapped->atomic(what, &before, pe, wait), operation, pe, where);
    if (state_.hooks != nullptr)
        state_.hooks->after_atomic(
            {name, what.width, before, what.kind == RemoteAtomic::Kind::fetch_add, changes(what, before)}, where);
    return before;
}

std::uint64_t Core::poll_unmapped(const std::uint64_t* word, int pe, const Where& where) {
    check_scalar("signal_fetch_on", word, where);
    std::uint64_t seen = 0;
    CoreWait wait(*state_.context, where);
    const RemoteAtomic fetch{RemoteAtomic::Kind::fetch, const_cast<std::uint64_t*>(word), sizeof *word};
    expect(state_.unmapped->atomic(fetch, &seen, pe, wait), "signal_fetch_on", pe, where);
    return seen;
}

std::uint64_t Core::fetch_unmapped(const std::uint64_t* word, int pe, const Where& where) {
    const std::uint64_t seen = poll_unmapped(word, pe, where);
    if (state_.hooks != nullptr) state_.hooks->after_wait(name_of(*state_.unmapped, word, pe), seen, where);
    return seen;
}

std::uint64_t Core::wait_unmapped(const detail::Condition& condition, const Where& where) {
    detail::PollState polling{std::chrono::steady_clock::now().time_since_epoch()};
    detail::WaitObservation observation(state_.context->runner->wait_policy());
    std::uint64_t seen = poll_unmapped(condition.word, condition.from.pe, where);
    while (!satisfied(seen, condition.compare, condition.value)) {
        if (state_.hooks != nullptr) state_.hooks->before_wait();
        state_.context->runner->poll_condition(*state_.context, condition, seen, polling, observation, where);
        seen = poll_unmapped(condition.word, condition.from.pe, where);
    }
    const void* name = name_of(*state_.unmapped, condition.word, condition.from.pe);
    if (state_.hooks != nullptr) state_.hooks->after_wait(name, seen, where);
    return seen;
}

void Core::fence_unmapped(const Where& where) {
    CoreWait wait(*state_.context, where);
    expect(state_.unmapped->fence(wait), "fence", -1, where);
}

void Core::quiet_unmapped(const Where& where) {
    CoreWait wait(*state_.context, where);
    expect(state_.unmapped->quiet(wait), "quiet", -1, where);
}

}  // namespace npushmem::npu
