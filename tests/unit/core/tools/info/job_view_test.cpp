// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/info/job_view.hpp"

#include <gmock/gmock.h>

#include <set>

#include "core/tools/info/drawing.hpp"
#include "core/tools/info/reports.hpp"
#include "core/tools/run/placement.hpp"
#include "tests/fakes/svg_elements.hpp"
#include "tests/fakes/topologies.hpp"

namespace npushmem::info {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Settings settings_for(const std::string& machine) {
    Settings settings;
    settings.topo_file = topology::topology_path(machine + ".xml");
    settings.nic_policy = "balanced";
    settings.transports = "self,p2p";
    settings.remote_transport = "none";
    settings.nic_arbitration = false;
    return settings;
}

JobView view(const std::string& machine, int pes, int nodes) {
    auto job = view_job(settings_for(machine), pes, nodes);
    EXPECT_TRUE(job.ok()) << job.status().message();
    return std::move(job).value();
}

TEST(ViewJob, NumbersPesThroughTheHosts) {
    const auto job = view("switch-pairs", 16, 2);
    EXPECT_EQ(job.pes(), 16u);
    EXPECT_EQ(job.pe(9).pe, 9u);
    EXPECT_EQ(job.pe(9).nics.at(0).nic, "mlx5_1");
}

TEST(ViewJob, DealsPesOutAsTheLauncherDoes) {
    for (const auto& [pes, nodes] : {std::pair(5, 2), {8, 3}, {7, 7}, {1, 1}}) {
        const auto job = view("flat-vm", pes, nodes);
        ASSERT_EQ(job.pes(), static_cast<std::size_t>(pes));
        ASSERT_THAT(job.hosts, SizeIs(nodes));
        for (int pe = 0; pe < pes; ++pe) {
            const auto host = static_cast<std::size_t>(run::emulated_host_of(pe, pes, nodes, run::MapBy::block));
            EXPECT_EQ(job.pe(static_cast<std::size_t>(pe)).pe, static_cast<std::uint32_t>(pe));
            const auto& there = job.hosts[host].pes;
            EXPECT_EQ(std::count(there.begin(), there.end(), job.pe(static_cast<std::size_t>(pe))), 1);
        }
    }
    const auto text = describe_map(view("switch-pairs", 5, 2));
    EXPECT_THAT(text, AllOf(HasSubstr("(5 PEs, 2 hosts)"), HasSubstr("1-2  p2p"),
                            HasSubstr("mlx5_0:1 -> mlx5_0:1  another host")));
}

TEST(ViewJob, RefusesFewerPesThanHosts) {
    EXPECT_THAT(view_job(settings_for("flat-vm"), 2, 3).status().message(), HasSubstr("2 PEs are too few for 3 hosts"));
}

TEST(DescribeMap, PairsByTheUsersRails) {
    auto settings = settings_for("switch-pairs");
    settings.nic_rails = "mlx5_0=7,mlx5_1=4,mlx5_3=7";
    const auto job = view_job(settings, 16, 2);
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_THAT(describe_map(job.value()), AllOf(HasSubstr("mlx5_0:1 -> mlx5_3:1  another host, rail 7 on both ends"),
                                                 HasSubstr("mlx5_0:1 -> mlx5_4:1  another host, rails 7 and 4, no")));
    EXPECT_THAT(draw(job.value()), HasSubstr(">rail 7<"));
    settings.nic_rails = "mlx5_0=7,mlx5_9=4";
    EXPECT_THAT(view_job(settings, 16, 2).status().message(),
                HasSubstr("NPUSHMEM_NIC_RAILS entry 2 \"mlx5_9=4\": no NIC has the name"));
}

TEST(DescribeMap, PairsRailsAndGroupsPeers) {
    const auto text = describe_map(view("switch-pairs", 16, 2));
    EXPECT_THAT(text, AllOf(HasSubstr("Transport map of PE 0 (16 PEs, 2 hosts)"), HasSubstr("1-7  p2p"),
                            HasSubstr("mlx5_0:1 -> mlx5_0:1  another host, rail 0 on both ends"),
                            HasSubstr("mlx5_0:1 -> mlx5_3:1  another host, rails 0 and 3, no rail in common"),
                            HasSubstr("choose one with NPUSHMEM_REMOTE_TRANSPORT")));
}

TEST(DescribeMap, ReportsMissingTransportsAndNics) {
    auto settings = settings_for("no-nic");
    settings.disable_p2p = true;
    settings.remote_transport = "verbs";
    const auto text = describe_map(view_job(settings, 4, 2).value());
    EXPECT_THAT(text, AllOf(HasSubstr("does not name p2p"), HasSubstr("verbs"), HasSubstr("and no NIC")));
    EXPECT_THAT(text, Not(HasSubstr("NPUSHMEM_REMOTE_TRANSPORT")));
}

TEST(DescribeMap, ListsTheTransportsThatAutoTries) {
    auto settings = settings_for("switch-pairs");
    settings.remote_transport = "Auto";
    settings.remote_order = "fast,slow";
    const auto text = describe_map(view_job(settings, 4, 2).value());
    EXPECT_THAT(text, AllOf(HasSubstr("auto: fast,slow"), Not(HasSubstr("NPUSHMEM_REMOTE_TRANSPORT"))));
}

TEST(DeviceTrees, OmitLevelsThatSeparateNoDevices) {
    const auto trees = device_trees(view("switch-pairs", 8, 1));
    ASSERT_THAT(trees, SizeIs(2));
    EXPECT_THAT(trees[0].label, HasSubstr("NUMA node 0"));
    EXPECT_THAT(trees[0].npus, IsEmpty());
    ASSERT_THAT(trees[0].groups, SizeIs(2));
    EXPECT_EQ(trees[0].groups[0].label, "PCIe switch 01:00.0");
    EXPECT_THAT(trees[0].groups[0].npus, SizeIs(2));
    EXPECT_THAT(trees[0].groups[0].nics, SizeIs(2));
}

TEST(DeviceTrees, KeepASwitchBelowASwitchApart) {
    const auto trees = device_trees(view("cascaded-switches", 2, 1));
    ASSERT_THAT(trees, SizeIs(1));
    ASSERT_THAT(trees[0].groups, SizeIs(1));
    ASSERT_THAT(trees[0].groups[0].groups, SizeIs(2));
    EXPECT_EQ(trees[0].groups[0].groups[0].label, "device 03:00.0");  // a NIC with two ports
    EXPECT_EQ(trees[0].groups[0].groups[1].label, "PCIe switch 05:00.0");
}

TEST(Draw, ShowsEveryPeNicAndRail) {
    const auto picture = draw(view("switch-pairs", 16, 2));
    for (int i = 0; i < 8; ++i) {
        EXPECT_THAT(picture, HasSubstr(">PE " + std::to_string(i) + "<"));
        EXPECT_THAT(picture, HasSubstr(">mlx5_" + std::to_string(i) + ":1<"));
        EXPECT_THAT(picture, HasSubstr(">rail " + std::to_string(i) + "<"));
    }
    EXPECT_THAT(picture, HasSubstr("host 1, PEs 8 to 15"));
}

// Machines with every kind of shape and line.
struct PictureCase {
    const char* machine;
    int pes;
    int nodes;
};
constexpr PictureCase pictures[] = {
    {"no-nic", 1, 1},        {"one-nic", 64, 1},       {"network-only", 3, 1},       {"npus-by-file", 3, 1},
    {"dgx-a100", 64, 1},     {"sixteen-ports", 32, 2}, {"switch-pairs", 16, 2},      {"dgx-h100-port-failed", 6, 1},
    {"atlas-800-a2", 16, 2}, {"mixed-speeds", 4, 3},   {"nics-on-one-socket", 3, 1}, {"cascaded-switches", 2, 1},
    {"dgx-h100", 4096, 16},  {"hgx-4-nics", 3, 2}};

TEST(Draw, EveryPictureIsInsideItsPageAndItsTextsAreSeparate) {
    for (const auto& [machine, pes, nodes] : pictures) {
        SCOPED_TRACE(machine);
        const auto picture = fakes::read_svg(draw(view(machine, pes, nodes)));
        fakes::expect_inside_the_view_box(picture);
        fakes::expect_separate_texts(picture);
    }
    EXPECT_THAT(draw(view("dgx-h100-port-failed", 8, 1)), HasSubstr(">down<"));
}

// Shapes with a tip are of the picture, shapes without one are of the legend.
TEST(Draw, EveryColourAndLineOccursInTheLegend) {
    for (const auto& [machine, pes, nodes] : pictures) {
        SCOPED_TRACE(machine);
        const auto picture = fakes::read_svg(draw(view(machine, pes, nodes)));
        std::set<std::string> used;
        std::set<std::string> explained;
        for (const auto& shape : picture.all("rect"))
            (shape.tip.empty() ? explained : used).insert(shape.attribute("fill") + " " + shape.attribute("stroke"));
        for (const char* kind : {"path", "polyline"})
            for (const auto& line : picture.all(kind))
                (line.tip.empty() ? explained : used)
                    .insert(line.attribute("stroke") + " " + line.attribute("stroke-width") + " " +
                            line.attribute("stroke-dasharray"));
        EXPECT_EQ(explained, used);
        EXPECT_THAT(used, SizeIs(Ge(2)));
    }
}

TEST(Draw, TwoHostsOfSixteenPortsFitAPageUnreduced) {
    const auto document = draw(view("sixteen-ports", 32, 2));
    const auto picture = fakes::read_svg(document);
    EXPECT_LE(picture.width, svg::a4_landscape.width);
    EXPECT_LE(picture.height, svg::a4_landscape.height);
    EXPECT_THAT(document, HasSubstr("width=\"" + std::to_string(static_cast<int>(picture.width)) + "\""));
    for (const auto& text : picture.all("text")) EXPECT_GE(text.number("font-size"), 9) << text.text;
    for (int i = 0; i < 16; ++i) {
        EXPECT_THAT(picture.texts(), Contains("mlx5_" + std::to_string(i) + ":1").Times(2));
        EXPECT_THAT(picture.texts(), Contains("PE " + std::to_string(i)));
        EXPECT_THAT(picture.texts(), Contains("PE " + std::to_string(16 + i)));
        EXPECT_THAT(picture.texts(), Contains("rail " + std::to_string(i)));
    }
}

TEST(FitText, PrefersLongAndLarge) {
    const TextStyle style{.size = 13, .bold = true};
    const std::vector<std::string> variants{"PE 0-3,8-11", "8 PEs"};
    EXPECT_EQ(fit_text(variants, 200, style).text, "PE 0-3,8-11");
    EXPECT_EQ(fit_text(variants, 200, style).style.size, 13);
    const auto smaller = fit_text(variants, svg::text_width("PE 0-3,8-11", {.size = 10, .bold = true}), style);
    EXPECT_EQ(smaller.text, "PE 0-3,8-11");
    EXPECT_EQ(smaller.style.size, 10);
    EXPECT_EQ(fit_text(variants, 45, style).text, "8 PEs");
    EXPECT_EQ(fit_text(variants, 1, style).text, "8 PEs");
    EXPECT_THAT(label_variants("PCIe switch 01:00.0"), ElementsAre("PCIe switch 01:00.0", "01:00.0"));
    EXPECT_THAT(label_variants("NUMA node 0, cpus 0-3"), ElementsAre("NUMA node 0, cpus 0-3", "NUMA node 0"));
    EXPECT_THAT(label_variants("NUMA node unknown"), ElementsAre("NUMA node unknown"));
}

}  // namespace
}  // namespace npushmem::info
