#include "asterism/la/formats/csr/cusparse_library.hpp"

#include "asterism/base/error.hpp"
#include "asterism/device/gpu/gpu.hpp"

namespace asterism::la {

Cusparse::Cusparse() {
  if (device::gpu::name() != "cuda") {
    why_not = format("it is not for {}", device::gpu::name());
    return;
  }
  why_not = library.why_not();
  if (!library) return;
  try {
    library.find(create, "cusparseCreate");
    library.find(set_stream, "cusparseSetStream");
    library.find(create_csr, "cusparseCreateCsr");
    library.find(destroy_matrix, "cusparseDestroySpMat");
    library.find(set_attribute, "cusparseSpMatSetAttribute", false);
    library.find(create_vector, "cusparseCreateDnVec");
    library.find(destroy_vector, "cusparseDestroyDnVec");
    library.find(buffer_size, "cusparseSpMV_bufferSize");
    library.find(preprocess, "cusparseSpMV_preprocess", false);  // from 12.4 on
    library.find(multiply, "cusparseSpMV");
    // from 11.3 on
    library.find(create_solve, "cusparseSpSV_createDescr", false);
    library.find(destroy_solve, "cusparseSpSV_destroyDescr", false);
    library.find(solve_buffer_size, "cusparseSpSV_bufferSize", false);
    library.find(analyse, "cusparseSpSV_analysis", false);
    library.find(solve, "cusparseSpSV_solve", false);
    library.find(error_text, "cusparseGetErrorString");
    device::gpu::OnDevice const here;
    check(create(&handle), "cusparseCreate");
    why_not.clear();
  } catch (Error const& e) {
    handle = nullptr;
    why_not = e.what();
  }
}

void Cusparse::check(Status status, char const* call) const {
  ASTERISM_REQUIRE(status == 0, unsupported, "cuSPARSE failed in {}: {} (status {}).", call, error_text ? error_text(status) : "?", status);
}

Cusparse& cusparse() {
  static auto* const c = new Cusparse;  // queues may end after static destruction began
  return *c;
}

}  // namespace asterism::la
