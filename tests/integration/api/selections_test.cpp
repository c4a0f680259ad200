// SPDX-License-Identifier: BSD-3-Clause
// The selections of a job, as values of the C API and as the JSON of NPUSHMEM_INFO=json, against the user's selection.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/integration/api/leftovers.hpp"
#include "tests/integration/api/transport_selections.hpp"
#include "tests/integration/run/job_under_test.hpp"

namespace npushmem::api_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Texts = std::vector<std::string>;

struct JobOutcome {
    int status;
    std::string errors;
};

// Runs the program that checks the routes against the expectations.
JobOutcome run_selections(Texts options, const Texts& environment, const Texts& expectations) {
    run::JobSettings settings;
    settings.with_bootstrap = true;
    settings.environment = {"NPUSHMEM_SYMMETRIC_SIZE=16M",  "NPUSHMEM_TCP_IFNAME=lo",
                            "NPUSHMEM_LIBFABRIC_DOMAIN=lo", "NPUSHMEM_UCX_NET_DEVICES=lo",
                            "NPUSHMEM_TCP_PEER_TIMEOUT=0",  "NPUSHMEM_LIBFABRIC_PEER_TIMEOUT=0",
                            "NPUSHMEM_UCX_PEER_TIMEOUT=0"};
    settings.environment.insert(settings.environment.end(), environment.begin(), environment.end());
    options.push_back(std::string(API_TEST_FOLDER) + "/api_selections");
    options.insert(options.end(), expectations.begin(), expectations.end());
    const Leftovers leftovers;
    run::JobUnderTest job(options, settings);
    const int status = job.end();
    EXPECT_EQ(leftovers.found(), "");
    return {status, job.errors()};
}

// The report is the line that begins with a brace; there is one.
Json report_in(const std::string& errors) {
    std::istringstream lines(errors);
    Texts found;
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("{")) found.push_back(line);
    EXPECT_EQ(found.size(), 1U) << errors;
    return found.empty() ? Json() : Json::parse(found.front());
}

struct Selection {
    const char* transports;  // empty: the default
    Texts expectations;
};

void PrintTo(const Selection& selection, std::ostream* out) { *out << selection.transports; }

const std::vector<Selection>& selections() {
    static const std::vector<Selection> all{
        {"", {"self=self:1", "near=p2p:1"}},
        {"p2p", {"self=p2p:1", "near=p2p:1"}},
        {"p2p,self", {"self=p2p:1", "near=p2p:1"}},
        {"self,nomap(p2p)", {"self=self:1", "near=nomap(p2p):0"}},
        {"hccs", {"self=hccs:1", "near=hccs:1"}},
        {"self,trace(p2p)", {"self=self:1", "near=trace(p2p):0"}},
        {"self,fault(p2p)", {"self=self:1", "near=fault(p2p):0"}},
        {"fault(nomap(p2p))", {"self=fault(nomap(p2p)):0", "near=fault(nomap(p2p)):0"}},
        {"nomap(p2p)", {"self=nomap(p2p):0", "near=nomap(p2p):0"}},
        {"trace(p2p)", {"self=trace(p2p):0", "near=trace(p2p):0"}},
        {"fault(p2p)", {"self=fault(p2p):0", "near=fault(p2p):0"}},
        {"nomap(self),p2p", {"self=nomap(self):0", "near=p2p:1"}},
        {"nomap(hccs)", {"self=nomap(hccs):0", "near=nomap(hccs):0"}},
    };
    return all;
}

Texts environment_of(const std::string& transports) {
    return transports.empty() ? Texts{} : Texts{"NPUSHMEM_TRANSPORTS=" + transports};
}

class Routes : public ::testing::TestWithParam<Selection> {};

TEST_P(Routes, AreThoseOfTheSelection) {
    for (const char* npes : {"1", "3"}) {
        const auto [status, errors] =
            run_selections({"-n", npes}, environment_of(GetParam().transports), GetParam().expectations);
        EXPECT_EQ(status, 0) << npes << " PEs: " << errors;
    }
}

INSTANTIATE_TEST_SUITE_P(Api, Routes, ::testing::ValuesIn(selections()), [](const auto& parameter) {
    const std::string transports = parameter.param.transports;
    return transports.empty() ? "default" : name_of_selection(transports);
});

// A new selection of the list has a row above.
TEST(RoutesOfUnmappedSelf, AreAllExpected) {
    for (const std::string& transports : unmapped_self_selections()) {
        bool listed = false;
        for (const Selection& selection : selections()) listed = listed || selection.transports == transports;
        EXPECT_TRUE(listed) << transports;
    }
}

// A check of a route that is wrong fails: the test above can fail.
TEST(RoutesThatAreNotExpected, FailTheProgram) {
    const auto [status, errors] = run_selections({"-n", "2"}, {}, {"near=nomap(p2p):0"});
    EXPECT_NE(status, 0);
    EXPECT_THAT(errors, HasSubstr("expected nomap(p2p), saw p2p"));
}

TEST(JsonReport, HasTheSelectionsAndTheVariables) {
    const std::string awkward = "a \"quoted\" \\ name,\t\xc3\xa4";
    const auto [status, errors] =
        run_selections({"-n", "3"},
                       {"NPUSHMEM_INFO=json", "NPUSHMEM_TRANSPORTS=self,fault(nomap(p2p))",
                        "NPUSHMEM_BARRIER_ALGO=dissemination_k:3", "NPUSHMEM_DEBUG_SUBSYS=" + awkward},
                       {"self=self:1", "near=fault(nomap(p2p)):0"});
    EXPECT_EQ(status, 0) << errors;
    const Json report = report_in(errors);
    ASSERT_TRUE(report.is_object()) << errors;
    EXPECT_EQ(report.at("job").at("pes"), 3);
    EXPECT_EQ(report.at("job").at("host_names").size(), 1U);
    EXPECT_EQ(report.at("heap").at("bytes"), 16U << 20);
    EXPECT_EQ(report.at("bootstrap").at("name"), "uid");
    EXPECT_EQ(report.at("bootstrap").at("nranks"), 3);
    ASSERT_EQ(report.at("transports").size(), 2U);
    EXPECT_EQ(report.at("transports")[1].at("layers"), Json({"fault", "nomap", "p2p"}));
    EXPECT_EQ(report.at("transports")[1].at("reason"), "listed in NPUSHMEM_TRANSPORTS");
    ASSERT_EQ(report.at("routes").size(), 2U);
    EXPECT_EQ(report.at("routes")[0].at("transport"), "self");
    EXPECT_EQ(report.at("routes")[1].at("transport"), "fault(nomap(p2p))");
    EXPECT_EQ(report.at("routes")[1].at("first_pe"), 1);
    EXPECT_EQ(report.at("routes")[1].at("last_pe"), 2);
    EXPECT_EQ(report.at("routes")[1].at("mapped"), false);
    EXPECT_EQ(report.at("barrier").at("algorithm"), "dissemination_k");
    EXPECT_EQ(report.at("barrier").at("radix"), 3);
    EXPECT_EQ(report.at("barrier").at("reason"), "NPUSHMEM_BARRIER_ALGO");
    Texts seen;
    for (const Json& variable : report.at("variables")) {
        if (variable.at("name") == "NPUSHMEM_DEBUG_SUBSYS") seen.push_back(variable.at("value"));
        if (variable.at("name") == "NPUSHMEM_UNIQUEID") {
            EXPECT_TRUE(variable.at("value").is_null()) << "the id grants access to the job";
        }
    }
    EXPECT_THAT(seen, ElementsAre(awkward));
}

TEST(JsonReport, IsTheOnlyReport) {
    const auto [status, errors] = run_selections({"-n", "1"}, {"NPUSHMEM_INFO=json", "NPUSHMEM_VERSION=1"}, {});
    EXPECT_EQ(status, 0) << errors;
    EXPECT_TRUE(report_in(errors).at("version").is_string());
    EXPECT_THAT(errors, ::testing::Not(HasSubstr("transport map of PE 0")));
}

TEST(JsonReport, OtherValuesAreRefused) {
    const auto [status, errors] = run_selections({"-n", "1"}, {"NPUSHMEM_INFO=xml"}, {});
    EXPECT_NE(status, 0);
    EXPECT_THAT(errors, HasSubstr("NPUSHMEM_INFO='xml': 'xml': expected one of: 0, 1, json; accepted: 0, 1 or json"));
}

class SelectedRemoteTransport : public ::testing::TestWithParam<std::string> {};

TEST_P(SelectedRemoteTransport, IsTheRouteToOtherHosts) {
    for (const char* ibgda : {"0", "1"}) {
        const std::string proxied = *ibgda == '0' ? "1" : "0";
        const auto [status, errors] =
            run_selections({"-n", "4", "--nodes", "2"},
                           {"NPUSHMEM_REMOTE_TRANSPORT=" + GetParam(), "NPUSHMEM_INFO=json",
                            std::string("NPUSHMEM_IB_ENABLE_IBGDA=") + ibgda},
                           {"self=self:1", "near=p2p:1", "far=" + GetParam() + ":" + proxied});
        EXPECT_EQ(status, 0) << errors;
        const Json report = report_in(errors);
        ASSERT_TRUE(report.is_object()) << errors;
        EXPECT_EQ(report.at("job").at("hosts"), 2);
        EXPECT_EQ(report.at("routes").back().at("transport"), GetParam());
        EXPECT_EQ(report.at("routes").back().at("last_pe"), 3);
        EXPECT_EQ(report.at("kernels").at("mode"), proxied == "1" ? "proxy" : "direct");
    }
}

INSTANTIATE_TEST_SUITE_P(Tcp, SelectedRemoteTransport, ::testing::Values("tcp"),
                         [](const auto& parameter) { return parameter.param; });
#ifdef API_TEST_LIBFABRIC
INSTANTIATE_TEST_SUITE_P(Libfabric, SelectedRemoteTransport, ::testing::Values("libfabric"),
                         [](const auto& parameter) { return parameter.param; });
#endif
#ifdef API_TEST_UCX
INSTANTIATE_TEST_SUITE_P(Ucx, SelectedRemoteTransport, ::testing::Values("ucx"),
                         [](const auto& parameter) { return parameter.param; });
#endif

}  // namespace
}  // namespace npushmem::api_test
