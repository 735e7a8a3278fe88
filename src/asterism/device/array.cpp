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
  return a;
}

void Array::intend(Access access, std::vector<Intent>& intents) const {
  if (buffer_) intents.push_back({buffer_.get(), access, bytes_ == buffer_->bytes()});
}

}  // namespace asterism::device
