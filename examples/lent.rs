//! The C ABI of ports (syncedmem_port.h), and what is lent to a port: memory between guards.  Each action is logged, and
//! fails if it is the one that has to.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{copy, null_mut, write_bytes};
use std::slice::from_raw_parts_mut;

pub const DEVICE: u32 = 2;
const GUARD: usize = 16;
const KINDS: [&str; 3] = ["pageable host memory", "page-locked host memory", "device memory"];
pub const CALLER: usize = usize::MAX;

#[repr(C)]
pub struct Allocators {
    pub context: *mut Lent,
    allocate: extern "C" fn(&mut Lent, u32, usize, &mut *mut u8) -> c_int,
    deallocate: extern "C" fn(&mut Lent, u32, *mut u8) -> c_int,
    zero: extern "C" fn(&mut Lent, *mut u8, usize) -> c_int,
    copy: extern "C" fn(&mut Lent, *mut u8, *const u8, usize) -> c_int,
    copy_async: extern "C" fn(&mut Lent, *mut u8, *const u8, usize, *mut c_void) -> c_int,
    synchronize: extern "C" fn(&mut Lent, *mut c_void) -> c_int,
    get_device: extern "C" fn(&mut Lent, &mut i32) -> c_int,
    set_device: extern "C" fn(&mut Lent, i32) -> c_int,
}
#[repr(C)]
pub struct Asked { pub call: u32, pub mode: u32, pub data: *mut u8, pub data_size: usize, pub data_kind: u32, pub stream: *mut c_void }
#[repr(C)]
pub struct Answer { pub view: *mut u8, pub refusal: u32, pub message: *const c_char }
#[repr(C)]
#[derive(Default)]
pub struct State { pub head: u32, pub flags: u32, pub known_flags: u32, pub size: usize }
#[repr(C)]
pub struct Port {
    pub version: u32,
    pub level: u32,
    pub sides: u32,
    name: *const c_char,
    edition: *const c_char,
    own: *const c_void,
    pub create: extern "C" fn(*const Allocators, usize, &mut *mut c_void) -> c_int,
    pub call: extern "C" fn(*mut c_void, &Asked, &mut Answer) -> c_int,
    pub state: extern "C" fn(*const c_void, &mut State),
    pub destroy: extern "C" fn(*mut c_void),
}
impl Port {
    pub fn edition(&self) -> &str {
        unsafe { CStr::from_ptr(self.edition) }.to_str().unwrap_or("")
    }
}

pub struct Block { bytes: Box<[u8]>, pub size: usize, pub kind: u32, pub live: bool, pub owner: usize }
impl Block {
    pub fn at(&mut self) -> *mut u8 {
        unsafe { self.bytes.as_mut_ptr().add(GUARD) }
    }
    fn has(&mut self, at: *const u8, size: usize) -> bool {
        let (from, to) = (self.at() as usize, self.at() as usize + self.size);
        self.live && at as usize >= from && at as usize + size <= to
    }
    pub fn guarded(&self) -> bool {
        self.bytes[..GUARD].iter().chain(&self.bytes[GUARD + self.size..]).all(|it| *it == 0xA5)
    }
}

/// All blocks of a vector, and what was done in a call.
#[derive(Default)]
pub struct Heap { pub blocks: Vec<Block>, pub done: Vec<String>, pub trouble: Vec<String>, pub fails: i64, pub made: u32, queued: Vec<(usize, usize, usize)> }
impl Heap {
    pub fn block(&mut self, size: usize, kind: u32, owner: usize) -> usize {
        let mut bytes = vec![0xA5; size + 2 * GUARD].into_boxed_slice();
        bytes[GUARD..GUARD + size].fill(0xCD);
        self.blocks.push(Block { bytes, size, kind, live: true, owner });
        self.blocks.len() - 1
    }
    pub fn find(&mut self, at: *const u8, size: usize) -> Option<usize> {
        (0..self.blocks.len()).rev().find(|k| self.blocks[*k].has(at, size))
    }
    pub fn synchronize(&mut self) {
        for (to, from, size) in self.queued.drain(..) {
            unsafe { copy(from as *const u8, to as *mut u8, size) };
        }
    }
}

/// What one memory is lent.
pub struct Lent { pub heap: *mut Heap, pub owner: usize, pub size: usize }
impl Lent {
    fn heap(&mut self) -> &mut Heap {
        unsafe { &mut *self.heap }
    }
    fn act(&mut self, name: &str, size: usize, there: bool) -> bool {
        let wanted = self.size;
        let heap = self.heap();
        heap.fails -= 1;
        if heap.fails == 0 || !there {
            if !there { heap.trouble.push(format!("{name} where no such memory is")); }
            return false;
        }
        heap.done.push(if size == wanted { name.into() } else { format!("{name} of {size} bytes") });
        true
    }
    fn moves(&mut self, to: *mut u8, from: *const u8, size: usize, up: &str) -> bool {
        let (into, out) = (self.heap().find(to, size), self.heap().find(from, size));
        let on = |heap: &mut Heap, it: Option<usize>| it.is_some_and(|k| heap.blocks[k].kind == DEVICE);
        let (target, source) = (on(self.heap(), into), on(self.heap(), out));
        let name = if target == source { "copy within a side" } else if target { up } else { "copy_to_cpu" };
        self.act(name, size, into.is_some() && out.is_some())
    }
    pub fn allocators(&mut self) -> Allocators {
        Allocators { context: self, allocate, deallocate, zero, copy: copied, copy_async, synchronize, get_device, set_device }
    }
}
extern "C" fn allocate(own: &mut Lent, kind: u32, size: usize, at: &mut *mut u8) -> c_int {
    if !own.act(if kind == DEVICE { "allocate_gpu" } else { "allocate_cpu" }, size, true) { return 1; }
    let owner = own.owner;
    let heap = own.heap();
    if kind != DEVICE { heap.made = kind; }
    let made = heap.block(size, kind, owner);
    *at = heap.blocks[made].at();
    0
}
extern "C" fn deallocate(own: &mut Lent, kind: u32, at: *mut u8) -> c_int {
    let found = own.heap().find(at, 0).filter(|k| unsafe { (&mut (*own.heap).blocks)[*k].at() == at && (&(*own.heap).blocks)[*k].owner != CALLER });
    let (was, size) = found.map_or((kind, own.size), |k| (own.heap().blocks[k].kind, own.heap().blocks[k].size));
    if was != kind { own.heap().trouble.push(format!("{} freed as {}", KINDS[was as usize % 3], KINDS[kind as usize % 3])); }
    if !own.act(if kind == DEVICE { "free_gpu" } else { "free_cpu" }, size, found.is_some() && was == kind) { return 1; }
    own.heap().blocks[found.unwrap_or(0)].live = false;
    0
}
extern "C" fn zero(own: &mut Lent, at: *mut u8, size: usize) -> c_int {
    let found = own.heap().find(at, size);
    let device = found.is_some_and(|k| own.heap().blocks[k].kind == DEVICE);
    let done = own.act(if device { "zero_gpu" } else { "zero_cpu" }, size, found.is_some());
    if done { unsafe { write_bytes(at, 0, size) }; }
    !done as c_int
}
extern "C" fn copied(own: &mut Lent, to: *mut u8, from: *const u8, size: usize) -> c_int {
    let done = own.moves(to, from, size, "copy_to_gpu");
    if done { unsafe { copy(from, to, size) }; }
    !done as c_int
}
extern "C" fn copy_async(own: &mut Lent, to: *mut u8, from: *const u8, size: usize, _: *mut c_void) -> c_int {
    let done = own.moves(to, from, size, "copy_to_gpu_async");
    if done { own.heap().queued.push((to as usize, from as usize, size)); }
    !done as c_int
}
extern "C" fn synchronize(own: &mut Lent, _: *mut c_void) -> c_int {
    own.heap().synchronize();
    0
}
extern "C" fn get_device(_: &mut Lent, device: &mut i32) -> c_int {
    *device = 0;
    0
}
extern "C" fn set_device(_: &mut Lent, device: i32) -> c_int {
    (device != 0) as c_int
}
pub fn asked(call: usize, mode: u32, size: usize, kind: u32) -> (Asked, Answer) {
    (Asked { call: call as u32, mode, data: null_mut(), data_size: size, data_kind: kind, stream: null_mut() }, Answer { view: null_mut(), refusal: 0, message: null_mut() })
}
pub fn byte(content: usize, k: usize) -> u8 {
    if content == 0 { 0 } else { ((7 * content + k) % 251) as u8 }
}
pub fn fill(at: *mut u8, content: usize, size: usize) {
    unsafe { from_raw_parts_mut(at, size) }.iter_mut().enumerate().for_each(|(k, it)| *it = byte(content, k));
}
pub struct Memory { pub at: *mut c_void, pub _lent: (Box<Lent>, Box<Allocators>), pub size: usize, pub adopted: [Option<usize>; 2], pub view: [*mut u8; 2] }
