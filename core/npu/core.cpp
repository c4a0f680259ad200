// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/npu/core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "core/npu/core_context.hpp"
#include "core/npu/runner.hpp"
#include "core/npu/source_line.hpp"

namespace npushmem::npu {

void* Core::find_slow_path(const void* symmetric, int pe, const Where& where) const {
    const Fabric& fabric = *state_.fabric;
    if (pe < 0 || pe >= fabric.n_pes()) {
        throw KernelError(Code::range,
                          fmt::format("remote: PE {} must be 0 to {} ({})", pe, fabric.n_pes() - 1, text_of(where)));
    }
    if (void* there = fabric.remote(symmetric, pe); there != nullptr) return there;
    const bool by_transport =
        state_.unmapped != nullptr && state_.unmapped->offset_of(symmetric) != RemoteOperations::no_offset;
    if (by_transport) return nullptr;
    const bool symmetric_here = fabric.remote(symmetric, fabric.my_pe()) != nullptr;
    throw KernelError(symmetric_here ? Code::unreachable : Code::not_symmetric,
                      fmt::format("remote: {} of PE {} cannot be accessed from PE {}: {} ({})", fmt::ptr(symmetric), pe,
                                  fabric.my_pe(),
                                  symmetric_here ? "that PE's memory is not mapped here, and no transport reaches it"
                                                 : "the address is not in symmetric memory",
                                  text_of(where)),
                      symmetric_here ? Hazard::none : Hazard::bad_address, where);
}

void* Core::remote_slow_path(const void* symmetric, int pe, const Where& where) const {
    if (void* there = find_slow_path(symmetric, pe, where); there != nullptr) return there;
    throw KernelError(Code::unreachable,
                      fmt::format("remote: {} of PE {} cannot be loaded, stored or copied from PE {}: that PE's memory "
                                  "is not mapped here; use put, get, put_signal, signal_*_on and atomic_*_on ({})",
                                  fmt::ptr(symmetric), pe, my_pe(), text_of(where)));
}

std::uint64_t Core::wait_slow_path(const detail::Condition& condition, const Where& where) {
    if (state_.hooks != nullptr) state_.hooks->before_wait();
    return state_.context->runner->await_word(*state_.context, condition, std::chrono::nanoseconds{0}, where);
}

Result<std::uint64_t> Core::signal_wait_for(const std::uint64_t* word, Compare compare, std::uint64_t value,
                                            const WaitLimit& limit, const Where& where) {
    check_scalar("signal_wait_for", word, where);
    const detail::Condition condition{word, compare, value, limit.from};
    std::uint64_t seen = 0;
    try {
        if (state_.hooks != nullptr && limit.timeout > std::chrono::nanoseconds::zero())
            state_.hooks->before_fetch(word, where);
        else if (state_.hooks != nullptr)
            state_.hooks->before_wait_until(condition, where);
        seen = detail::acquire_word(word);
        if (!satisfied(seen, compare, value)) {
            if (state_.hooks != nullptr) state_.hooks->before_wait();
            seen = state_.context->runner->await_word(*state_.context, condition, limit.timeout, where);
        }
    } catch (const KernelError& error) {
        // An aborted launch unwinds; the kernel does not continue with a result.
        if (error.code() == Code::aborted) throw;
        return Status{error.code(), error.what()};
    }
    if (state_.hooks != nullptr) state_.hooks->after_wait(word, seen, where);
    return seen;
}

void Core::core_barrier_slow_path(const Where& where) {
    state_.context->runner->await_core_barrier(*state_.context, where);
}

void Core::poll_point(std::uint64_t round, const Where& where) {
    dcci_left_ = dcci_burst;
    if (state_.context == nullptr || (state_.hooks != nullptr && state_.hooks->poll(round, where))) return;
    state_.context->runner->poll(*state_.context, round, where);
}

namespace {

std::string print_prefix(const Core& core) {
    const double seconds = core.hooks() != nullptr ? core.hooks()->virtual_seconds() : -1;
    const std::string time = seconds < 0 ? std::string{} : fmt::format(", {:.3f} us", seconds * 1e6);
    return fmt::format("[PE {} core {}{}] ", core.my_pe(), core.index(), time);
}

// Each line is one write, so that lines of PEs that share standard output do not mix. A failed write is ignored, as
// with every print.
void write_line(std::string_view line) {
    static_cast<void>(std::fwrite(line.data(), 1, line.size(), stdout));
    static_cast<void>(std::fflush(stdout));
}

}  // namespace

void Core::print(const char* format, ...) {
    constexpr std::size_t max_length = 1024;
    char buffer[max_length];
    std::va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(buffer, max_length, format, arguments);
    va_end(arguments);
    const std::size_t kept = length < 0 ? 0 : std::min<std::size_t>(static_cast<std::size_t>(length), max_length - 1);
    std::string_view text(buffer, kept);
    const std::string prefix = print_prefix(*this);
    const bool to_host = state_.print != nullptr && *state_.print;
    do {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string line = fmt::format("{}{}\n", prefix, text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (to_host)
            (*state_.print)(line);
        else
            write_line(line);
    } while (!text.empty());
}

void Core::yield(const Where& where) {
    if (state_.hooks != nullptr) state_.hooks->before_wait();
    poll_point(0, where);
}

}  // namespace npushmem::npu
