//! Caffe's mirrored memory, with the C ABI of ports.

mod abi;
mod allocator;
#[allow(dead_code)] // what this port does not use of the table
mod machine;
mod memory;
mod port;
