// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/address_mappings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/base/host_facts.hpp"

namespace npushmem {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* maps_text =
    "00400000-00401000 r-xp 00000000 08:01 77                         /usr/bin/program\n"
    "00500000-00502000 rw-p 00000000 00:00 0 \n"
    "00502000-00503000 r--p 00000000 00:00 0                          [heap]\n"
    "garbage\n"
    "00600000-00640000 rw-s 00003000 00:1a 1027                       /memfd:a name (deleted)";

TEST(MappingsIn, ReturnsTheOverlappingMappingsInOrder) {
    const auto all = mappings_in(maps_text, 0, 0x1000000);
    ASSERT_THAT(all, SizeIs(4));
    EXPECT_FALSE(all[0].writable);
    EXPECT_TRUE(all[1].writable && !all[1].shared);
    EXPECT_EQ(all[1].path, "");
    EXPECT_EQ(all[2].path, "[heap]");
    EXPECT_FALSE(all[2].writable);
    EXPECT_TRUE(all[3].writable && all[3].shared);
    EXPECT_EQ(all[3].begin, 0x600000U);
    EXPECT_EQ(all[3].end, 0x640000U);
    EXPECT_EQ(all[3].offset, 0x3000U);
    EXPECT_EQ(all[3].device, makedev(0, 0x1a));
    EXPECT_EQ(all[3].inode, 1027U);
    EXPECT_EQ(all[3].path, "/memfd:a name (deleted)");
    EXPECT_THAT(mappings_in(maps_text, 0x501fff, 0x502000), SizeIs(1));
    EXPECT_THAT(mappings_in(maps_text, 0x501fff, 0x502001), SizeIs(2));
    EXPECT_THAT(mappings_in(maps_text, 0x401000, 0x500000), IsEmpty());
    EXPECT_THAT(mappings_in("", 0, 0x1000000), IsEmpty());
}

// Pages of this process, with a hole where a test makes one.
class MappedPages : public ::testing::Test {
protected:
    ~MappedPages() override { munmap(base, 8 * page); }
    [[nodiscard]] std::byte* at(std::uint64_t number) const { return base + number * page; }
    void map_file(std::uint64_t first, std::uint64_t pages, int file, std::uint64_t offset, int rights) {
        ASSERT_NE(mmap(at(first), pages * page, rights, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset)),
                  MAP_FAILED);
    }
    [[nodiscard]] std::string failure(std::uint64_t first, std::uint64_t pages) const {
        const auto found = uniform_mapping(at(first), pages * page);
        return found.ok() ? "" : found.status().message();
    }

    const std::uint64_t page = page_bytes();
    std::byte* const base =
        static_cast<std::byte*>(mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const FileDescriptor file{memfd_create("pages", MFD_CLOEXEC)};
    const int sized = ftruncate(file.get(), static_cast<off_t>(8 * page));
    static constexpr int both = PROT_READ | PROT_WRITE;
};

TEST_F(MappedPages, PrivateMemoryOfSeveralMappingsIsUniform) {
    mprotect(at(2), page, PROT_READ | PROT_WRITE | PROT_EXEC);
    const auto found = uniform_mapping(at(1) + 8, 3 * page);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_FALSE(found.value().shared);
    EXPECT_EQ(found.value().begin, reinterpret_cast<std::uintptr_t>(at(1) + 8));
    EXPECT_EQ(found.value().end, found.value().begin + 3 * page);
}

TEST_F(MappedPages, ConsecutivePagesOfAFileAreUniform) {
    map_file(1, 2, file.get(), page, both);
    map_file(3, 2, file.get(), 3 * page, both);
    const auto found = uniform_mapping(at(2), 2 * page);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_TRUE(found.value().shared);
    EXPECT_EQ(found.value().offset, 2 * page);
}

TEST_F(MappedPages, WhatDiffersIsReportedWithItsAddress) {
    map_file(1, 1, file.get(), 0, both);
    map_file(2, 1, file.get(), 4 * page, both);
    map_file(4, 1, file.get(), 0, PROT_READ);
    munmap(at(6), page);
    EXPECT_THAT(failure(0, 2), HasSubstr("is of another kind or file"));
    EXPECT_THAT(failure(1, 2), HasSubstr("is of another kind or file"));
    EXPECT_THAT(failure(3, 2), HasSubstr("cannot be read and written"));
    EXPECT_THAT(failure(5, 2), HasSubstr("is not mapped"));
    EXPECT_THAT(failure(6, 1), HasSubstr("is not mapped"));
    const auto hole = uniform_mapping(at(5), 3 * page);
    EXPECT_THAT(hole.status().message(), HasSubstr(fmt::format("{:#x}", reinterpret_cast<std::uintptr_t>(at(6)))));
    EXPECT_EQ(hole.status().code(), Code::argument);
}

TEST_F(MappedPages, AFileIsOpenedThroughAnyDescriptor) {
    map_file(1, 2, file.get(), page, both);
    // Another file, and one that is open for reading only, are no obstacles.
    const FileDescriptor other(memfd_create("pages", MFD_CLOEXEC));
    const FileDescriptor reader(open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY | O_CLOEXEC));
    const auto opened = open_mapped_file(uniform_mapping(at(1), page).value());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    *at(2) = std::byte{9};
    std::byte seen{};
    EXPECT_EQ(pread(opened.value().get(), &seen, 1, static_cast<off_t>(2 * page)), 1);
    EXPECT_EQ(seen, std::byte{9});
    EXPECT_EQ(pwrite(opened.value().get(), &seen, 1, 0), 1) << "open for writing";
}

TEST_F(MappedPages, AFileIsOpenedByItsName) {
    std::string path = std::filesystem::temp_directory_path().string() + "/mappings-XXXXXX";
    FileDescriptor named(mkstemp(path.data()));
    ASSERT_EQ(ftruncate(named.get(), static_cast<off_t>(page)), 0);
    map_file(1, 1, named.get(), 0, both);
    named.reset();
    const auto mapping = uniform_mapping(at(1), page).value();
    EXPECT_TRUE(open_mapped_file(mapping).ok());
    // Another file of this name is not taken for it.
    unlink(path.c_str());
    const FileDescriptor another(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(open_mapped_file(mapping).status().code(), Code::argument);
    unlink(path.c_str());
}

TEST_F(MappedPages, AFileWithoutDescriptorAndNameIsRefused) {
    FileDescriptor closed(memfd_create("gone", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(closed.get(), static_cast<off_t>(page)), 0);
    map_file(1, 1, closed.get(), 0, both);
    closed.reset();
    const auto opened = open_mapped_file(uniform_mapping(at(1), page).value());
    EXPECT_EQ(opened.status().code(), Code::argument);
    EXPECT_THAT(opened.status().message(), HasSubstr("'/memfd:gone (deleted)'"));
    EXPECT_THAT(opened.status().message(), HasSubstr("keep a descriptor of the file open"));
}

}  // namespace
}  // namespace npushmem
