// The types and numbers that comm/gpu/nccl.cpp passes are those of NCCL's header: compiled by `make cuda-check` where that is found.
#include <nccl.h>

#include <cstddef>
#include <type_traits>

static_assert(ncclSuccess == 0 && ncclInt8 == 0 && sizeof(ncclDataType_t) == sizeof(int) && sizeof(ncclResult_t) == sizeof(int));
static_assert(sizeof(ncclUniqueId) == 128 && alignof(ncclUniqueId) == 1 && sizeof(ncclComm_t) == sizeof(void*));
static_assert(std::is_same_v<decltype(&ncclGetUniqueId), ncclResult_t (*)(ncclUniqueId*)>);
static_assert(std::is_same_v<decltype(&ncclCommInitRank), ncclResult_t (*)(ncclComm_t*, int, ncclUniqueId, int)>);
static_assert(
    std::is_same_v<decltype(&ncclAllGather), ncclResult_t (*)(void const*, void*, std::size_t, ncclDataType_t, ncclComm_t, cudaStream_t)>);
static_assert(
    std::is_same_v<decltype(&ncclSend), ncclResult_t (*)(void const*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>);
static_assert(std::is_same_v<decltype(&ncclRecv), ncclResult_t (*)(void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>);
static_assert(std::is_same_v<decltype(&ncclGroupStart), ncclResult_t (*)()> && std::is_same_v<decltype(&ncclGroupEnd), ncclResult_t (*)()>);
static_assert(std::is_same_v<decltype(&ncclGetErrorString), char const* (*)(ncclResult_t)>);
