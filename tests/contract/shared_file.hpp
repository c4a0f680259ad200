// Memory of the PEs under test: a mapped piece of an unnamed file, as the runtime's symmetric heap is.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "npushmem/plugin/transport.h"

namespace npushmem::contract {

// Owns the descriptor; shared by the mappings of one file.
class SharedFile {
public:
    explicit SharedFile(std::uint64_t bytes)
        : descriptor_(::memfd_create("npushmem-contract", MFD_CLOEXEC)), bytes_(bytes) {
        if (descriptor_ < 0 || ::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
            throw std::runtime_error("cannot make shared memory for the contract tests");
    }
    // Another process's file of this size, whose descriptor was inherited.
    SharedFile(int descriptor, std::uint64_t bytes) : descriptor_(descriptor), bytes_(bytes) {}
    SharedFile(const SharedFile&) = delete;
    SharedFile& operator=(const SharedFile&) = delete;
    ~SharedFile() { ::close(descriptor_); }

    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    int descriptor_;
    std::uint64_t bytes_;
};

// The whole file mapped once, and the slice of it that belongs to one PE.
class Slice {
public:
    Slice(std::shared_ptr<const SharedFile> file, std::uint64_t offset, std::uint64_t bytes)
        : file_(std::move(file)),
          mapping_(::mmap(nullptr, file_->bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file_->descriptor(), 0)),
          offset_(offset),
          bytes_(bytes) {
        if (mapping_ == MAP_FAILED) throw std::runtime_error("cannot map shared memory for the contract tests");
    }
    Slice(const Slice&) = delete;
    Slice& operator=(const Slice&) = delete;
    ~Slice() { ::munmap(mapping_, file_->bytes()); }

    [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(mapping_) + offset_, bytes_}; }
    [[nodiscard]] npushmem_memory describe() const {
        npushmem_memory out{};
        out.struct_size = sizeof out;
        out.fd = file_->descriptor();
        out.fd_offset = offset_;
        out.base = bytes().data();
        out.bytes = bytes_;
        out.mapping = mapping_;
        out.mapping_bytes = file_->bytes();
        return out;
    }

private:
    std::shared_ptr<const SharedFile> file_;
    void* mapping_;
    std::uint64_t offset_;
    std::uint64_t bytes_;
};

}  // namespace npushmem::contract
