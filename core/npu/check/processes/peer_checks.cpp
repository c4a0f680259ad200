// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/processes/peer_checks.hpp"

#include <algorithm>

#include "core/npu/source_line.hpp"

namespace npushmem::npu::check {
namespace {

// Bits of an offset in the memory of a PE.
constexpr unsigned offset_bits = 44;
constexpr std::uintptr_t offset_mask = (std::uintptr_t{1} << offset_bits) - 1;
// Of a barrier's state, how many generations of a PE's calls are kept: members of a correct team are one apart at most.
constexpr std::uint64_t kept_generations = 4;

void join(Clock& clock, const JobContent::Release& release) {
    clock.join(release.clock);
    if (release.unrecorded) clock.set_unrecorded();
}

}  // namespace

RecordsView::Address RecordsView::place_of(Address address) const {
    const int pe = address - window_.base < window_.bytes ? window_.my_pe : window_.pe_of(address);
    if (pe < 0) return 0;
    return (static_cast<Address>(pe) + 1) << offset_bits | (address - window_.base_of(pe));
}

RecordsView::Address RecordsView::address_of(Address place) const {
    return window_.base_of(static_cast<int>(place >> offset_bits) - 1) + (place & offset_mask);
}

bool RecordsView::any_host_called() const {
    for (int pe = 0; pe < fabric_.n_pes(); ++pe)
        if (link_.host_called(pe, host_barrier_)) return true;
    return false;
}

bool RecordsView::is_symmetric(Address address) const {
    return fabric_.remote(reinterpret_cast<const void*>(address), window_.my_pe) != nullptr;
}

PeerMemory::Report PeerMemory::filter(const Clock& clock, const Report& report) const {
    return [this, &clock, &report](Hazard hazard, const Access& other, Address at, const char* detail) {
        JobContent& content = view_.records().content();
        const JobContent::Cores* const owner = content.cores_with(other.core());
        if (owner == nullptr || owner->pe == view_.my_pe() || content.kernel_failed) return;
        if (!clock.unrecorded() && view_.link().complete()) report(hazard, other, view_.address_of(at), detail);
    };
}

void PeerMemory::record_last(const Access& access) {
    std::uint32_t& last = last_[access.agent];
    last = std::max(last, access.sequence);
}

void PeerMemory::copy_read(Address begin, Address end, const Access& access, const Clock& clock, const Report& report) {
    const Address place = view_.place_of(begin);
    if (place == 0) return;
    record_last(access);
    view_.with_content([&](JobContent& content) {
        content.memory.copy_read(place, place + (end - begin), access, clock, filter(clock, report));
    });
}

void PeerMemory::copy_write(Address begin, Address end, const Access& access, const Clock& clock,
                            const Report& report) {
    const Address place = view_.place_of(begin);
    if (place == 0) return;
    record_last(access);
    view_.with_content([&](JobContent& content) {
        content.memory.copy_write(place, place + (end - begin), access, clock, filter(clock, report));
    });
}

void PeerMemory::landed(Address begin, Address end, const Access& access, Stamp stamp) {
    const Address place = view_.place_of(begin);
    if (place == 0) return;
    view_.with_content(
        [&](JobContent& content) { content.memory.landed(place, place + (end - begin), access, stamp); });
}

void PeerMemory::store(Address begin, Address end, const Access& access, const Clock& clock, const Report& report) {
    const Address place = view_.place_of(begin);
    if (place == 0) return;
    record_last(access);
    view_.with_content([&](JobContent& content) {
        content.memory.store(place, place + (end - begin), access, clock, filter(clock, report));
    });
}

void PeerMemory::load(Address begin, Address end, std::uint32_t core, const Clock& clock, Stamp filled,
                      const Report& report) {
    const Address place = view_.place_of(begin);
    if (place == 0) return;
    view_.with_content([&](JobContent& content) {
        content.memory.load(place, place + (end - begin), core, clock, filled, filter(clock, report));
    });
}

void PeerMemory::write_back(Address begin, std::uint64_t dirty, const Access& flush, const Clock& clock, Stamp filled,
                            Stamp stamp, const Report& report) {
    const Address place = view_.place_of(begin);
    if (place == 0) return;
    record_last(flush);
    view_.with_content([&](JobContent& content) {
        content.memory.write_back(place, dirty, flush, filled, stamp, filter(clock, report));
    });
}

void PeerMemory::signal(Address begin, Address end, const Access& access, const Clock& clock, bool exclusive,
                        const Report& report) {
    const Address place = view_.place_of(begin);
    if (place == 0) return;
    record_last(access);
    view_.with_content([&](JobContent& content) {
        content.memory.signal(place, place + (end - begin), access, clock, exclusive, filter(clock, report));
    });
}

UnorderedWrite PeerMemory::unordered_in_line(Address address, std::size_t bytes, std::uint32_t core,
                                             const Clock& clock) const {
    UnorderedWrite found;
    const Address place = view_.place_of(address);
    if (place == 0) return found;
    view_.with_content([&](JobContent& content) {
        const UnorderedWrite any = content.memory.unordered_in_line(place, bytes, core, clock);
        if (!any.write.exists()) return;
        filter(clock, [&](Hazard, const Access& write, Address at, const char*) {
            found = {write, at};
        })(Hazard::none, any.write, any.at, "");
    });
    return found;
}

Access PeerMemory::unordered_copy(Address address, std::uint32_t core, const Clock& clock, Stamp filled) const {
    Access found;
    const Address place = view_.place_of(address);
    if (place == 0) return found;
    view_.with_content([&](JobContent& content) {
        const Access any = content.memory.unordered_copy(place, core, clock, filled);
        if (!any.exists()) return;
        filter(clock, [&](Hazard, const Access& write, Address, const char*) { found = write; })(Hazard::none, any,
                                                                                                 place, "");
    });
    return found;
}

Access PeerMemory::writer_of(Address address) const {
    Access writer;
    const Address place = view_.place_of(address);
    if (place != 0) view_.with_content([&](JobContent& content) { writer = content.memory.writer_of(place); });
    return writer;
}

void PeerMemory::join_accesses(Clock& clock) const {
    for (const auto& [agent, sequence] : last_) clock.raise(agent, sequence);
}

PeerChecks::PeerChecks(const JobLink& link, const Fabric& fabric, std::uint64_t queued_at, bool shares_events)
    : view_(link, fabric, queued_at),
      memory_(view_),
      shares_events_(shares_events),
      beginning_(view_.my_pe()),
      end_(view_.my_pe()) {}

std::unique_ptr<PeerChecks> PeerChecks::begin(const JobLink* link, const Fabric& fabric, int cores,
                                              std::uint64_t queued_at, bool shares_events) {
    if (link == nullptr || !link->complete() || link->records().off()) return nullptr;
    std::unique_ptr<PeerChecks> made(new PeerChecks(*link, fabric, queued_at, shares_events));
    made->view_.with_content([&](JobContent&) { made->register_cores(static_cast<std::uint32_t>(cores)); });
    return made->cores_ != 0 ? std::move(made) : nullptr;
}

void PeerChecks::register_cores(std::uint32_t cores) {
    JobRecords& records = view_.records();
    if (records.content().outdated(view_.host_barrier())) records.clear();
    JobContent& content = records.content();
    order_beginning(content);
    JobContent::Cores& taken = content.acquire_cores(view_.my_pe(), cores);
    taken.running = true;
    taken.begun = view_.host_barrier();
    first_core_ = taken.first;
    cores_ = cores;
    for (std::uint32_t core = taken.first; core < taken.first + taken.count; ++core) {
        content.events.erase(core);
        content.sideways_flags.erase(core);
    }
}

// A host barrier orders the kernels that ended before it. What a host has learned of a kernel that still runs is
// unknown.
void PeerChecks::order_beginning(const JobContent& content) {
    const int me = view_.my_pe();
    const std::uint64_t last = view_.host_barrier();
    for (const JobContent::Ended& ended : content.ended) {
        if (ended.pe == me || ended.before <= last) beginning_.join(ended.clock);
        if (ended.pe == me && ended.before > last && ended.unrecorded) beginning_.set_unrecorded();
        if (ended.pe != me && ended.before > last && ended.begun < last) beginning_.set_unrecorded();
    }
    for (const JobContent::Cores& others : content.cores)
        if (others.running && others.pe != me && others.begun < last) beginning_.set_unrecorded();
    if (view_.link().host_called(me, last)) beginning_.set_unrecorded();
}

std::uint32_t PeerChecks::new_agent() {
    auto& next = spare_agents_[0];
    auto& left = spare_agents_[1];
    if (left == 0) {
        view_.with_content([&](JobContent& content) { next = content.next_core++ * agents_per_core; });
        left = agents_per_core;
    }
    --left;
    return next++;
}

std::uint32_t PeerChecks::number_of_text(const char* name, const SourceLocation& where) {
    const auto found = texts_.try_emplace({name, where.file_name(), where.line(), where.column()}, 0);
    const auto known = found.first;
    if (!found.second) return known->second;
    view_.with_content([&](JobContent& content) {
        const std::string place = npu::text_of(where);
        content.texts.push_back({SharedText(name), SharedText(place.begin(), place.end())});
        known->second = static_cast<std::uint32_t>(content.texts.size());
    });
    return known->second;
}

FindingSide PeerChecks::side_of(const Access& access) {
    FindingSide side;
    view_.with_content([&](JobContent& content) {
        const JobContent::Cores* const cores = content.cores_with(access.core());
        if (cores == nullptr || access.text == 0) return;
        side = side_in_job(cores->pe, static_cast<int>(access.core() - cores->first), access.pipe(), access.text);
    });
    return side;
}

FindingSide PeerChecks::side_in_job(int pe, int core, Pipe pipe, std::uint32_t text) {
    const JobContent::Text& known = view_.records().content().texts[text - 1];
    FindingSide side{pe, core, pipe, names_.emplace(known.what.begin(), known.what.end()).first->c_str(), {}};
    side.elsewhere.assign(known.where.begin(), known.where.end());
    return side;
}

void PeerChecks::barrier_called(const BarrierDescriptor& call, int cores, const FindingSide& here,
                                const UseBarrierCall& use) {
    const Address state = view_.place_of(number_of(call.state)) & offset_mask;
    const std::uint32_t text = number_of_text(call.variant, here.where);
    if (state == 0 || text == 0) return;
    view_.with_content([&](JobContent& content) {
        const bool known = view_.link().complete() && !content.kernel_failed;
        for (const JobContent::BarrierCall& other : content.barrier_calls) {
            if (!known || other.pe == here.pe || other.state != state || other.generation != call.generation) continue;
            // Of an earlier barrier, perhaps in memory that was allocated again.
            if (other.ended_before != 0 && other.ended_before <= view_.host_barrier()) continue;
            const FindingSide side = side_in_job(other.pe, other.core, Pipe::scalar, other.text);
            use({side.what, other.start, other.stride, other.size, other.radix, call.state, call.generation},
                other.cores, side);
        }
        std::erase_if(content.barrier_calls, [&](const JobContent::BarrierCall& old) {
            return old.pe == here.pe && old.state == state && old.generation + kept_generations <= call.generation;
        });
        content.barrier_calls.push_back({here.pe, here.core, first_core_, state, call.generation, call.start,
                                         call.stride, call.size, call.radix, cores, text});
    });
}

void PeerChecks::release(Address word, const Clock& clock, bool add, std::uint64_t before, std::uint64_t after) {
    const Address place = view_.place_of(word);
    if (place == 0) return;
    view_.with_content([&](JobContent& content) {
        JobContent::Word& releases = content.words[place];
        if (!releases[0].exists) {
            releases[0].exists = true;
            releases[0].value = before;
        }
        std::rotate(releases.begin(), std::prev(releases.end()), releases.end());
        JobContent::Release& made = releases[0];
        made.exists = true;
        made.value = after;
        made.unrecorded = clock.unrecorded() || (add && releases[1].unrecorded);
        made.clock.assign(clock.values().begin(), clock.values().end());
        if (add) join(made.clock, releases[1].clock);
    });
}

void PeerChecks::acquire(Address word, std::optional<std::uint64_t> seen, bool waited, Clock& clock) {
    const Address place = view_.place_of(word);
    if (place == 0) {
        if (waited || view_.is_symmetric(word)) clock.set_unrecorded();
        return;
    }
    if (view_.any_host_called()) clock.set_unrecorded();
    view_.with_content([&](JobContent& content) {
        const auto found = content.words.find(place);
        if (found == content.words.end()) return;
        const auto saw = [&](const JobContent::Release& one) { return one.exists && one.value == seen; };
        const bool known = seen.has_value() && std::ranges::any_of(found->second, saw);
        for (const JobContent::Release& one : found->second)
            if (!known || saw(one)) join(clock, one);
        if (!known && waited) clock.set_unrecorded();
    });
}

void PeerChecks::record_sideways_flag(const Access& flag) {
    const std::uint32_t text = number_of_text(flag.name, flag.where);
    view_.with_content([&](JobContent& content) { content.sideways_flags[flag.core()] = {flag.issued, text}; });
}

PeerChecks::SidewaysFlag PeerChecks::sideways_flag(std::uint32_t core) {
    SidewaysFlag flag;
    view_.with_content([&](JobContent& content) {
        const auto found = content.sideways_flags.find(core);
        if (found == content.sideways_flags.end() || found->second.text == 0) return;
        const SharedText& where = content.texts[found->second.text - 1].where;
        flag = {found->second.issued, {where.begin(), where.end()}};
    });
    return flag;
}

void PeerChecks::keep_event(std::uint32_t core, std::size_t place, const KernelEvent& event, std::uint32_t issued) {
    const std::uint32_t text = number_of_text(event.what, event.where);
    view_.with_content([&](JobContent& content) {
        JobContent::Events& kept = content.events[core];
        if (kept.size() <= place) kept.resize(place + 1);
        kept[place] = {event.kind,
                       event.pipe,
                       event.to,
                       text,
                       issued,
                       event.number,
                       event.landed,
                       event.value,
                       event.times,
                       view_.place_of(event.read.address),
                       event.read.bytes,
                       view_.place_of(event.written.address),
                       event.written.bytes};
    });
}

EventMemory PeerChecks::memory_at(Address place, std::uint64_t bytes) const {
    if (place == 0) return {};
    return {view_.address_of(place), bytes};
}

std::vector<KernelEvent> PeerChecks::peer_events() {
    std::vector<KernelEvent> all;
    view_.with_content([&](JobContent& content) {
        for (const auto& [core, events] : content.events) {
            const JobContent::Cores* const owner = content.cores_with(core);
            if (owner == nullptr || owner->pe == view_.my_pe()) continue;
            for (const JobContent::Event& kept : events) {
                if (kept.text == 0) continue;
                const FindingSide side =
                    side_in_job(owner->pe, static_cast<int>(core - owner->first), kept.pipe, kept.text);
                KernelEvent& event = all.emplace_back();
                event.kind = kept.kind;
                event.pipe = kept.pipe;
                event.to = kept.to;
                event.pe = side.pe;
                event.core = side.core;
                event.what = side.what;
                event.elsewhere = names_.insert(side.elsewhere).first->c_str();
                event.number = kept.number;
                event.landed = kept.landed;
                event.read = memory_at(kept.read, kept.read_bytes);
                event.written = memory_at(kept.written, kept.written_bytes);
                event.value = kept.value;
                event.times = kept.times;
            }
        }
    });
    return all;
}

std::uint64_t PeerChecks::event_number(const Access& access) {
    std::uint64_t number = 0;
    view_.with_content([&](JobContent& content) {
        const auto found = content.events.find(access.core());
        if (found == content.events.end() || access.issued == 0 || access.text == 0) return;
        const SharedText& what = content.texts[access.text - 1].what;
        for (const JobContent::Event& kept : found->second)
            if (kept.issued == access.issued && kept.text != 0 && content.texts[kept.text - 1].what == what)
                number = std::max(number, kept.number);
    });
    return number;
}

void PeerChecks::core_ended(const Clock& clock) { end_.join(clock); }

void PeerChecks::launch_ended(bool all_cores) {
    memory_.join_accesses(end_);
    view_.with_content([&](JobContent& content) {
        JobContent::Cores* const own = content.cores_with(first_core_);
        own->running = false;
        content.kernel_failed = content.kernel_failed || !all_cores;
        const std::uint64_t before = view_.link().host_barrier() + 1;
        for (JobContent::BarrierCall& call : content.barrier_calls)
            if (call.launch == first_core_ && call.ended_before == 0) call.ended_before = before;
        content.add_ended({view_.my_pe(), own->begun, before, end_.unrecorded(),
                           SharedClock(end_.values().begin(), end_.values().end())});
    });
}

}  // namespace npushmem::npu::check
