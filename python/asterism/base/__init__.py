"""What every room stands on: options, files, indices, the terminal, the machine."""
