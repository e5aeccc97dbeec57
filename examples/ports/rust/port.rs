//! The glue between `Memory` and syncedmem_port.h.

use crate::abi::{Allocators, Arguments, Outcome, Port, State, FAILED, OK, OTHER, REFUSED, VERSION};
use crate::allocator::{Allocator, Buffer, Stream};
use crate::machine::{Call::{self, *}, Mode, Side, CPU_MALLOC_USE_CUDA, OWN_CPU_DATA, OWN_GPU_DATA};
use crate::memory::{Argument, Error, Memory};
use std::{ffi::c_int, ptr::null};

const CALLS: [Call; 8] =
    [CpuData, MutableCpuData, GpuData, MutableGpuData, SetCpuData, SetGpuData, AsyncGpuPush, Release];
const FLAGS: u32 = OWN_CPU_DATA | OWN_GPU_DATA | CPU_MALLOC_USE_CUDA;

extern "C" fn create(from: &'static Allocators, size: usize, made: &mut *mut Memory) -> c_int {
    *made = Box::into_raw(Box::new(Memory::new(size, Allocator::new(from))));
    OK
}

unsafe extern "C" fn call(it: &mut Memory, asked: &Arguments, outcome: &mut Outcome) -> c_int {
    let stream = (CALLS[asked.call as usize] == AsyncGpuPush).then(|| Stream::new(asked.stream));
    let with = Argument { data: Buffer::new(asked.data, asked.data_size, asked.data_kind), stream };
    let done = it.call(CALLS[asked.call as usize], with, if asked.mode == 1 { Mode::Gpu } else { Mode::Cpu });
    outcome.view = it.side(if asked.call < 2 { Side::Cpu } else { Side::Gpu }).pointer();
    let Err(Error::Refused(why)) = done else { return if done.is_ok() { OK } else { FAILED } };
    outcome.refusal = why.map_or(OTHER, |refusal| refusal as u32 + 1);
    REFUSED
}

extern "C" fn state(it: &Memory, seen: &mut State) {
    *seen = State { head: it.head() as u32, flags: it.facts() & FLAGS, known_flags: FLAGS, size: it.size() };
}

unsafe extern "C" fn destroy(it: *mut Memory) { drop(Box::from_raw(it)); }

static PORT: Port =
    Port { version: VERSION, level: 4, sides: 2, name: c"Rust".as_ptr(), edition: c"caffe".as_ptr(), own: null(), create, call, state, destroy };

#[no_mangle]
pub extern "C" fn syncedmem_port() -> *const Port { &PORT }
