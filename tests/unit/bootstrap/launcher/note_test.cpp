#include "bootstrap/launcher/note.hpp"

#include <gmock/gmock.h>

#include <random>

#include "bootstrap/launcher/launcher.hpp"

namespace npushmem::launcher {
namespace {

using rendezvous::UniqueId;
using ::testing::HasSubstr;

bool plain(const std::string& note) {
    return note.size() <= note_characters && note.find_first_not_of("0123456789abcdefi") == std::string::npos;
}

TEST(Note, CarriesAnId) {
    const auto id = UniqueId::make(rendezvous::Address::parse("127.0.0.1", 4000).value());
    ASSERT_TRUE(id.ok());
    const std::string note = encode_note(id);
    EXPECT_TRUE(plain(note)) << note;
    const auto back = decode_note(note);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back.value().encode(), id.value().encode());
}

TEST(Note, CarriesTheReasonThatThereIsNone) {
    const std::string note = encode_note(Status{Code::config, "no interface 'eth9'; there are: lo"});
    EXPECT_TRUE(plain(note)) << note;
    EXPECT_EQ(decode_note(note).status().code(), Code::aborted);
    EXPECT_THAT(decode_note(note).status().message(),
                HasSubstr("rank 0 cannot serve the start of the job: no interface "
                          "'eth9'; there are: lo"));
    EXPECT_LE(encode_note(Status{Code::config, std::string(5000, 'x')}).size(), note_characters);
}

TEST(Note, WhatIsNoneIsRefused) {
    EXPECT_EQ(decode_note("").status().code(), Code::protocol);
    EXPECT_EQ(decode_note("hello").status().code(), Code::protocol);
    EXPECT_FALSE(decode_note("i00").ok());
    std::mt19937 random(5);
    for (int round = 0; round < 1000; ++round) {
        std::string note(random() % 300, 'i');
        for (char& c : note) c = static_cast<char>(random());
        EXPECT_FALSE(decode_note(note).ok());
    }
}

}  // namespace
}  // namespace npushmem::launcher
