// The Rust allocator for tests/spec/fuzz/test_fuzz_conventions.py.
include!("fuzz_target.rs");

use std::alloc::System;

syncedmem_fuzz_target!("good", System, System);
