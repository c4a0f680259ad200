// EXPECT_THAT(status, Succeeded()): tells the message of a failure.
#pragma once

#include <gmock/gmock.h>

namespace npushmem::uid {

MATCHER(Succeeded, "") {
    *result_listener << arg.message();
    return arg.ok();
}

}  // namespace npushmem::uid
