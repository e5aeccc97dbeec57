"""The headers by which C++ and Rust export an allocator."""
