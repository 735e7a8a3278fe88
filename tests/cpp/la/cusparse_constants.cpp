// The numbers that la/formats/csr/cusparse.cpp passes, and the types of its functions, are those of NVIDIA's header: compiled by `make
// cuda-check` where that is found.
#include <cusparse.h>

#include <cstdint>
#include <type_traits>

static_assert(CUSPARSE_OPERATION_NON_TRANSPOSE == 0 && CUSPARSE_INDEX_32I == 2 && CUSPARSE_INDEX_BASE_ZERO == 0);
static_assert(CUSPARSE_SPMV_CSR_ALG2 == 3 && CUSPARSE_STATUS_SUCCESS == 0);
static_assert(CUDA_R_32F == 0 && CUDA_R_64F == 1 && CUDA_C_32F == 4 && CUDA_C_64F == 5);
static_assert(sizeof(cusparseStatus_t) == sizeof(int) && sizeof(cusparseIndexType_t) == sizeof(int) && sizeof(cudaDataType) == sizeof(int));
static_assert(sizeof(cusparseHandle_t) == sizeof(void*) && sizeof(cusparseSpMatDescr_t) == sizeof(void*));
static_assert(std::is_invocable_v<decltype(&cusparseSpMV), cusparseHandle_t, cusparseOperation_t, void const*, cusparseSpMatDescr_t,
                                  cusparseDnVecDescr_t, void const*, cusparseDnVecDescr_t, cudaDataType, cusparseSpMVAlg_t, void*>);
static_assert(std::is_same_v<decltype(&cusparseSpMV), decltype(&cusparseSpMV_preprocess)>);
static_assert(
    std::is_invocable_v<decltype(&cusparseSpMV_bufferSize), cusparseHandle_t, cusparseOperation_t, void const*, cusparseSpMatDescr_t,
                        cusparseDnVecDescr_t, void const*, cusparseDnVecDescr_t, cudaDataType, cusparseSpMVAlg_t, std::size_t*>);
static_assert(std::is_invocable_v<decltype(&cusparseCreateCsr), cusparseSpMatDescr_t*, std::int64_t, std::int64_t, std::int64_t, void*,
                                  void*, void*, cusparseIndexType_t, cusparseIndexType_t, cusparseIndexBase_t, cudaDataType>);
static_assert(std::is_invocable_v<decltype(&cusparseCreateDnVec), cusparseDnVecDescr_t*, std::int64_t, void*, cudaDataType>);
static_assert(std::is_invocable_v<decltype(&cusparseSetStream), cusparseHandle_t, cudaStream_t>);
static_assert(CUSPARSE_OPERATION_TRANSPOSE == 1 && CUSPARSE_SPMAT_FILL_MODE == 0 && CUSPARSE_SPMAT_DIAG_TYPE == 1);
static_assert(CUSPARSE_FILL_MODE_LOWER == 0 && CUSPARSE_DIAG_TYPE_UNIT == 1 && CUSPARSE_SPSV_ALG_DEFAULT == 0);
static_assert(sizeof(cusparseFillMode_t) == sizeof(int) && sizeof(cusparseDiagType_t) == sizeof(int));
static_assert(
    std::is_invocable_v<decltype(&cusparseSpMatSetAttribute), cusparseSpMatDescr_t, cusparseSpMatAttribute_t, void*, std::size_t>);
static_assert(std::is_invocable_v<decltype(&cusparseSpSV_createDescr), cusparseSpSVDescr_t*>);
static_assert(
    std::is_invocable_v<decltype(&cusparseSpSV_bufferSize), cusparseHandle_t, cusparseOperation_t, void const*, cusparseSpMatDescr_t,
                        cusparseDnVecDescr_t, cusparseDnVecDescr_t, cudaDataType, cusparseSpSVAlg_t, cusparseSpSVDescr_t, std::size_t*>);
static_assert(
    std::is_invocable_v<decltype(&cusparseSpSV_analysis), cusparseHandle_t, cusparseOperation_t, void const*, cusparseSpMatDescr_t,
                        cusparseDnVecDescr_t, cusparseDnVecDescr_t, cudaDataType, cusparseSpSVAlg_t, cusparseSpSVDescr_t, void*>);
static_assert(std::is_invocable_v<decltype(&cusparseSpSV_solve), cusparseHandle_t, cusparseOperation_t, void const*, cusparseSpMatDescr_t,
                                  cusparseDnVecDescr_t, cusparseDnVecDescr_t, cudaDataType, cusparseSpSVAlg_t, cusparseSpSVDescr_t>);
