//! What syncedmem_port.h says of blobs.

use crate::lent::{Allocators, Lent};
use std::ffi::{c_char, c_int, c_void};

pub const CALLS: [&str; 37] = [
    "reshape", "reshape_like", "shrink_to_fit", "shape_string", "canonical_axis_index", "count_axes", "legacy_shape", "num", "channels",
    "height", "width", "offset", "data_at", "diff_at", "gpu_shape", "cpu_data", "mutable_cpu_data", "gpu_data", "mutable_gpu_data",
    "cpu_diff", "mutable_cpu_diff", "gpu_diff", "mutable_gpu_diff", "set_cpu_data", "set_gpu_data", "set_cpu_diff", "set_gpu_diff",
    "share_data", "share_diff", "copy_from", "update", "asum_data", "asum_diff", "sumsq_data", "sumsq_diff", "scale_data", "scale_diff",
];
pub const TYPES: [(&str, usize); 4] = [("float32", 4), ("float64", 8), ("int32", 4), ("uint32", 4)];
pub const SEQUENCE: u32 = 1;
pub const COPY_DIFF: u32 = 2;
pub const RESHAPE: u32 = 4;

#[repr(C)]
pub struct Asked { pub call: u32, pub mode: u32, pub options: u32, pub count: usize, pub numbers: *const i64, pub factor: f64, pub other: *mut c_void, pub data: *mut u8, pub data_size: usize, pub data_kind: u32 }
#[repr(C)]
pub struct Answer { pub view: *mut u8, pub number: f64, pub text: *const c_char, pub message: *const c_char }
#[repr(C)]
pub struct Part { pub memory: *const c_void, pub sides: [*const u8; 2], pub head: u32, pub size: usize }
#[repr(C)]
pub struct State { pub axes: usize, pub shape: [i64; 32], pub count: i64, pub capacity: i64, pub parts: [Part; 2] }
pub type Kernel = extern "C" fn(*mut c_void);
#[repr(C)]
pub struct Blobs {
    pub version: u32,
    pub create: extern "C" fn(*const Allocators, extern "C" fn(&mut Lent, Kernel, *mut c_void) -> c_int, u32, &mut *mut c_void) -> c_int,
    pub call: extern "C" fn(*mut c_void, &Asked, &mut Answer) -> c_int,
    pub state: extern "C" fn(*const c_void, &mut State),
    pub destroy: extern "C" fn(*mut c_void),
}
pub extern "C" fn launch(_: &mut Lent, kernel: Kernel, argument: *mut c_void) -> c_int {
    kernel(argument);
    0
}
