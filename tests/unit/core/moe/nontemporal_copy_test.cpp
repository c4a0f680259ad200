#include "core/moe/nontemporal_copy.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace npushmem::moe {
namespace {

TEST(NontemporalCopy, EveryLengthAndAlignmentCopiesExactlyThoseBytes) {
    std::vector<std::byte> source(600);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
    for (std::size_t offset = 0; offset < 70; offset += 3) {
        for (std::size_t bytes = 0; bytes < 400; ++bytes) {
            std::vector<std::byte> target(600, std::byte{0xEE});
            copy_nontemporal(target.data() + offset, source.data() + offset / 2, bytes);
            nontemporal_fence();
            for (std::size_t i = 0; i < target.size(); ++i) {
                const bool inside = i >= offset && i < offset + bytes;
                ASSERT_EQ(target[i], inside ? source[offset / 2 + i - offset] : std::byte{0xEE})
                    << offset << ' ' << bytes;
            }
        }
    }
}

}  // namespace
}  // namespace npushmem::moe
