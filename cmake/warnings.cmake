add_library(asterism_warnings INTERFACE)
target_compile_options(asterism_warnings INTERFACE -Wall -Wextra -Wpedantic -Wno-unknown-pragmas -Wno-psabi)
