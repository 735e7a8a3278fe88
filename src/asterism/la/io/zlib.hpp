// zlib, from the libz.so.1 that every Linux has: no headers needed to build.
#pragma once
#include <cstddef>

namespace asterism::la::io {

struct Zlib {
  void* (*open)(char const*, char const*);
  int (*read)(void*, void*, unsigned);
  int (*close)(void*);
  char const* (*error)(void*, int*);
  int (*buffer)(void*, unsigned);
  unsigned long (*crc32)(unsigned long, void const*, unsigned);
};

/// Opened at the first use; an error where it is not there.
Zlib const& zlib();

}  // namespace asterism::la::io
