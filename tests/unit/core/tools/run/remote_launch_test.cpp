// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/remote_launch.hpp"

#include <gmock/gmock.h>

#include <random>

namespace npushmem::run {

namespace {

using ::testing::HasSubstr;

LaunchRequest sample() {
    LaunchRequest request;
    request.folder = "/some where";
    request.record_mark = "\x1emark";
    request.pes = {{2, 3}, 4};
    request.npes = 12;
    request.bind = Bind::numa;
    request.tag_output = true;
    request.environment = {"A=1", "B=two\nlines; $(quoted) 'text'", "EMPTY="};
    request.command = {"./app", "", "--x=y z"};
    return request;
}

std::string body_of(const std::string& wire) { return wire.substr(wire.find('\n') + 1); }

TEST(LaunchRequest, DecodeReturnsTheEncodedRequest) {
    const std::string wire = sample().encode();
    EXPECT_EQ(LaunchRequest::body_bytes(wire.substr(0, wire.find('\n'))).value(), body_of(wire).size());
    const auto back = LaunchRequest::decode(body_of(wire));
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back.value().folder, "/some where");
    EXPECT_EQ(back.value().record_mark, "\x1emark");
    EXPECT_EQ(back.value().pes.numbering.of(2), 8);
    EXPECT_EQ(back.value().pes.count, 4);
    EXPECT_EQ(back.value().npes, 12);
    EXPECT_EQ(back.value().bind, Bind::numa);
    EXPECT_TRUE(back.value().tag_output);
    EXPECT_FALSE(back.value().verbose);
    EXPECT_EQ(back.value().environment, sample().environment);
    EXPECT_EQ(back.value().command, sample().command);
}

TEST(LaunchRequest, RejectsMalformedAndTruncatedText) {
    EXPECT_THAT(LaunchRequest::body_bytes("Welcome to host b!").status().message(), HasSubstr("Welcome to host b!"));
    EXPECT_FALSE(LaunchRequest::body_bytes("npushmem-launch 3 -3").ok());
    EXPECT_FALSE(LaunchRequest::body_bytes("npushmem-launch 2 30").ok());
    EXPECT_FALSE(LaunchRequest::body_bytes("npushmem-launch 3 99999999999").ok());
    const std::string body = body_of(sample().encode());
    // Only a body that is truncated inside its command may decode: the command has no length.
    std::size_t decoded = 0;
    for (std::size_t bytes = 0; bytes < body.size(); ++bytes)
        decoded += LaunchRequest::decode(body.substr(0, bytes)).ok();
    EXPECT_LT(decoded, std::string("./app--x=y z").size() + 4) << "decode accepted a body truncated before the command";
    // A body with a damaged byte may decode or fail, but must not crash.
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
        std::string damaged = body;
        damaged[random() % damaged.size()] = static_cast<char>(random());
        (void)LaunchRequest::decode(damaged).ok();
    }
}

}  // namespace

}  // namespace npushmem::run
