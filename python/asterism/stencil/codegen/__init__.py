"""From a stencil to the text of a kernel, in C++, CUDA or HIP: stages that `sources` calls in turn."""
