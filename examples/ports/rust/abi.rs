//! The declarations of syncedmem_port.h, version 1.

use std::ffi::{c_char, c_int, c_void};

pub const VERSION: u32 = 2;
pub const OK: c_int = 0;
pub const REFUSED: c_int = 1;
pub const FAILED: c_int = 2;
pub const OTHER: u32 = 255; // why a call was refused, if for no reason of Caffe's

pub type Pointer = *mut c_void;

#[repr(C)]
pub struct Allocators {
    pub context: Pointer,
    pub allocate: unsafe extern "C" fn(Pointer, u32, usize, *mut Pointer) -> c_int,
    pub deallocate: unsafe extern "C" fn(Pointer, u32, Pointer) -> c_int,
    pub zero: unsafe extern "C" fn(Pointer, Pointer, usize) -> c_int,
    pub copy: unsafe extern "C" fn(Pointer, Pointer, *const c_void, usize) -> c_int,
    pub copy_async: unsafe extern "C" fn(Pointer, Pointer, *const c_void, usize, Pointer) -> c_int,
    pub synchronize: unsafe extern "C" fn(Pointer, Pointer) -> c_int,
    pub get_device: unsafe extern "C" fn(Pointer, *mut i32) -> c_int,
    pub set_device: unsafe extern "C" fn(Pointer, i32) -> c_int,
}

#[repr(C)]
pub struct Arguments {
    pub call: u32,
    pub mode: u32,
    pub data: Pointer,
    pub data_size: usize,
    pub data_kind: u32,
    pub stream: Pointer,
}

#[repr(C)]
pub struct Outcome {
    pub view: Pointer,
    pub refusal: u32,
    pub message: *const c_char,
}

#[repr(C)]
pub struct State {
    pub head: u32,
    pub flags: u32,
    pub known_flags: u32,
    pub size: usize,
}

#[repr(C)]
pub struct Port {
    pub version: u32,
    pub level: u32,
    pub sides: u32,
    pub name: *const c_char,
    pub edition: *const c_char,
    pub own: *const Allocators,
    pub create: unsafe extern "C" fn(&'static Allocators, usize, &mut *mut crate::memory::Memory) -> c_int,
    pub call: unsafe extern "C" fn(&mut crate::memory::Memory, &Arguments, &mut Outcome) -> c_int,
    pub state: unsafe extern "C" fn(&crate::memory::Memory, &mut State),
    pub destroy: unsafe extern "C" fn(*mut crate::memory::Memory),
}

unsafe impl Sync for Port {}
