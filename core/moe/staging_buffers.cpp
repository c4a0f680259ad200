#include "core/moe/staging_buffers.hpp"

#include <utility>

namespace npushmem::moe {

using npu::Pipe;

void StagingBuffers::wait_until_free(int buffer) {
    if (std::exchange(busy_[buffer], false)) core_.wait_flag<Pipe::copy_out, Pipe::copy_in>(buffer);
}

void StagingBuffers::filled() {
    core_.set_flag<Pipe::copy_in, Pipe::copy_out>(current_);
    core_.wait_flag<Pipe::copy_in, Pipe::copy_out>(current_);
}

void StagingBuffers::next() {
    core_.set_flag<Pipe::copy_out, Pipe::copy_in>(current_);
    busy_[current_] = true;
    current_ ^= 1;
}

void StagingBuffers::finish() {
    for (const int buffer : {0, 1}) wait_until_free(buffer);
    core_.set_flag<Pipe::copy_out, Pipe::scalar>(end_flag);
    core_.wait_flag<Pipe::copy_out, Pipe::scalar>(end_flag);
}

}  // namespace npushmem::moe
