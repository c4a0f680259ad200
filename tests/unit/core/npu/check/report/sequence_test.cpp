// SPDX-License-Identifier: BSD-3-Clause
// Sequence diagrams of failures: the events that they show, as SVG, as text and as JSON.
#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "tests/fakes/svg_elements.hpp"
#include "tests/unit/core/moe/ring/ring_kernels.hpp"
#include "tests/unit/core/npu/check/hazards.hpp"

namespace npushmem::npu {
namespace {

using EventKind = KernelEvent::Kind;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The first finding of this hazard under the schedule.
template <class Kernel>
Finding finding_of(Hazard hazard, const test::Setup& setup, const Kernel& kernel, const char* schedule = "lazy") {
    const CheckReport report = test::check(setup, Schedule::parse(schedule).value(), kernel);
    const auto found = std::ranges::find(report.findings, hazard, &Finding::hazard);
    if (found != report.findings.end()) return *found;
    ADD_FAILURE() << id_of(hazard) << " is not in\n" << report.text();
    return {};
}

const KernelEvent* event_of_side(const Finding& finding, const FindingSide& side) {
    const auto found = std::ranges::find(finding.events, side.event, &KernelEvent::number);
    return side.event != 0 && found != finding.events.end() ? &*found : nullptr;
}

std::size_t count_of(const Finding& finding, EventKind kind) {
    return static_cast<std::size_t>(std::ranges::count(finding.events, kind, &KernelEvent::kind));
}

// Two cores of a PE store to the same bytes.
void race(Core& core, std::uint64_t* data) {
    core.store(data, static_cast<std::uint64_t>(core.index()) + 1);
    core.dcci(data);
}

// The signal overtakes the put.
void unfenced(Core& core, std::uint64_t* data) {
    std::uint64_t* signal = data + 512;
    if (core.my_pe() == 0) {
        core.put(data, data + 64, 64, 1);
        return core.signal_set_on(signal, 1, 1);
    }
    core.signal_wait_until(signal, Compare::equal, 1, 0);
    core.dcci(data, 64 * sizeof *data);
    static_cast<void>(core.load(data));
}

Finding race_finding() { return finding_of(Hazard::write_race, test::two_cores, race); }
Finding unfenced_finding() { return finding_of(Hazard::unpublished, test::two_pes, unfenced); }

// The ring's kernels with a step omitted.
Finding ring_finding(Hazard hazard, moe::ring_test::Dropped dropped) {
    static const moe::ring_test::Script script{{{}, {64, 32, 64, 64}}, {{32, 64, 64, 32}, {}}};
    CheckedJobConfig config{.pes = 2, .heap_bytes = 64 * 1024};
    config.device.blocks = 1;
    config.device.launch_timeout = std::chrono::seconds(60);
    const auto job = CheckedJob::create(config).value();
    const moe::RingLayout layout(2, {moe::Bytes{96}, moe::Bytes{64}, moe::Bytes{32}}, moe::RingPlace::receiver);
    auto* region = job->allocate<std::byte>(layout.total().value());
    auto* x = job->allocate<std::byte>(1024);
    auto* out = job->allocate<std::byte>(1024);
    const CheckReport report = job->run(1, [&](Core& core) {
        const int me = core.my_pe();
        moe::ring_test::exchange(core,
                                 {{job->at(me, region), layout}, job->at(me, x), job->at(me, out), &script, dropped});
    });
    const auto found = std::ranges::find(report.findings, hazard, &Finding::hazard);
    if (found != report.findings.end()) return *found;
    ADD_FAILURE() << report.text();
    return {};
}

std::vector<Finding> pictured() {
    using moe::ring_test::Dropped;
    return {race_finding(), unfenced_finding(), ring_finding(Hazard::unpublished, Dropped::tail_fence),
            ring_finding(Hazard::dma_race, Dropped::read_flag),
            ring_finding(Hazard::missing_flag, Dropped::gather_flag)};
}

TEST(FailureEvents, HoldBothAccessesWithTheirMemory) {
    const Finding finding = race_finding();
    const KernelEvent* here = event_of_side(finding, finding.here);
    const KernelEvent* other = event_of_side(finding, finding.other);
    ASSERT_TRUE(here != nullptr && other != nullptr) << finding.json();
    EXPECT_EQ(here->kind, EventKind::store);
    EXPECT_EQ(other->kind, EventKind::store);
    EXPECT_NE(here->core, other->core);
    EXPECT_EQ(finding.here.address, finding.other.address);
    EXPECT_NE(finding.here.address, 0U);
    EXPECT_EQ(finding.here.bytes, 8U);
}

TEST(FailureEvents, AWaitNamesTheSignalThatEndedIt) {
    const Finding finding = unfenced_finding();
    const auto wait = std::ranges::find(finding.events, EventKind::wait, &KernelEvent::kind);
    ASSERT_NE(wait, finding.events.end()) << finding.json();
    const auto signal = std::ranges::find(finding.events, wait->cause, &KernelEvent::number);
    ASSERT_NE(signal, finding.events.end()) << finding.json();
    EXPECT_EQ(signal->kind, EventKind::signal);
    EXPECT_EQ(signal->pe, 0);
    EXPECT_EQ(wait->pe, 1);
    const KernelEvent* put = event_of_side(finding, finding.other);
    ASSERT_NE(put, nullptr);
    EXPECT_STREQ(put->what, "put");
    EXPECT_LT(put->number, put->landed);
    EXPECT_EQ(finding.other.bytes, 64 * sizeof(std::uint64_t));
}

TEST(FailureEvents, AreOrderedAndBounded) {
    for (const Finding& finding : pictured()) {
        EXPECT_LE(finding.events.size(), 24U);
        EXPECT_TRUE(std::ranges::is_sorted(finding.events, {}, &KernelEvent::number));
        EXPECT_NE(event_of_side(finding, finding.here), nullptr) << finding.json();
        EXPECT_NE(event_of_side(finding, finding.other), nullptr) << finding.json();
    }
}

// Many operations before and a loop of polls between the two accesses.
TEST(FailureEvents, CountRepeatedPollsOnce) {
    const Finding finding = finding_of(
        Hazard::unpublished, test::two_pes,
        [](Core& core, std::uint64_t* data) {
            std::uint64_t* signal = data + 512;
            for (int i = 0; i < 500; ++i) core.store(data + 600 + i % 8, 1);
            if (core.my_pe() == 0) {
                for (int i = 0; i < 40; ++i) core.yield();
                core.put(data, data + 64, 64, 1);
                return core.signal_set_on(signal, 1, 1);
            }
            while (core.signal_fetch(signal) == 0) core.yield();
            core.dcci(data);
            static_cast<void>(core.load(data));
        },
        "random:3");
    EXPECT_LE(finding.events.size(), 24U);
    EXPECT_LE(count_of(finding, EventKind::wait), 2U) << finding.json();
    EXPECT_TRUE(std::ranges::any_of(finding.events, [](const KernelEvent& event) { return event.times > 1; }))
        << finding.json();
    EXPECT_NE(event_of_side(finding, finding.other), nullptr);
}

TEST(FailureEvents, ShowEveryWaitOfADeadlock) {
    const Finding finding = finding_of(Hazard::deadlock, test::two_pes, [](Core& core, std::uint64_t* data) {
        core.signal_wait_until(data, Compare::equal, 1, 1 - core.my_pe());
        core.signal_set_on(data, 1, 1 - core.my_pe());
    });
    EXPECT_EQ(count_of(finding, EventKind::waiting), 2U) << finding.json();
    EXPECT_THAT(finding.diagram(), AllOf(HasSubstr("PE 0 core 0"), HasSubstr("PE 1 core 0"), HasSubstr("still waits")));
}

TEST(SequenceSvg, IsReadable) {
    for (const Finding& finding : pictured()) {
        const auto picture = fakes::read_svg(finding.svg());
        fakes::expect_inside_the_view_box(picture);
        fakes::expect_separate_texts(picture);
        const auto boxes = picture.all("rect");
        EXPECT_EQ(std::ranges::count_if(boxes, [](const auto& box) { return box.attribute("stroke") == "#c00000"; }), 2)
            << finding.text();
        const auto lines = picture.all("polyline");
        EXPECT_TRUE(std::ranges::any_of(lines, [](const auto& line) {
            return line.attribute("stroke") == "#c00000" && !line.attribute("stroke-dasharray").empty();
        })) << finding.text();
    }
}

// The width of a line in characters: every byte that does not continue a character.
std::size_t columns_of(const std::string& line) {
    return static_cast<std::size_t>(
        std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Whether every letter of UTF-8 is whole.
bool is_utf8(const std::string& text) {
    std::size_t more = 0;  // bytes of the current letter
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool continues = (byte & 0xc0) == 0x80;
        if (continues != (more > 0)) return false;
        more = continues ? more - 1 : byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
    }
    return more == 0;
}

TEST(SequencePictures, CutNamesBetweenLetters) {
    Finding finding = unfenced_finding();
    for (const char* first : {"", "x", "xy"}) {
        std::string name = first;
        for (int i = 0; i < 150; ++i) name += "ä";
        finding.kernel = name;
        finding.detail = name;
        finding.place = name;
        for (KernelEvent& event : finding.events) event.elsewhere = name.c_str();
        EXPECT_TRUE(is_utf8(finding.svg())) << first;
        for (const int columns : {80, 81, 100}) EXPECT_TRUE(is_utf8(finding.diagram(columns))) << first;
    }
}

TEST(SequenceText, FitsItsWidth) {
    for (const Finding& finding : pictured()) {
        for (const int width : {10, 80, 100, 160, 1000}) {
            std::istringstream lines(finding.diagram(width));
            for (std::string line; std::getline(lines, line);)
                EXPECT_LE(columns_of(line), static_cast<std::size_t>(std::clamp(width, 80, 160))) << line;
        }
    }
}

TEST(SequenceText, MarksTheAccessesAndTheMissingOrder) {
    const std::string text = unfenced_finding().diagram();
    EXPECT_THAT(text, AllOf(HasSubstr("PE 0 core 0"), HasSubstr("PE 1 core 0"), HasSubstr("✘ put 512 B to PE 1"),
                            HasSubstr("✘ load 8 B"), HasSubstr("signal_set 1 to PE 1"), HasSubstr("sees signal 1"),
                            HasSubstr("─▶"), HasSubstr("┈▶"), HasSubstr("put arrives"), HasSubstr("╌ no order ╌"),
                            HasSubstr("sequence_test.cpp:"), HasSubstr("advice: before the signal")));
    EXPECT_THAT(race_finding().diagram(), Not(HasSubstr("sees signal")));
}

TEST(SequenceText, HasAColumnForEachPipeOfOneCore) {
    const Finding finding = finding_of(Hazard::missing_flag, {}, [](Core& core, std::uint64_t* data) {
        auto* numbers = reinterpret_cast<float*>(data);
        const auto a = core.ub_alloc<float>(64);
        core.data_copy(a, gm(numbers, 64), 64);
        core.add(a, a, a, 64);
    });
    EXPECT_THAT(finding.diagram(), AllOf(HasSubstr("PE 0 core 0 V"), HasSubstr("PE 0 core 0 MTE2"),
                                         HasSubstr("✘ data_copy 256 B"), HasSubstr("✘ add 256 B")));
}

TEST(FindingJson, HasTheFindingItsSidesAndItsEvents) {
    const std::string json = unfenced_finding().json();
    EXPECT_THAT(json, AllOf(HasSubstr("\"hazard\": \"H8\""), HasSubstr("\"allocation\": \"symmetric allocation 0"),
                            HasSubstr("\"advice\": \"before the signal"), HasSubstr("\"operation\": \"put\""),
                            HasSubstr("\"address\": \"0x"), HasSubstr("\"bytes\": 512"), HasSubstr("\"events\": ["),
                            HasSubstr("\"kind\": \"signal\""), HasSubstr("sequence_test.cpp\"")));
}

}  // namespace
}  // namespace npushmem::npu
