#include "asterism/device/array.hpp"

#include "asterism/base/error.hpp"

namespace asterism::device {

Array Array::wrap(void* data, std::size_t bytes, std::shared_ptr<void> owner) {
  Array a;
  a.buffer_ = std::make_shared<Buffer>(data, bytes, std::move(owner));
  a.bytes_ = bytes;
  return a;
}

Array Array::wrap_gpu(void* data, std::size_t bytes, std::shared_ptr<void> owner) {
  Array a;
  a.buffer_ = Buffer::on_gpu(data, bytes, std::move(owner));
  a.bytes_ = bytes;
  return a;
}

Array Array::unified(std::size_t bytes) {
  Array a;
  a.buffer_ = Buffer::unified(bytes);
  a.bytes_ = bytes;
  return a;
}

Array Array::view(std::size_t offset, std::size_t bytes) const {
  ASTERISM_ASSERT(offset + bytes <= bytes_);
  Array a = *this;
  a.offset_ += offset;
  a.bytes_ = bytes;
  if (!buffer_) return a;
  for (auto const& part : buffer_->parts())
    if (bytes > 0 && part->offset() <= a.offset_ && a.offset_ + bytes <= part->offset() + part->bytes()) {
      a.offset_ -= part->offset();
      a.buffer_ = std::shared_ptr<Buffer>(buffer_, part.get());  // keeps the whole
      break;
    }
  return a;
}

void Array::divide(std::vector<std::size_t> const& bytes) const {
  ASTERISM_ASSERT(buffer_ && offset_ == 0 && bytes_ == buffer_->bytes());
  buffer_->divide(bytes);
}

void Array::intend(Access access, std::vector<Intent>& intents) const {
  each_buffer([&](Buffer& b, bool whole) { intents.push_back({&b, access, whole}); });
}

}  // namespace asterism::device
