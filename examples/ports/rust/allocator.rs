//! Where memory comes from.  Whatever is unsafe is here: a place always has as many bytes as it says.

use crate::abi::{Allocators, Pointer};
use std::ptr::null_mut;

pub const HOST: u32 = 0;
pub const PINNED: u32 = 1;
pub const DEVICE: u32 = 2;

/// An allocation, a copy, a fill or a free did not succeed.
#[derive(Debug)]
pub struct Failed;

/// One side of a memory.
pub enum Place {
    Empty,
    Owned(Block),
    Adopted(Buffer),
}

/// An allocation; it is freed if it is dropped.
pub struct Block {
    from: Allocator,
    kind: u32,
    pointer: Pointer,
    size: usize,
}

/// A buffer of the caller.
#[derive(Clone, Copy)]
pub struct Buffer {
    pointer: Pointer,
    pub size: usize,
    pub kind: u32,
}

/// A stream of the caller.
#[derive(Clone, Copy)]
pub struct Stream(Pointer);

#[derive(Clone, Copy)]
pub struct Allocator(&'static Allocators);

impl Buffer {
    /// # Safety
    /// It has `size` bytes, as long as a memory uses it.
    pub unsafe fn new(pointer: Pointer, size: usize, kind: u32) -> Option<Self> {
        (!pointer.is_null()).then_some(Self { pointer, size, kind })
    }
}

impl Stream {
    /// # Safety
    /// It lives until the next call that is not `cpu_data`.
    pub unsafe fn new(pointer: Pointer) -> Self {
        Self(pointer)
    }
}

impl Place {
    pub fn pointer(&self) -> Pointer {
        self.bytes().0
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Whether a buffer begins in memory that is owned here.
    pub fn owns(&self, buffer: Buffer) -> bool {
        let (pointer, size) = self.bytes();
        matches!(self, Self::Owned(_)) && (buffer.pointer as usize).wrapping_sub(pointer as usize) < size
    }

    fn bytes(&self) -> (Pointer, usize) {
        match self {
            Self::Empty => (null_mut(), 0),
            Self::Owned(block) => (block.pointer, block.size),
            Self::Adopted(buffer) => (buffer.pointer, buffer.size),
        }
    }
}

impl Block {
    /// Free it, or get it back.
    pub fn free(mut self) -> Result<(), Self> {
        self.try_free().map_err(|Failed| self)
    }

    fn try_free(&mut self) -> Result<(), Failed> {
        if !self.pointer.is_null() {
            let it = self.from.0;
            tried(unsafe { (it.deallocate)(it.context, self.kind, self.pointer) })?;
            self.pointer = null_mut();
        }
        Ok(())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let _ = self.try_free(); // nobody can be told
    }
}

impl Allocator {
    pub fn new(it: &'static Allocators) -> Self {
        Self(it)
    }

    pub fn allocate(self, kind: u32, size: usize) -> Result<Block, Failed> {
        let mut pointer = null_mut();
        tried(unsafe { (self.0.allocate)(self.0.context, kind, size, &mut pointer) })?;
        Ok(Block { from: self, kind, pointer, size })
    }

    pub fn zero(self, place: &mut Place, size: usize) -> Result<(), Failed> {
        assert!(place.bytes().1 >= size);
        tried(unsafe { (self.0.zero)(self.0.context, place.pointer(), size) })
    }

    /// Copy; or queue the copy on a stream, if there is one.
    pub fn copy(self, to: &mut Place, from: &Place, size: usize, stream: Option<Stream>) -> Result<(), Failed> {
        assert!(to.bytes().1 >= size && from.bytes().1 >= size);
        let (it, to, from) = (self.0, to.pointer(), from.pointer());
        tried(match stream {
            None => unsafe { (it.copy)(it.context, to, from, size) },
            Some(stream) => unsafe { (it.copy_async)(it.context, to, from, size, stream.0) },
        })
    }

    pub fn synchronize(self, stream: Stream) -> Result<(), Failed> {
        tried(unsafe { (self.0.synchronize)(self.0.context, stream.0) })
    }
}

fn tried(error: i32) -> Result<(), Failed> {
    if error == 0 { Ok(()) } else { Err(Failed) }
}
