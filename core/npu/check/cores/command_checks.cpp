// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/cores/command_checks.hpp"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace npushmem::npu::check {
namespace {

// Calls `use(offset, word or byte)` from the first byte to the last, by whole words where possible, until it returns
// false. Relaxed: others may write at the same time.
template <class Use>
bool by_words(std::uintptr_t begin, std::size_t bytes, Use&& use) {
    constexpr std::size_t word = sizeof(std::uint64_t);
    std::size_t at = 0;
    for (; at < bytes && (begin + at) % word != 0; ++at)
        if (!use(at, byte_in_memory(begin + at))) return false;
    for (; at + word <= bytes; at += word)
        if (!use(at, __atomic_load_n(reinterpret_cast<const std::uint64_t*>(begin + at), __ATOMIC_RELAXED)))
            return false;
    for (; at < bytes; ++at)
        if (!use(at, byte_in_memory(begin + at))) return false;
    return true;
}

// The bytes of an operand in symmetric memory, one block after the other, as they are now.
std::vector<std::byte> bytes_of(const Operand& operand) {
    std::vector<std::byte> bytes(operand.bytes * operand.blocks);
    std::byte* to = bytes.data();
    auto begin = reinterpret_cast<std::uintptr_t>(operand.address);
    for (std::size_t block = 0; block < operand.blocks; ++block, begin += operand.step, to += operand.bytes)
        by_words(begin, operand.bytes, [&](std::size_t at, const auto& part) {
            std::memcpy(to + at, &part, sizeof part);
            return true;
        });
    return bytes;
}

// Whether the operand still has these bytes.
bool has_bytes(const Operand& operand, const std::vector<std::byte>& bytes) {
    const std::byte* from = bytes.data();
    auto begin = reinterpret_cast<std::uintptr_t>(operand.address);
    for (std::size_t block = 0; block < operand.blocks; ++block, begin += operand.step, from += operand.bytes) {
        const bool same = by_words(begin, operand.bytes, [&](std::size_t at, const auto& part) {
            return std::memcmp(from + at, &part, sizeof part) == 0;
        });
        if (!same) return false;
    }
    return true;
}

// The number of aligned words of 8 bytes that differ, in whole or in part.
std::size_t changed_words(const Operand& operand, const std::vector<std::byte>& bytes) {
    constexpr std::uintptr_t word = sizeof(std::uint64_t);
    std::size_t changed = 0;
    const std::byte* from = bytes.data();
    auto begin = reinterpret_cast<std::uintptr_t>(operand.address);
    for (std::size_t block = 0; block < operand.blocks; ++block, begin += operand.step, from += operand.bytes) {
        std::uintptr_t last = 0;  // of the changed words; none is at 0
        by_words(begin, operand.bytes, [&](std::size_t at, const auto& part) {
            const std::uintptr_t here = (begin + at) / word * word;
            if (std::memcmp(from + at, &part, sizeof part) != 0 && here != last) {
                ++changed;
                last = here;
            }
            return true;
        });
    }
    return changed;
}

}  // namespace

bool OperandWatch::is_watchable(const Operand& operand) const {
    const std::uintptr_t at = number_of(operand.address);
    return domain_.names.shared() && operand.address != nullptr && operand.global && !synthetic_address::is(at) &&
           domain_.names.pe_of(at) >= 0;
}

void OperandWatch::check(const Operand& operand, const std::vector<std::byte>& before, Stamp issued,
                         const Access& access, bool write) {
    if (has_bytes(operand, before)) return;
    // One word of a block that arrives whole: perhaps a poll.
    if (!write && access.may_poll && changed_words(operand, before) <= 1) return;
    std::uintptr_t begin = number_of(operand.address);
    for (std::size_t block = 0; block < operand.blocks; ++block, begin += operand.step)
        if (domain_.memory.written_since(begin, begin + operand.bytes, issued) && !write) return;
    domain_.findings.report_external(
        write ? Hazard::write_race : Hazard::dma_race, access, number_of(operand.address),
        write ? "writes bytes that a PE of another process wrote since the command was issued, unordered"
              : "copies bytes that a PE of another process wrote since the command was issued, unordered");
}

bool OperandWatch::has_own_writes(const Operand& target) const {
    if (!is_watchable(target)) return false;
    constexpr Stamp never = ~Stamp{0};
    std::uintptr_t begin = number_of(target.address);
    for (std::size_t block = 0; block < target.blocks; ++block, begin += target.step)
        if (domain_.memory.written_since(begin, begin + target.bytes, never)) return true;
    return false;
}

std::function<void()> OperandWatch::watch(const Command& command, const Access& access, bool own_writes,
                                          std::function<void()> run) {
    if (!domain_.names.shared()) return run;
    const int target = domain_.names.pe_of(number_of(command.target.address));
    if (command.target.global && target >= 0 && target != core_.pe)
        domain_.overtaken.add(target, number_of(command.target.address), access);
    for (const Operand* operand : {&command.source[0], &command.source[1], &command.target}) {
        const bool write = operand == &command.target;
        // Earlier writes of this PE may change a target that they have not reached yet.
        if (!is_watchable(*operand) || (write && (command.reads_target || own_writes))) continue;
        run = [this, operand = *operand, before = bytes_of(*operand), issued = domain_.version.last(), access, write,
               run = std::move(run)] {
            check(operand, before, issued, access, write);
            run();
        };
    }
    return run;
}

bool CommandChecks::may_poll(const Operand& source) {
    return source.global && source.blocks == 1 && source.bytes <= ub_alignment;
}

void CommandChecks::check_global(Address begin, Address end, bool write, const Access& access) {
    require_accessible(domain_.names, begin, end - begin, access);
    const Clock& clock = clocks_[access.pipe()];
    if (write)
        domain_.steps.write_records(begin, end);
    else
        domain_.steps.read_records(begin, end);
    if (write)
        domain_.memory.copy_write(begin, end, access, clock, domain_.findings.reporter(access));
    else
        domain_.memory.copy_read(begin, end, access, clock, domain_.findings.reporter(access));
}

void CommandChecks::check_ub(Address begin, Address end, std::size_t padding, bool write, const Access& access) {
    const Clock& clock = clocks_[access.pipe()];
    if (!write) return ub_.read(begin, end - padding, access, clock);
    ub_.write(begin, end - padding, access, clock, false);
    ub_.write(end - padding, end, access, clock, true);
}

void CommandChecks::check_operand(const Operand& operand, bool write, const Access& access) {
    if (operand.address == nullptr) return;
    Address begin = number_of(operand.address);
    for (std::size_t block = 0; block < operand.blocks; ++block, begin += operand.step) {
        const Address end = begin + operand.bytes;
        if (operand.global)
            check_global(begin, end, write, access);
        else
            check_ub(begin, end, operand.padding, write, access);
    }
}

std::function<void()> CommandChecks::landing(const Command& command, const Access& access, std::size_t event,
                                             std::function<void()> run) {
    const Operand& target = command.target;
    if (!target.global) return run;
    // Other cores may poll a word that a copy writes.
    WordReleases::SharedClock released;
    if (target.blocks == 1 && target.bytes <= cache_line) {
        Clock clock = domain_.passed_on(number_of(target.address), clocks_[command.pipe], core_.pe);
        clock.raise(access.agent, access.sequence);
        released = std::make_shared<const Clock>(std::move(clock));
    }
    return [this, target, access, event, released = std::move(released), run = std::move(run)] {
        std::array<std::uint64_t, cache_line / 8 + 1> before{};
        const bool word = released != nullptr;
        const Address first = number_of(target.address) / 8 * 8;
        const Address end = number_of(target.address) + target.bytes;
        const auto records = word ? domain_.lock() : std::nullopt;
        for (Address at = first; word && at < end; at += 8) before[(at - first) / 8] = word_in_memory(at);
        run();
        const Stamp stamp = domain_.version.changed();
        Address begin = number_of(target.address);
        for (std::size_t block = 0; block < target.blocks; ++block, begin += target.step) {
            domain_.memory.landed(begin, begin + target.bytes, access, stamp);
        }
        events_.landed(event);
        if (!word) return;
        for (Address at = first; at < end; at += 8)
            domain_.words.release(at, released, false, access, before[(at - first) / 8], word_in_memory(at));
    };
}

std::function<void()> CommandChecks::acquiring(const Operand& source, std::function<void()> run) {
    if (!may_poll(source)) return run;
    return [this, source, run = std::move(run)] {
        run();
        for (Address at = number_of(source.address) / 8 * 8; at < number_of(source.address) + source.bytes; at += 8)
            domain_.words.acquire(at, clocks_.polled());
    };
}

Access CommandChecks::access_of(const Command& command) {
    Access access = clocks_.issue(command.pipe, command.name, command.where);
    access.may_poll = may_poll(command.source[0]);
    access.add = command.reads_target && command.target.global;
    const int target_pe = command.target.global ? domain_.names.pe_of(number_of(command.target.address)) : -1;
    if (command.pipe == Pipe::copy_out) access.pe = core_.pe;
    if (command.pipe == Pipe::copy_out && target_pe >= 0)
        access.to_target = domain_.copies.agent_to(core_.number, core_.pe, target_pe);
    return access;
}

CommandChecks::Padding CommandChecks::check_sources(const Command& command, const Access& access) {
    Padding padding;
    for (std::size_t i = 0; i < padding.size(); ++i) {
        const Operand& source = command.source[i];
        check_operand(source, false, access);
        if (command.pipe == Pipe::vector && source.address != nullptr)
            padding[i] = ub_.padding_in(number_of(source.address), source.bytes);
    }
    if (command.reads_target && !command.target.global) check_operand(command.target, false, access);
    return padding;
}

void CommandChecks::spread_padding(const Command& command, const Padding& padding) {
    for (std::size_t i = 0; i < padding.size(); ++i) {
        for (const auto& [begin, end] : padding[i]) {
            const Address target = number_of(command.target.address);
            const std::size_t of = command.source[i].bytes;
            ub_.add_padding(target + begin * command.target.bytes / of, target + end * command.target.bytes / of);
        }
    }
}

std::function<void()> CommandChecks::check(const Command& command, std::size_t event, std::function<void()> run) {
    const Access access = access_of(command);
    if (atomic_ && command.source[0].global) {
        domain_.findings.report(Hazard::atomic_mode, core_.side(command.pipe, command.name, command.where), atomic_at_,
                                "", "copies while the atomic mode is on");
    }
    const Padding padding = check_sources(command, access);
    const bool own_writes = watch_.has_own_writes(command.target);
    check_operand(command.target, true, access);
    spread_padding(command, padding);
    run = acquiring(command.source[0], std::move(run));
    run = watch_.watch(command, access, own_writes, std::move(run));
    return landing(command, access, event, std::move(run));
}

void CommandChecks::set_atomic_mode(bool on, const SourceLocation& where) {
    atomic_ = on;
    atomic_at_ = core_.side(Pipe::copy_out, "set_atomic_add", where);
}

void CommandChecks::check_left_over() const {
    if (!atomic_) return;
    domain_.findings.report(Hazard::atomic_mode, atomic_at_, FindingSide{}, "",
                            "the kernel ends with the atomic mode on");
}

}  // namespace npushmem::npu::check
