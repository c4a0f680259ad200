// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/model.hpp"

#include <gmock/gmock.h>

#include <sstream>

namespace npushmem::simulate {
namespace {

using ::testing::HasSubstr;

Status read(const std::string& text, Model& model) {
    std::istringstream in(text);
    return read_model(in, "cluster.txt", model);
}

TEST(Model, IsReadAsItWasWritten) {
    const Model model{.node = {1, 2, 3, 0.5},
                      .network = {4.5, 6, 7, 0.25},
                      .tcp = {10, 11, 12, 0.125},
                      .turn = 8,
                      .cores_per_node = 9};
    Model again;
    EXPECT_TRUE(read(describe(model), again).ok());
    EXPECT_EQ(again, model);
}

TEST(Model, KeepsParametersThatTheFileOmits) {
    Model model = default_model();
    EXPECT_TRUE(read("\n# a comment\n  network.latency 2000 # ns\n", model).ok());
    Model expected = default_model();
    expected.network.latency = 2000;
    EXPECT_EQ(model, expected);
}

TEST(Model, ReportsMistakesWithLineAndColumn) {
    Model model;
    EXPECT_THAT(read("turn 1\nnode.latency ten\n", model).message(), HasSubstr("cluster.txt:2:14: 'ten' is no number"));
    EXPECT_THAT(read("node.latency\n", model).message(), HasSubstr("cluster.txt:1:13: '' is no number"));
    EXPECT_THAT(read("turn -1\n", model).message(), HasSubstr("'-1' is no number from 0"));
    EXPECT_THAT(read("turn nan\n", model).message(), HasSubstr("'nan' is no number from 0"));
    EXPECT_THAT(read("turn 1 2\n", model).message(), HasSubstr("cluster.txt:1:8: '2' follows"));
    EXPECT_THAT(read("  latency 1\n", model).message(), HasSubstr("cluster.txt:1:3: 'latency' is no parameter"));
    EXPECT_THAT(read("cores_per_node 1.5\n", model).message(), HasSubstr("is no number of cores"));
}

TEST(Model, MeasuresTheNodeOfThisMachine) {
    auto measured = measure_model(default_model());
    ASSERT_TRUE(measured.ok()) << measured.status().message();
    EXPECT_GT(measured.value().turn, 0);
    EXPECT_GE(measured.value().node.latency, 0);
    EXPECT_EQ(measured.value().network, default_model().network);
}

}  // namespace
}  // namespace npushmem::simulate
