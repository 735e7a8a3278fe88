#pragma once
#include "asterism/comm/communicator/communicator.hpp"

/// All ranks of this test run; one process without mpiexec.
asterism::comm::Communicator const& world();
