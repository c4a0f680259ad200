// A group of collective operations whose members are threads of one process.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <vector>

#include "core/coll/group.hpp"

namespace npushmem::fakes {

// Members of a group as threads of this process; their memory is found by all, or only through put and get.
struct ThreadGroupWorld {
    static constexpr std::uint64_t room = 1U << 20;

    ThreadGroupWorld(int size, bool found) : members(size), mapped(found), meeting(size) {
        for (int i = 0; i < size; ++i) memory.emplace_back(room + coll::Workspace::bytes);
    }
    int members;
    bool mapped;
    std::vector<std::vector<std::byte>> memory;
    std::barrier<> meeting;
};

class ThreadGroup final : public coll::Group {
public:
    ThreadGroup(ThreadGroupWorld& world, int index) : world_(world), index_(index) {}

    [[nodiscard]] int size() const override { return world_.members; }
    [[nodiscard]] int index() const override { return index_; }
    Status sync() override {
        EXPECT_EQ(outstanding_, 0) << "a put was not completed before the meeting";
        world_.meeting.arrive_and_wait();
        return {};
    }
    Status complete() override {
        outstanding_ = 0;
        return {};
    }
    [[nodiscard]] std::byte* find(int member, std::uint64_t offset) const override {
        return world_.mapped || member == index_ ? at(member, offset) : nullptr;
    }
    [[nodiscard]] bool all_found() const override { return world_.mapped; }
    Status put(int member, std::uint64_t offset, const void* source, std::uint64_t bytes) override {
        ++outstanding_;
        std::memcpy(at(member, offset), source, bytes);
        return {};
    }
    Status get(int member, std::uint64_t offset, void* dest, std::uint64_t bytes) override {
        std::memcpy(dest, at(member, offset), bytes);
        return {};
    }
    [[nodiscard]] std::uint64_t workspace() const override { return ThreadGroupWorld::room; }
    unsigned next_half() override { return uses_++ % 2; }

private:
    [[nodiscard]] std::byte* at(int member, std::uint64_t offset) const {
        return world_.memory[static_cast<std::size_t>(member)].data() + offset;
    }

    ThreadGroupWorld& world_;
    int index_;
    int outstanding_ = 0;
    unsigned uses_ = 0;
};

}  // namespace npushmem::fakes
