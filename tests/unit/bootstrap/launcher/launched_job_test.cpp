// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/launcher/launched_job.hpp"

#include <gmock/gmock.h>

#include <random>

namespace npushmem::launcher {

namespace {

using rendezvous::UniqueId;
using ::testing::HasSubstr;

bool plain(const std::string& note) {
    return note.size() <= start_message_characters && note.find_first_not_of("0123456789abcdefi") == std::string::npos;
}

TEST(StartMessage, CarriesAnId) {
    const auto id = UniqueId::make(Address::parse("127.0.0.1", 4000).value());
    ASSERT_TRUE(id.ok());
    const std::string note = encode_start_message(id);
    EXPECT_TRUE(plain(note)) << note;
    const auto back = decode_start_message(note);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back.value().encode(), id.value().encode());
}

TEST(StartMessage, CarriesTheReasonIfThereIsNoId) {
    const std::string note = encode_start_message(Status{Code::config, "no interface 'eth9'; there are: lo"});
    EXPECT_TRUE(plain(note)) << note;
    EXPECT_EQ(decode_start_message(note).status().code(), Code::aborted);
    EXPECT_THAT(decode_start_message(note).status().message(),
                HasSubstr("rank 0 cannot serve the start of the job: no interface "
                          "'eth9'; there are: lo"));
    EXPECT_LE(encode_start_message(Status{Code::config, std::string(5000, 'x')}).size(), start_message_characters);
}

TEST(StartMessage, RejectsMalformedText) {
    EXPECT_EQ(decode_start_message("").status().code(), Code::protocol);
    EXPECT_EQ(decode_start_message("hello").status().code(), Code::protocol);
    EXPECT_FALSE(decode_start_message("i00").ok());
    std::mt19937 random(5);
    for (int round = 0; round < 1000; ++round) {
        std::string note(random() % 300, 'i');
        for (char& c : note) c = static_cast<char>(random());
        EXPECT_FALSE(decode_start_message(note).ok());
    }
}

}  // namespace

}  // namespace npushmem::launcher
