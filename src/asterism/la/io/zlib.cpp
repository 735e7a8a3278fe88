#include "asterism/la/io/zlib.hpp"

#include <dlfcn.h>

#include "asterism/base/error.hpp"

namespace asterism::la::io {

Zlib const& zlib() {
  static Zlib const z = [] {
    void* lib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) lib = dlopen("libz.so", RTLD_NOW | RTLD_LOCAL);
    ASTERISM_REQUIRE(
        lib, unsupported,
        "reading .gz and asterism's own files needs zlib (libz.so.1), which is not on this machine. Install zlib1g, or gunzip the file.");
    Zlib t;
    t.open = reinterpret_cast<decltype(t.open)>(dlsym(lib, "gzopen"));
    t.read = reinterpret_cast<decltype(t.read)>(dlsym(lib, "gzread"));
    t.close = reinterpret_cast<decltype(t.close)>(dlsym(lib, "gzclose"));
    t.error = reinterpret_cast<decltype(t.error)>(dlsym(lib, "gzerror"));
    t.crc32 = reinterpret_cast<decltype(t.crc32)>(dlsym(lib, "crc32"));
    t.buffer = reinterpret_cast<decltype(t.buffer)>(dlsym(lib, "gzbuffer"));
    ASTERISM_REQUIRE(t.open && t.read && t.close && t.error && t.buffer && t.crc32, unsupported,
                     "this machine's zlib lacks a part of its interface.");
    return t;
  }();
  return z;
}

}  // namespace asterism::la::io
