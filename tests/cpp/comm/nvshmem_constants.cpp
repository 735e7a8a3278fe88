// The types and numbers that comm/gpu/nvshmem.cpp passes are those of NVSHMEM's headers: compiled by `make cuda-check` where those are
// found.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

static_assert(NVSHMEM_SIGNAL_SET == 9 && NVSHMEM_CMP_GE == 5 && NVSHMEMX_INIT_WITH_UNIQUEID == 8);
static_assert(sizeof(nvshmemx_uniqueid_v1) == 128 && sizeof(nvshmemx_uniqueid_args_v1) == 24 && sizeof(nvshmemx_init_args_v1) == 128);
static_assert(sizeof(nvshmemx_init_attr_v1) == 144 && offsetof(nvshmemx_init_attr_v1, args) == 16);
static_assert(offsetof(nvshmemx_init_args_v1, uid_args) == 8 && offsetof(nvshmemx_uniqueid_args_v1, id) == 8);
static_assert(offsetof(nvshmemx_uniqueid_args_v1, myrank) == 16 && offsetof(nvshmemx_uniqueid_args_v1, nranks) == 20);
static_assert(std::is_same_v<decltype(&nvshmemx_get_uniqueid), int (*)(nvshmemx_uniqueid_t*)>);
static_assert(
    std::is_same_v<decltype(&nvshmemx_set_attr_uniqueid_args), int (*)(int, int, nvshmemx_uniqueid_t const*, nvshmemx_init_attr_t*)>);
static_assert(std::is_same_v<decltype(&nvshmemx_hostlib_init_attr), int (*)(unsigned, nvshmemx_init_attr_t*)>);
static_assert(std::is_same_v<decltype(&nvshmem_my_pe), int (*)()>);
static_assert(std::is_same_v<decltype(&nvshmem_calloc), void* (*)(std::size_t, std::size_t)>);
static_assert(std::is_same_v<decltype(&nvshmem_ptr), void* (*)(void const*, int)>);
static_assert(std::is_same_v<decltype(&nvshmemx_putmem_signal_on_stream),
                             void (*)(void*, void const*, std::size_t, std::uint64_t*, std::uint64_t, int, int, cudaStream_t)>);
static_assert(std::is_same_v<decltype(&nvshmemx_signal_op_on_stream), void (*)(std::uint64_t*, std::uint64_t, int, int, cudaStream_t)>);
static_assert(std::is_same_v<decltype(&nvshmemx_signal_wait_until_on_stream), void (*)(std::uint64_t*, int, std::uint64_t, cudaStream_t)>);
