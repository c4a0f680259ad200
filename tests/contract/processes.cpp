// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/processes.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/contract/case_process.hpp"
#include "tests/contract/case_runner.hpp"

namespace npushmem::contract {
namespace {

constexpr std::chrono::seconds start_limit{60};
constexpr std::chrono::seconds end_limit{30};

// The stage by which PeProcess::connect reports that it has connected to all peers.
const std::string connected_stage = "connected";

std::unique_ptr<Slice> slice_for(const ProcessRole& role) {
    const auto pe = static_cast<std::uint64_t>(role.pe);
    const std::uint64_t all = role.bytes_per_pe * static_cast<std::uint64_t>(role.npes);
    if (role.file >= 0)
        return std::make_unique<Slice>(std::make_shared<const SharedFile>(role.file, all), pe * role.bytes_per_pe,
                                       role.bytes_per_pe);
    return std::make_unique<Slice>(std::make_shared<const SharedFile>(role.bytes_per_pe), 0, role.bytes_per_pe);
}

}  // namespace

struct PeProcess::State {
    State(const Subject& its_subject, const ProcessRole& its_role)
        : subject(its_subject), role(its_role), channel(Descriptor(its_role.channel)) {}

    void send(const PeMessage& message) const {
        if (!channel.send(message)) throw std::runtime_error("the process of the case has closed its channel");
    }
    PeMessage receive(Waiting waiting) {
        for (;;) {
            if (auto message = channel.receive()) return std::move(*message);
            if (channel.is_closed()) throw std::runtime_error("the process of the case has closed its channel");
            if (waiting == Waiting::idle || !pe)
                channel.wait();
            else if (pe->transport().progress() == Code::again)
                std::this_thread::yield();
        }
    }

    const Subject& subject;
    const ProcessRole& role;
    PeChannel channel;
    std::unique_ptr<Pe> pe;
};

PeProcess::PeProcess(const Subject& subject, const ProcessRole& role)
    : state_(std::make_unique<State>(subject, role)) {}

PeProcess::~PeProcess() = default;

void PeProcess::connect() {
    State& s = *state_;
    auto opened = s.subject.open_with_devices(params_of(number(), npes() + s.role.absent));
    if (!opened.ok()) throw std::runtime_error("open: " + opened.status().message());
    s.pe = std::make_unique<Pe>(number(), std::move(opened).value(), slice_for(s.role));
    auto mine = s.pe->publish();
    if (!mine.ok()) throw std::runtime_error(mine.status().message());
    s.send({PeMessage::Kind::connect_info, encode({number(), ::getpid(), std::move(mine).value()})});
    for (auto message = s.receive(Waiting::with_progress); message.kind == PeMessage::Kind::connect_info;
         message = s.receive(Waiting::with_progress)) {
        const PeConnectInfo other = decode_connect_info(message.content);
        if (other.pe >= npes()) {
            (void)s.pe->transport().reach(other.peer(other.pe));
            continue;
        }
        if (const Status made = s.pe->connect(other.peer(other.pe), other.info); !made.ok())
            throw std::runtime_error("to PE " + std::to_string(other.pe) + ": " + made.message());
    }
    reached(connected_stage);
}

Pe& PeProcess::pe() {
    if (!state_->pe) throw std::logic_error("PeProcess::pe: call connect first");
    return *state_->pe;
}

int PeProcess::number() const { return state_->role.pe; }
int PeProcess::npes() const { return state_->role.npes; }

void PeProcess::reached(const std::string& stage, Waiting waiting) {
    report_stage(stage);
    if (state_->receive(waiting).kind != PeMessage::Kind::go)
        throw std::logic_error("the process of the case sent something other than go");
}

void PeProcess::report_stage(const std::string& stage) { state_->send({PeMessage::Kind::stage, stage}); }

struct PeProcesses::State {
    struct StartedPe {
        StartedPe(const ProcessRole& role, PeChannel own_end)
            : process(role, -1, CaseProcess::Group::same), channel(std::move(own_end)) {}

        CaseProcess process;
        PeChannel channel;
        std::set<std::string> stages;
        std::optional<std::string> connect_info;
        bool living = true;
        bool succeeded = false;  // once it is no longer living
        bool killed = false;     // by signal()
        bool has_failures = false;
    };

    explicit State(const Subject& its_subject) : subject(its_subject) {}

    using Clock = std::chrono::steady_clock;

    // Receives what there is, after waiting for it until `end`.
    void collect(Clock::time_point end);
    void receive_from(int pe, StartedPe& one);
    void report_end(int pe, StartedPe& one) const;
    // Collects until `done` returns true for each living PE, and fails for what ends or does not come.
    template <class Done>
    bool wait(Clock::duration limit, const std::string& what, Done done);

    const Subject& subject;
    std::unique_ptr<SharedFile> file;
    std::vector<std::unique_ptr<StartedPe>> all;
};

void PeProcesses::State::collect(Clock::time_point end) {
    std::vector<pollfd> waited;
    bool can_wait_for_ends = true;
    for (const auto& one : all) {
        if (!one->living) continue;
        waited.push_back({one->channel.descriptor(), POLLIN, 0});
        waited.push_back({one->process.results(), POLLIN, 0});
        waited.push_back({one->process.end(), POLLIN, 0});
        can_wait_for_ends = can_wait_for_ends && one->process.end() >= 0;
    }
    const long longest = can_wait_for_ends ? 60'000 : 50;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    (void)::poll(waited.data(), waited.size(), static_cast<int>(std::clamp<long>(left, 0, longest)));
    for (std::size_t pe = 0; pe < all.size(); ++pe)
        if (all[pe]->living) receive_from(static_cast<int>(pe), *all[pe]);
}

void PeProcesses::State::receive_from(int pe, StartedPe& one) {
    const bool has_ended = one.process.has_ended();  // before the last results and messages are read
    while (auto message = one.channel.receive()) {
        if (message->kind == PeMessage::Kind::stage) one.stages.insert(message->content);
        if (message->kind == PeMessage::Kind::connect_info) one.connect_info = message->content;
    }
    for (const auto& part : one.process.read_results()) {
        if (part.kind != ResultPart::Kind::failure) continue;
        one.has_failures = true;
        forward_failure(part);
    }
    if (!has_ended) return;
    one.living = false;
    one.channel.close();
    one.succeeded = one.process.has_finished() && one.process.exited_with_success() && !one.has_failures;
    report_end(pe, one);
}

void PeProcesses::State::report_end(int pe, StartedPe& one) const {
    if (one.killed || one.succeeded || one.has_failures) return;
    one.has_failures = true;
    ADD_FAILURE() << "the process of PE " << pe << " " << one.process.how_it_ended()
                  << (one.process.has_finished() ? " after it had finished without a failure" : "");
}

template <class Done>
bool PeProcesses::State::wait(Clock::duration limit, const std::string& what, Done done) {
    const auto end = Clock::now() + limit;
    for (;;) {
        std::string missing;
        bool ended = false;
        for (std::size_t pe = 0; pe < all.size(); ++pe) {
            const StartedPe& one = *all[pe];
            if (done(static_cast<int>(pe), one)) continue;
            missing += (missing.empty() ? "PE " : ", PE ") + std::to_string(pe);
            ended = ended || !one.living;
        }
        if (missing.empty()) return true;
        if (ended || Clock::now() >= end) {
            ADD_FAILURE()
                << missing << ": did not reach '" << what << "'"
                << (ended ? ", a process has ended"
                          : " within " +
                                std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) + " s");
            return false;
        }
        collect(end);
    }
}

namespace {

PeConnectInfo connect_info_of_this_process(const Pe& pe) {
    auto address = pe.transport().address();
    if (!address.ok()) throw std::runtime_error("address: " + address.status().message());
    return {pe.number(), ::getpid(), {std::move(address).value(), pe.handle()}};
}

}  // namespace

PeProcesses::PeProcesses(const Subject& subject, int npes, std::uint64_t bytes_per_pe, int absent)
    : state_(std::make_unique<State>(subject)) {
    if (subject.layout == Layout::one_file)
        state_->file = std::make_unique<SharedFile>(bytes_per_pe * static_cast<std::uint64_t>(npes));
    for (int pe = 0; pe < npes; ++pe) {
        auto [own_end, other_end] = PeChannel::make_pair();
        ProcessRole role;
        role.case_name = running_case();
        role.pe = pe;
        role.npes = npes;
        role.absent = absent;
        role.bytes_per_pe = bytes_per_pe;
        role.channel = other_end.descriptor();
        role.file = state_->file ? state_->file->descriptor() : -1;
        state_->all.push_back(std::make_unique<State::StartedPe>(role, std::move(own_end)));
    }
}

PeProcesses::~PeProcesses() {
    state_->collect(State::Clock::now());  // failures of PEs whose end nobody waited for
    for (const auto& one : state_->all)
        if (one->living) one->process.kill();
}

int PeProcesses::npes() const { return static_cast<int>(state_->all.size()); }

bool PeProcesses::connect(const std::vector<const Pe*>& opened_here) {
    // The processes start first, which may take long on a busy machine.
    const auto limit = std::max<State::Clock::duration>(3 * state_->subject.transport.wait_timeout, start_limit);
    const auto has_info = [](int, const State::StartedPe& one) { return one.connect_info.has_value(); };
    if (!state_->wait(limit, "exchange of addresses", has_info)) return false;
    for (const auto& to : state_->all) {
        for (const auto& from : state_->all)
            (void)to->channel.send({PeMessage::Kind::connect_info, *from->connect_info});
        for (const Pe* from : opened_here)
            (void)to->channel.send({PeMessage::Kind::connect_info, encode(connect_info_of_this_process(*from))});
    }
    go_all();
    const auto is_connected = [](int, const State::StartedPe& one) { return one.stages.contains(connected_stage); };
    if (!state_->wait(limit, connected_stage, is_connected)) return false;
    go_all();
    return true;
}

bool PeProcesses::wait_for(const std::string& stage) {
    return state_->wait(2 * state_->subject.transport.wait_timeout, stage, [&](int, const State::StartedPe& one) {
        return one.stages.contains(stage) || one.killed || one.succeeded;
    });
}

bool PeProcesses::wait_for(int pe, const std::string& stage) {
    return state_->wait(2 * state_->subject.transport.wait_timeout, stage, [&](int other, const State::StartedPe& one) {
        return other != pe || one.stages.contains(stage);
    });
}

void PeProcesses::go(int pe) {
    (void)state_->all.at(static_cast<std::size_t>(pe))->channel.send({PeMessage::Kind::go, {}});
}

void PeProcesses::go_all() {
    for (const auto& one : state_->all)
        if (one->living) (void)one->channel.send({PeMessage::Kind::go, {}});
}

void PeProcesses::signal(int pe, int number) {
    State::StartedPe& one = *state_->all.at(static_cast<std::size_t>(pe));
    if (!one.living) return;  // its number may belong to another process
    if (number == SIGKILL) one.killed = true;
    one.process.signal(number);
    if (number == SIGSTOP) {
        siginfo_t information{};
        (void)::waitid(P_PID, static_cast<id_t>(one.process.id()), &information, WSTOPPED | WEXITED | WNOWAIT);
    }
    if (number != SIGKILL) return;
    const auto end = State::Clock::now() + end_limit;
    while (one.living && State::Clock::now() < end) state_->collect(end);
    EXPECT_FALSE(one.living) << "SIGKILL did not end the process of PE " << pe << " within " << end_limit.count()
                             << " s";
}

PeConnectInfo PeProcesses::connect_info_of(int pe) const {
    const auto& content = state_->all.at(static_cast<std::size_t>(pe))->connect_info;
    if (!content) throw std::logic_error("PeProcesses::connect_info_of: call connect first");
    return decode_connect_info(*content);
}

void PeProcesses::expect_all_to_end() {
    // The limit must be below that of the whole case, which would end this process without naming the PE.
    const auto limit = std::max<State::Clock::duration>(2 * state_->subject.transport.wait_timeout, end_limit);
    const auto end = State::Clock::now() + limit;
    while (State::Clock::now() < end &&
           std::any_of(state_->all.begin(), state_->all.end(), [](const auto& one) { return one->living; }))
        state_->collect(end);
    for (int pe = 0; pe < npes(); ++pe)
        EXPECT_FALSE(state_->all[static_cast<std::size_t>(pe)]->living)
            << "the process of PE " << pe << " has not ended within "
            << std::chrono::duration_cast<std::chrono::seconds>(limit).count() << " s";
}

}  // namespace npushmem::contract
