//! The glue between `Memory` and syncedmem_port.h.

mod abi;
mod allocator;
#[allow(dead_code)] // what this port does not use of the table
mod machine;
mod memory;

use abi::{Allocators, Arguments, Outcome, Port, State};
use allocator::{Allocator, Buffer, Stream};
use machine::{Call, Mode, Side};
use memory::{Argument, Error, Memory};
use std::{ffi::c_int, ptr::null};

const CALLS: [Call; 8] = [
    Call::CpuData, Call::MutableCpuData, Call::GpuData, Call::MutableGpuData, Call::SetCpuData, Call::SetGpuData,
    Call::AsyncGpuPush, Call::Release,
];
const FLAGS: u32 = machine::OWN_CPU_DATA | machine::OWN_GPU_DATA | machine::CPU_MALLOC_USE_CUDA;
const OTHER: u32 = 255;

extern "C" fn create(from: &'static Allocators, size: usize, made: &mut *mut Memory) -> c_int {
    *made = Box::into_raw(Box::new(Memory::new(size, Allocator::new(from))));
    0
}

unsafe extern "C" fn call(it: &mut Memory, asked: &Arguments, outcome: &mut Outcome) -> c_int {
    let stream = (asked.call == 6).then(|| Stream::new(asked.stream));
    let with = Argument { data: Buffer::new(asked.data, asked.data_size), stream };
    match it.call(CALLS[asked.call as usize], with, if asked.mode == 1 { Mode::Gpu } else { Mode::Cpu }) {
        Ok(()) => outcome.view = it.side(if asked.call < 2 { Side::Cpu } else { Side::Gpu }).pointer(),
        Err(Error::Failed) => return 2,
        Err(Error::Refused(why)) => {
            outcome.refusal = why.map_or(OTHER, |refusal| refusal as u32 + 1);
            return 1;
        }
    }
    0
}

extern "C" fn state(it: &Memory, seen: &mut State) {
    *seen = State { head: it.head() as u32, flags: it.facts() & FLAGS, known_flags: FLAGS, size: it.size() };
}

unsafe extern "C" fn destroy(it: *mut Memory) {
    drop(Box::from_raw(it));
}

static PORT: Port = Port {
    abi_version: 1, level: 4, name: c"Rust".as_ptr(), edition: c"caffe".as_ptr(), own: null(), create, call, state, destroy,
};

#[no_mangle]
pub extern "C" fn syncedmem_port() -> *const Port {
    &PORT
}
