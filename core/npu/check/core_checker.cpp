// Commands, flags and pipes.
#include "core/npu/check/core_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "npushmem/npu/error.hpp"

namespace npushmem::npu::check {
namespace {

constexpr std::uint64_t everything = std::numeric_limits<std::uint64_t>::max();

}  // namespace

CoreChecker::CoreChecker(std::shared_ptr<Domain> domain, const Core& core, const detail::UbRegion& ub,
                         std::function<Status()> ended)
    : domain_(std::move(domain)),
      ub_(ub),
      ub_base_(number_of(ub.base)),
      context_(core.context()),
      ended_(std::move(ended)),
      pe_(core.my_pe()),
      index_(core.index()),
      cores_(core.count()) {
    core_ = domain_->join(*this);
    for (Clock& clock : clocks_) clock = domain_->beginning(pe_);
    // Earlier launches of the PE may have used the same numbers.
    for (std::size_t pipe = 0; pipe < pipes_per_core; ++pipe) counts_[pipe] = now()[agent(static_cast<Pipe>(pipe))];
    place_ = &domain_->place(core_);
}

CoreChecker::~CoreChecker() { domain_->leave(core_); }

FindingSide CoreChecker::side(Pipe pipe, const char* what, const SourceLocation& where) const {
    return {pe_, index_, pipe, what, where};
}

Access CoreChecker::scalar_access(const char* what, const SourceLocation& where) {
    const std::uint32_t sequence = ++counts_[0];
    now().raise(agent(Pipe::scalar), sequence);
    return {agent(Pipe::scalar), sequence, sequence, what, where, -1, no_agent, domain_->number_of_text(what, where)};
}

std::string CoreChecker::place_of(Address address, bool global) const {
    if (global) return domain_->names().name_of(address);
    return fmt::format("UB + {}", address - ub_base_);
}

GmShadow::Report CoreChecker::reporter(const Access& access, bool global) {
    return [this, access, global](Hazard hazard, const Access& other, Address at, const char* detail) {
        domain_->report(hazard, side(access.pipe(), access.name, access.where), other, place_of(at, global), detail);
    };
}

void CoreChecker::refuse_address(Address begin, std::size_t bytes, const Access& access) const {
    const std::string why = domain_->names().refusal(begin, bytes);
    if (why.empty()) return;
    throw KernelError(
        Code::range,
        fmt::format("{}: {} bytes at {}: {} ({}) [{}]", access.name, bytes, domain_->names().name_of(begin), why,
                    text_of(access.where), id_of(Hazard::bad_address)),
        Hazard::bad_address, access.where);
}

bool CoreChecker::may_poll(const Operand& source) {
    return source.global && source.blocks == 1 && source.bytes <= ub_alignment;
}

void CoreChecker::check_global(Address begin, Address end, bool write, const Access& access) {
    refuse_address(begin, end - begin, access);
    const Clock& clock = clocks_[number(access.pipe())];
    if (write)
        domain_->memory().copy_write(begin, end, access, clock, reporter(access, true));
    else
        domain_->memory().copy_read(begin, end, access, clock, reporter(access, true));
}

void CoreChecker::check_local(Address begin, Address end, std::size_t padding, bool write, const Access& access) {
    const Clock& clock = clocks_[number(access.pipe())];
    if (!write) return ub_shadow_.read(begin, end - padding, access, clock, reporter(access, false));
    ub_shadow_.write(begin, end - padding, access, clock, false, reporter(access, false));
    ub_shadow_.write(end - padding, end, access, clock, true, reporter(access, false));
}

void CoreChecker::check_operand(const Operand& operand, bool write, const Access& access) {
    if (operand.address == nullptr) return;
    Address begin = number_of(operand.address);
    for (std::size_t block = 0; block < operand.blocks; ++block, begin += operand.step) {
        const Address end = begin + operand.bytes;
        if (operand.global)
            check_global(begin, end, write, access);
        else
            check_local(begin, end, operand.padding, write, access);
    }
}

std::function<void()> CoreChecker::landing(const Command& command, const Access& access, std::function<void()> run) {
    const Operand& target = command.target;
    if (!target.global) return run;
    // A word that a copy writes may be what somebody polls for.
    const bool word = target.blocks == 1 && target.bytes <= cache_line;
    Clock released;
    if (word) {
        released = passed_on(number_of(target.address), clocks_[number(command.pipe)]);
        released.raise(access.agent, access.sequence);
    }
    return [this, target, access, word, released = std::move(released), run = std::move(run)] {
        std::array<std::uint64_t, cache_line / 8 + 1> before{};
        const Address first = number_of(target.address) / 8 * 8;
        const Address end = number_of(target.address) + target.bytes;
        const auto records = word ? domain_->lock_records() : std::nullopt;
        for (Address at = first; word && at < end; at += 8) before[(at - first) / 8] = word_in_memory(at);
        run();
        const Stamp stamp = domain_->changed();
        Address begin = number_of(target.address);
        for (std::size_t block = 0; block < target.blocks; ++block, begin += target.step) {
            domain_->memory().landed(begin, begin + target.bytes, access, stamp);
        }
        if (!word) return;
        for (Address at = first; at < end; at += 8)
            domain_->release_word(at, released, false, access, before[(at - first) / 8]);
    };
}

std::function<void()> CoreChecker::looking(const Operand& source, std::function<void()> run) {
    if (!may_poll(source)) return run;
    return [this, source, run = std::move(run)] {
        run();
        for (Address at = number_of(source.address) / 8 * 8; at < number_of(source.address) + source.bytes; at += 8)
            domain_->acquire_word(at, polled_);
    };
}

bool CoreChecker::watchable(const Operand& operand) const {
    const Address at = number_of(operand.address);
    return domain_->names().shared() && operand.address != nullptr && operand.global && !synthetic_address::is(at) &&
           domain_->names().pe_of(at) >= 0;
}

void CoreChecker::report_outside(Hazard hazard, const Access& access, Address at, const char* detail) {
    domain_->report(hazard, side(access.pipe(), access.name, access.where), FindingSide{}, place_of(at, true), detail);
}

void CoreChecker::look_again(const Operand& operand, const std::vector<std::byte>& before, Stamp issued,
                             const Access& access, bool write) {
    if (has_bytes(operand, before)) return;
    // One word of a block that arrives whole: perhaps a poll.
    if (!write && access.may_poll && changed_words(operand, before) <= 1) return;
    Address begin = number_of(operand.address);
    for (std::size_t block = 0; block < operand.blocks; ++block, begin += operand.step)
        if (domain_->memory().written_since(begin, begin + operand.bytes, issued) && !write) return;
    report_outside(write ? Hazard::write_race : Hazard::dma_race, access, number_of(operand.address),
                   write ? "writes bytes that a PE of another process wrote since the command was issued, unordered"
                         : "copies bytes that a PE of another process wrote since the command was issued, unordered");
}

// Is something of this PE on its way to these bytes?
bool CoreChecker::written_by_own(const Operand& target) const {
    if (!watchable(target)) return false;
    constexpr Stamp never = ~Stamp{0};
    Address begin = number_of(target.address);
    for (std::size_t block = 0; block < target.blocks; ++block, begin += target.step)
        if (domain_->memory().written_since(begin, begin + target.bytes, never)) return true;
    return false;
}

std::function<void()> CoreChecker::watched(const Command& command, const Access& access, bool own_writes,
                                           std::function<void()> run) {
    if (!domain_->names().shared()) return run;
    const int target = domain_->names().pe_of(number_of(command.target.address));
    if (command.target.global && target >= 0 && target != pe_)
        domain_->overtaken().sent(target, number_of(command.target.address), access);
    for (const Operand* operand : {&command.source[0], &command.source[1], &command.target}) {
        const bool write = operand == &command.target;
        // What changes a target that earlier writes of this PE are still to reach could be these.
        if (!watchable(*operand) || (write && (command.reads_target || own_writes))) continue;
        run = [this, operand = *operand, before = bytes_of(*operand), issued = domain_->version(), access, write,
               run = std::move(run)] {
            look_again(operand, before, issued, access, write);
            run();
        };
    }
    return run;
}

void CoreChecker::issue(const Command& command, std::function<void()> run) {
    enter(command.where);
    idle_ = false;
    const std::size_t pipe = number(command.pipe);
    const std::uint32_t scalar = agent(Pipe::scalar);
    const std::uint32_t issued = ++counts_[0];
    now().raise(scalar, issued);
    // The command begins after everything that S knew when it issued it, except S's own stores to UB: those need a
    // flag.
    const std::uint32_t flagged = clocks_[pipe][scalar];
    clocks_[pipe].join(now());
    clocks_[pipe].set(scalar, flagged);
    Access access{agent(command.pipe), ++counts_[pipe], issued, command.name, command.where};
    access.text = domain_->number_of_text(command.name, command.where);
    access.may_poll = may_poll(command.source[0]);
    access.add = command.reads_target && command.target.global;
    const int target_pe = command.target.global ? domain_->names().pe_of(number_of(command.target.address)) : -1;
    if (command.pipe == Pipe::copy_out) access.pe = pe_;
    if (command.pipe == Pipe::copy_out && target_pe >= 0) access.to_target = domain_->agent_to(core_, target_pe);
    if (atomic_ && command.source[0].global) {
        domain_->report(Hazard::atomic_mode, side(command.pipe, command.name, command.where), atomic_at_, "",
                        "copies while the atomic mode is on");
    }
    std::vector<UbShadow::Range> padding[2];
    for (int i = 0; i < 2; ++i) {
        const Operand& source = command.source[i];
        check_operand(source, false, access);
        if (command.pipe == Pipe::vector && source.address != nullptr) {
            padding[i] = ub_shadow_.padding_in(number_of(source.address), source.bytes);
        }
    }
    if (command.reads_target && !command.target.global) check_operand(command.target, false, access);
    const bool own_writes = written_by_own(command.target);
    check_operand(command.target, true, access);
    for (int i = 0; i < 2; ++i) {
        for (const auto& [begin, end] : padding[i]) {
            const Address target = number_of(command.target.address);
            const std::size_t of = command.source[i].bytes;
            ub_shadow_.add_padding(target + begin * command.target.bytes / of,
                                   target + end * command.target.bytes / of);
        }
    }
    queues_[pipe].push_back(
        {++tickets_,
         landing(command, access, watched(command, access, own_writes, looking(command.source[0], std::move(run))))});
    if (domain_->control().run_command()) run_until(command.pipe, tickets_);
    point();
    const Operand& source = command.source[0];
    if (source.global)
        observe(number_of(source.address) * 2 + 1, source.address, number_of(command.target.address), command.where);
}

void CoreChecker::run_until(Pipe pipe, Ticket ticket) {
    auto& queue = queues_[number(pipe)];
    while (!queue.empty() && queue.front().ticket <= ticket) {
        const Item item = std::move(queue.front());
        queue.pop_front();
        if (item.run)
            item.run();
        else
            run_until(item.awaited, item.awaited_ticket);
    }
}

bool CoreChecker::run_oldest() {
    std::deque<Item>* oldest = nullptr;
    for (auto& queue : queues_) {
        if (!queue.empty() && (oldest == nullptr || queue.front().ticket < oldest->front().ticket)) oldest = &queue;
    }
    if (oldest == nullptr) return false;
    run_until(static_cast<Pipe>(oldest - queues_.data()), oldest->front().ticket);
    return true;
}

void CoreChecker::run_all() {
    while (run_oldest()) {
    }
}

// S has seen all pipes done, and every later command comes after everything that S did.
void CoreChecker::join_all_pipes() {
    now().join(polled_);
    for (std::size_t pipe = 1; pipe < pipes_per_core; ++pipe) {
        now().join(clocks_[pipe]);
        now().raise(agent(static_cast<Pipe>(pipe)), counts_[pipe]);
    }
    for (std::size_t pipe = 1; pipe < pipes_per_core; ++pipe) clocks_[pipe] = now();
}

void CoreChecker::set_flag(Pipe from, Pipe to, int id, Where where) {
    enter(where);
    Flag& flag = flags_[{from, to, id}];
    if (flag.sets > flag.waits) {
        domain_->report(Hazard::flag_set_twice, side(from, "set_flag", where), flag.set_at, "",
                        fmt::format("flag {} from {} to {} is set while it is still set", id, npu::name_of(from),
                                    npu::name_of(to)));
    }
    ++flag.sets;
    flag.set_at = side(from, "set_flag", where);
    flag.ticket = tickets_;
    flag.clock = clocks_[number(from)];
    flag.clock.raise(agent(from), counts_[number(from)]);
    if (from == Pipe::copy_out && to != Pipe::scalar) {
        domain_->note_sideways_flag(scalar_access("set_flag", where));
    }
}

void CoreChecker::never(const FlagKey& key, const SourceLocation& where) {
    throw KernelError(Code::mismatch,
                      fmt::format("wait_flag: S waits for flag {} from {}, which nobody has set: it would wait for "
                                  "ever ({}) [{}]",
                                  key.id, npu::name_of(key.from), text_of(where), id_of(Hazard::deadlock)),
                      Hazard::deadlock, where);
}

void CoreChecker::wait_flag(Pipe from, Pipe to, int id, Where where) {
    enter(where);
    const FlagKey key{from, to, id};
    Flag& flag = flags_[key];
    const bool set = flag.sets > flag.waits;
    if (!set && to == Pipe::scalar) never(key, where);
    ++flag.waits;
    flag.waited_at = side(to, "wait_flag", where);
    // A pipe may be told to wait before the flag is set; then nothing is known to be ordered.
    if (!set) return;
    clocks_[number(to)].join(flag.clock);
    if (to == Pipe::scalar) {
        run_until(from, flag.ticket);
        if (from == Pipe::copy_in) now().join(polled_);
    } else if (from != Pipe::scalar)
        queues_[number(to)].push_back({++tickets_, nullptr, from, flag.ticket});
}

void CoreChecker::pipe_barrier(Pipe pipe, Where where) {
    enter(where);
    if (pipe != Pipe::all) return clocks_[number(pipe)].raise(agent(pipe), counts_[number(pipe)]);
    run_all();
    join_all_pipes();
}

void CoreChecker::quiet(Where where) {
    enter(where);
    point();
    if (idle_) {
        domain_->report(Hazard::redundant, side(Pipe::scalar, "quiet", where), FindingSide{}, "",
                        "nothing was done since the last quiet");
    }
    run_all();
    join_all_pipes();
    clean_cache(where);
    domain_->deliver_from(core_);
    idle_ = true;
}

// What was copied is ordered, but complete only for this PE and for those that a later signal to its target reaches.
void CoreChecker::fence(Where where) {
    enter(where);
    point();
    const std::size_t out = number(Pipe::copy_out);
    run_until(Pipe::copy_out, everything);
    now().join(clocks_[out]);
    now().raise(fenced_agent(core_), counts_[out]);
    domain_->note_fence(core_, counts_[out]);
    clean_cache(where);
    domain_->deliver_from(core_);
}

Clock CoreChecker::passed_on(Address word, Clock clock) {
    const int target = domain_->names().pe_of(word);
    if (target >= 0) domain_->pass_fences(clock, pe_, target);
    return clock;
}

void CoreChecker::ub_allocated(std::size_t offset, std::size_t bytes, bool placed, Where where) {
    const Access access{agent(Pipe::scalar), 1, 1, placed ? "ub_at" : "ub_alloc", where};
    ub_shadow_.allocate(
        offset, bytes, placed, access, [&](Hazard hazard, const Access& other, Address at, const char* detail) {
            domain_->report(hazard, side(Pipe::scalar, access.name, where), other, fmt::format("UB + {}", at), detail);
        });
}

void CoreChecker::atomic_mode(bool on, Where where) {
    atomic_ = on;
    atomic_at_ = side(Pipe::copy_out, "set_atomic_add", where);
}

void CoreChecker::check_left_over() {
    for (const auto& [key, flag] : flags_) {
        const std::string name =
            fmt::format("flag {} from {} to {}", key.id, npu::name_of(key.from), npu::name_of(key.to));
        if (flag.sets > flag.waits)
            domain_->report(Hazard::left_over, flag.set_at, FindingSide{}, "", "the kernel ends with " + name + " set");
        if (flag.waits > flag.sets)
            domain_->report(Hazard::deadlock, flag.waited_at, FindingSide{}, "",
                            name + " is never set: the pipe and the kernel would never end");
    }
    if (atomic_) {
        domain_->report(Hazard::atomic_mode, atomic_at_, FindingSide{}, "", "the kernel ends with the atomic mode on");
    }
}

void CoreChecker::failed(const KernelError& error) {
    if (error.hazard() == Hazard::none) return;
    domain_->report(error.hazard(), side(Pipe::scalar, "the operation", error.where()), FindingSide{}, "",
                    error.what());
}

void CoreChecker::tell_overtaken() {
    domain_->overtaken().tell([this](const Access& signal, const Access& copy, Address to) {
        const bool store = copy.pipe() == Pipe::scalar;
        domain_->report(Hazard::unpublished, domain_->side_of(signal), copy, place_of(to, true),
                        fmt::format("signals to a PE {}, and nothing of this launch announces that later",
                                    store ? "while a store to its memory is still in the cache"
                                          : "before a copy to it is complete"));
    });
}

void CoreChecker::kernel_end() {
    point();
    check_left_over();
    run_all();
    join_all_pipes();
    clean_cache(place_->at.load(std::memory_order_relaxed));
    domain_->deliver_from(core_);
    domain_->core_ended(now());
    CoreMeeting& meeting = domain_->meeting(pe_);
    if (++meeting.ended == cores_) tell_overtaken();
    if (meeting.arrived > 0) {
        domain_->report(Hazard::core_barrier, meeting.first, FindingSide{}, "",
                        fmt::format("core_barrier was reached by {} of {} cores, and core {} ended the kernel without",
                                    meeting.arrived, cores_, index_));
    }
}

}  // namespace npushmem::npu::check
