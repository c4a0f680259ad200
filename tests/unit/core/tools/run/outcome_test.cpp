#include "core/tools/run/outcome.hpp"

#include <gtest/gtest.h>

namespace npushmem::run {
namespace {

TEST(Outcome, ArrivesAsItWasSent) {
    for (const Outcome& outcome :
         {Outcome{137, {}}, Outcome{-1, {}}, Outcome{0, {}}, Outcome{6, "PE 2 (pid 7, host b) exited with status 6"}})
        EXPECT_EQ(parse_outcome(text_of(outcome)), outcome);
}

TEST(Outcome, OtherTextIsNone) {
    for (const char* text : {"", " ", "x", " 3", "3x PE 2", "99999999999"}) EXPECT_FALSE(parse_outcome(text)) << text;
}

}  // namespace
}  // namespace npushmem::run
